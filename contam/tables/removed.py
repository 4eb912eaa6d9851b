"""Write what was taken out of a shard as a table, a row a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contam.tables.hit_table import POLICIES, SPANS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contam.tables.edits import Span

_ITEM: Final = pa.struct(
    [
        pa.field("benchmark", pa.string(), nullable=False),
        pa.field("split", pa.string()),
        pa.field("item_id", pa.string(), nullable=False),
    ]
)
REMOVED: Final = pa.schema(
    [
        pa.field("shard", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        pa.field("spans", SPANS, nullable=False),
        pa.field("items", pa.list_(pa.field("element", _ITEM, nullable=False)), nullable=False),
        pa.field("policy", POLICIES, nullable=False),
    ]
)
TEXT: Final = pa.field("text", pa.large_string(), nullable=False)
_GROUP_ROWS: Final = 1 << 14


class RemovedRow(NamedTuple):
    """A document that was found in a shard.

    row          in the shard as it was; spans  in its text as it was
    document_id  what the corpus calls it, else "SHARD:ROW"
    action       what is done with it
    items        (benchmark, split, item id) of what was found in it
    text         what was taken out of it; None where nobody asked for it
    """

    row: int
    document_id: str
    action: str
    spans: tuple[Span, ...]
    items: tuple[tuple[str, str | None, str], ...]
    policies: tuple[str, ...]
    text: str | None = None


def write_removed(path: Path, shard: str, rows: Sequence[RemovedRow], *, with_text: bool) -> None:
    """Write the table of one shard. Equal rows give equal bytes. Raises OSError."""
    columns: dict[str, list[object]] = {
        "shard": [shard] * len(rows),
        "row": [row.row for row in rows],
        "document_id": [row.document_id for row in rows],
        "action": [row.action for row in rows],
        "spans": [[{"start": start, "end": end} for start, end in row.spans] for row in rows],
        "items": [
            [{"benchmark": b, "split": s, "item_id": i} for b, s, i in row.items] for row in rows
        ],
        "policy": [list(row.policies) for row in rows],
    }
    schema = REMOVED
    if with_text:
        schema = schema.append(TEXT)
        columns["text"] = [row.text or "" for row in rows]
    table = pa.Table.from_pydict(columns, schema)
    pq.write_table(
        table, path, compression="zstd", row_group_size=_GROUP_ROWS, write_page_checksum=True
    )
