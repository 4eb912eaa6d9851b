"""Read a few rows and columns of Parquet and Arrow shards in a second pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from contam.tables.blocks import texts_of
from contam.tables.fields import as_text_block, columns_at, turns_at, values_at
from contam.tables.shard_errors import shard_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from contam.tables.chat import Turn
    from contam.tables.columns import ColumnRef


class TableReader(Protocol):
    """What `contam.tables.parquet` and `contam.tables.ipc` have in common."""

    def value_batches(
        self, path: str, refs: Sequence[ColumnRef], groups: Sequence[int] | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield what `refs` need of some row groups or record batches, or of all, rows in order."""

    def value_rows(
        self, path: str, refs: Sequence[ColumnRef], rows: Sequence[int], *, whole: bool
    ) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield what `refs` need of some rows (ascending, distinct).

        whole  everything inside the columns, also what is no text
        """


def values(
    path: str, reader: TableReader, refs: Sequence[ColumnRef], rows: Sequence[int]
) -> Iterator[tuple[int, list[object]]]:
    """Yield (row, one value per column of `refs`) for the rows (ascending, distinct).

    Columns that the shard does not have are None. Rows past the end are not yielded.
    """
    for numbers, batch in reader.value_rows(path, refs, rows, whole=False):
        with shard_errors(path):
            columns = [values_at(batch, ref) for ref in refs]
        for i, number in enumerate(numbers):
            yield number, [column[i] for column in columns]


def all_values(
    path: str, reader: TableReader, refs: Sequence[ColumnRef], groups: Sequence[int] | None
) -> Iterator[dict[ColumnRef, list[object]]]:
    """Yield the values of `refs` for consecutive rows, some thousands at a time, rows in order.

    groups  row groups of a Parquet file or record batches of an IPC file; None reads all
    """
    for batch in reader.value_batches(path, refs, groups):
        with shard_errors(path):
            yield columns_at(batch, refs)


def documents(
    path: str, reader: TableReader, ref: ColumnRef, rows: Sequence[int], *, with_turns: bool
) -> Iterator[tuple[int, str, list[Turn] | None]]:
    """Yield (row, text, turns) of column `ref` for the rows (ascending, distinct).

    with_turns  whether to return the turns of texts that are joined from some; None otherwise
    """
    with_turns = with_turns and ref.kind in ("chat", "list", "group")
    for numbers, batch in reader.value_rows(path, [ref], rows, whole=with_turns):
        with shard_errors(path):
            texts = texts_of(as_text_block(batch, ref))
            turns = [turns_at(batch, ref, i) if with_turns else None for i in range(len(numbers))]
        yield from zip(numbers, texts, turns, strict=True)
