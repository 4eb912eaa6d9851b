"""Second pass over Parquet and Arrow shards: a few rows, a few columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from contam.tables import ipc, parquet
from contam.tables.fields import as_text_block, turns_at, values_at, wanted_leaves
from contam.tables.guard import shard_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from contam.tables.blocks import TextBlock
    from contam.tables.chat import Turn
    from contam.tables.columns import ColumnRef

TableFormat = Literal["parquet", "arrow"]


def values(
    path: str, kind: TableFormat, refs: Sequence[ColumnRef], rows: Sequence[int]
) -> Iterator[tuple[int, list[object]]]:
    """Yield (row, one value per column of `refs`) for the rows (ascending, distinct).

    Columns that the shard does not have are None. Rows past the end are not yielded.
    """
    for numbers, batch in _rows(path, kind, refs, rows):
        with shard_errors(path):
            columns = [values_at(batch, ref) for ref in refs]
        for i, number in enumerate(numbers):
            yield number, [column[i] for column in columns]


def texts(
    path: str, kind: TableFormat, ref: ColumnRef, rows: Sequence[int]
) -> Iterator[tuple[list[int], TextBlock]]:
    """Yield (rows, their documents) for the rows (ascending, distinct)."""
    for numbers, batch in _rows(path, kind, [ref], rows):
        with shard_errors(path):
            block = as_text_block(batch, ref)
        yield numbers, block


def turns(
    path: str, kind: TableFormat, ref: ColumnRef, rows: Sequence[int]
) -> Iterator[tuple[int, list[Turn]]]:
    """Yield (row, the turns of its conversation) for the rows (ascending, distinct)."""
    for numbers, batch in _rows(path, kind, [ref], rows, whole=True):
        for i, number in enumerate(numbers):
            with shard_errors(path):
                found = turns_at(batch, ref, i)
            yield number, found


def _rows(
    path: str,
    kind: TableFormat,
    refs: Sequence[ColumnRef],
    rows: Sequence[int],
    *,
    whole: bool = False,
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    if kind == "arrow":
        return ipc.rows(path, [ref.path[0] for ref in refs], rows)
    leaves: list[str] = []
    for ref in refs:
        needed = [".".join(ref.column)] if whole else wanted_leaves(parquet.leaves(path), ref)
        leaves += [leaf for leaf in needed if leaf not in leaves]
    return parquet.rows(path, leaves, rows)
