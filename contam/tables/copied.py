"""Documents written out as Parquet, for shards that a database cannot open itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_COLUMNS: Final = pa.schema(
    [
        pa.field("shard", pa.string()),
        pa.field("row", pa.int64()),
        pa.field("document_id", pa.string()),
        pa.field("url", pa.string()),
        pa.field("date", pa.string()),
        pa.field("source", pa.string()),
        pa.field("language", pa.string()),
        pa.field("text", pa.large_string()),
    ]
)


def write_documents(path: Path, batches: Iterable[Mapping[str, list[Any]]]) -> None:
    """Write batches of columns (shard, row, document_id, ..., text), one row group each."""
    with pq.ParquetWriter(path, _COLUMNS, compression="lz4") as writer:
        for batch in batches:
            writer.write_table(pa.table(dict(batch), schema=_COLUMNS))
