"""Define and write the tables of a search's every hit, and of what a cleaning took out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contam.files.single import refuse_irregular
from contam.tables import schemas
from contam.tables.schemas import counts, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

HITS_FILE: Final = "hits.parquet"


def _listed(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable=False))


#: A stretch of a document.
SPAN: Final = pa.struct(counts("start", "end"))
SPANS: Final = _listed(SPAN)
POLICIES: Final = _listed(pa.string())
HITS: Final = pa.schema(
    [
        *texts("benchmark", "split", "item_id", "shard"),
        *counts("row"),
        pa.field("policy", POLICIES, nullable=False),
        *texts("exposure"),
        pa.field("spans", SPANS, nullable=False),
    ]
)


def text_lists(values: Sequence[str], at: NDArray[np.int64], n: NDArray[Any]) -> pa.ChunkedArray:
    """A column of lists of texts: the next n[i] of values[at] are in row i."""
    return _lists(pa.array(values, pa.string()).take(pa.array(at)), POLICIES, n)


def span_lists(start: NDArray[Any], end: NDArray[Any], n: NDArray[Any]) -> pa.ChunkedArray:
    """A column of lists of stretches: the next n[i] are in row i."""
    ends = [pa.array(values.astype(np.int64)) for values in (start, end)]
    return _lists(pa.StructArray.from_arrays(ends, fields=list(SPAN)), SPANS, n)


def _lists(values: pa.Array, kind: pa.DataType, n: NDArray[Any]) -> pa.ChunkedArray:
    offsets = np.zeros(len(n) + 1, np.int32)
    np.cumsum(n, out=offsets[1:])
    return pa.chunked_array([pa.ListArray.from_arrays(pa.array(offsets), values, type=kind)])


def write_hits(tables: Iterable[schemas.Table], path: Path) -> int:
    """Write tables of `HITS` one behind the other; returns the rows. Raises OSError.

    Equal rows give equal bytes, however they are divided into tables.
    """
    n_rows = 0
    held = [HITS.empty_table()]
    with schemas.parquet_writer(path, HITS) as writer:
        for table in tables:
            n_rows += table.num_rows
            held.append(table)
            while sum(map(len, held)) >= _GROUP_ROWS:
                whole = pa.concat_tables(held)
                writer.write_table(whole.slice(0, _GROUP_ROWS))
                held = [whole.slice(_GROUP_ROWS)]
        writer.write_table(pa.concat_tables(held).combine_chunks())
    return n_rows


def hit_shards(path: Path) -> list[str]:
    """The shards that have hits, in the order of the table. Raises OSError or ValueError."""
    refuse_irregular(path)
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            if file.schema_arrow != HITS:
                raise ValueError("other columns than those of hits")
            found: dict[str, None] = {}
            for group in range(file.num_row_groups):
                column = file.read_row_group(group, columns=["shard"], use_threads=False)
                found.update(dict.fromkeys(column.column("shard").unique().to_pylist()))
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
    return list(found)


def read_hits(path: Path, shard: str) -> schemas.Table:
    """The hits in one shard that has some. Raises OSError or ValueError."""
    try:
        # Statistics say which row groups need not be read; no partition is read off the path.
        table = pq.read_table(
            path, filters=[("shard", "==", shard)], partitioning=None, use_threads=False
        )
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
    return table.cast(HITS).combine_chunks()


def listed(table: schemas.Table, name: str) -> tuple[list[str], NDArray[np.int32]]:
    """The texts in the lists of a column, one list behind the other, and how many each has."""
    lists = table.column(name).chunk(0)
    return lists.flatten().to_pylist(), lists.value_lengths().to_numpy()


def stretches(
    table: schemas.Table,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Where all stretches begin and where they end, row by row, and how many each row has."""
    lists = table.column("spans").chunk(0)
    start, end = (
        lists.flatten().field(name).to_numpy().astype(np.int32) for name in ("start", "end")
    )
    return start, end, lists.value_lengths().to_numpy()


_ITEM: Final = pa.struct([*texts("benchmark"), *texts("split", null=True), *texts("item_id")])
REMOVED: Final = pa.schema(
    [
        *texts("shard"),
        *counts("row"),
        *texts("document_id", "action"),
        pa.field("spans", SPANS, nullable=False),
        pa.field("items", pa.list_(pa.field("element", _ITEM, nullable=False)), nullable=False),
        pa.field("policy", POLICIES, nullable=False),
        *counts("first_token", "last_token", null=True),
    ]
)
TEXT: Final = pa.field("text", pa.large_string(), nullable=False)
_GROUP_ROWS: Final = 1 << 14


def write_removed(path: Path, rows: Sequence[Mapping[str, object]], *, with_text: bool) -> None:
    """Write what was found in one shard, as `REMOVED` has it, and what was taken out if wanted.

    Equal rows give equal bytes. Raises OSError.
    """
    table = pa.Table.from_pylist(list(rows), REMOVED.append(TEXT) if with_text else REMOVED)
    pq.write_table(
        table, path, compression="zstd", row_group_size=_GROUP_ROWS, write_page_checksum=True
    )
