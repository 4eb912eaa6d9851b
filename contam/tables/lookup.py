"""Second pass over Parquet and Arrow shards: a few rows, a few columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from contam.tables import ipc, parquet
from contam.tables.blocks import texts_of
from contam.tables.fields import as_text_block, columns_at, turns_at, values_at, wanted_leaves
from contam.tables.guard import shard_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

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


def all_values(
    path: str, kind: TableFormat, refs: Sequence[ColumnRef], groups: Sequence[int] | None
) -> Iterator[dict[ColumnRef, list[object]]]:
    """Yield the values of `refs` for consecutive rows, some thousands at a time, rows in order.

    groups  row groups of a Parquet file or record batches of an IPC file; None reads all
    """
    if kind == "arrow":
        batches = ipc.batches(path, [ref.path[0] for ref in refs], groups)
    else:
        batches = parquet.batches(path, _leaves(path, refs), groups)
    for batch in batches:
        with shard_errors(path):
            yield columns_at(batch, refs)


def documents(
    path: str, kind: TableFormat, ref: ColumnRef, rows: Sequence[int], *, with_turns: bool
) -> Iterator[tuple[int, str, list[Turn] | None]]:
    """Yield (row, text, turns) of column `ref` for the rows (ascending, distinct).

    with_turns  whether to tell the turns of texts that are joined from some; None otherwise
    """
    with_turns = with_turns and ref.kind in ("chat", "list", "group")
    for numbers, batch in _rows(path, kind, [ref], rows, whole=with_turns):
        with shard_errors(path):
            texts = texts_of(as_text_block(batch, ref))
            turns = [turns_at(batch, ref, i) if with_turns else None for i in range(len(numbers))]
        yield from zip(numbers, texts, turns, strict=True)


def _rows(
    path: str,
    kind: TableFormat,
    refs: Sequence[ColumnRef],
    rows: Sequence[int],
    *,
    whole: bool = False,
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    if kind == "arrow":
        return ipc.rows(path, [one.path[0] for ref in refs for one in ref.single], rows)
    leaves = list(dict.fromkeys(".".join(one.column) for ref in refs for one in ref.single))
    return parquet.rows(path, leaves if whole else _leaves(path, refs), rows)


def _leaves(path: str, refs: Sequence[ColumnRef]) -> list[str]:
    known = parquet.leaves(path)
    return list(dict.fromkeys(leaf for ref in refs for leaf in wanted_leaves(known, ref)))
