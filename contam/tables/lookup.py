"""Open shards for Arrow, and read a few rows and columns of them in a second pass."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from contam.errors import ContamError, Plain, ShardError
from contam.files.addresses import is_address
from contam.files.listed import not_answered, opened, opened_object
from contam.files.single import refuse_irregular
from contam.files.stores import StoreError
from contam.tables.blocks import texts_of
from contam.tables.fields import as_text_block, columns_at, ids_of, turns_at, values_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from contam.tables.chat import Turn
    from contam.tables.columns import ColumnRef


@contextmanager
def shard_errors(path: str) -> Iterator[None]:
    """Raise `ShardError` for any failure to open, decode or understand the file at `path`."""
    try:
        if not is_address(path):
            refuse_irregular(Path(path))
        yield
    except ContamError:
        raise
    except FileNotFoundError as error:
        raise ShardError(
            "{shard}: the file is gone", shard=path, hint="it existed when the shards were listed"
        ) from error
    except PermissionError as error:
        raise ShardError(
            "{shard}: no permission to read it", shard=path,
            hint="check its owner and mode",
        ) from error  # fmt: skip
    except (pa.ArrowException, OSError, ValueError, EOFError, OverflowError, KeyError) as error:
        if isinstance(error, OSError) and is_address(path):
            from contam.tables.object_stores import told

            failure = told(error)
            if isinstance(failure, StoreError):
                raise not_answered(path, failure) from error
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ShardError(
            "{shard}: cannot be read: {}", Plain(reason[:300]), shard=path,
            hint="the file may be truncated or corrupt: copy it again, or leave it out",
        ) from error  # fmt: skip


@contextmanager
def arrow_file(path: str) -> Iterator[pa.NativeFile]:
    """Open a file for Arrow, and prove that it stays as listed: see `contam.files.listed`.

    Arrow opens what we hold open, so that both are one file even if another takes its path. It
    can take a descriptor itself, or give its own, only from pyarrow 25.
    """
    if is_address(path):
        with opened_object(path) as found:
            yield pa.PythonFile(found, mode="r")
        return
    with opened(path) as file, pa.OSFile(f"/dev/fd/{file.fileno()}") as source:
        yield source


class TableReader(Protocol):
    """What `contam.tables.parquet` and `contam.tables.ipc` have in common."""

    def value_batches(
        self, path: str, refs: Sequence[ColumnRef], groups: Sequence[int] | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield what `refs` need of some row groups or record batches, or of all, rows in order."""

    def n_batches(self, path: str) -> int | None:
        """Count the row groups or record batches of a file; None for one read in order alone."""

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


def id_batches(
    path: str, reader: TableReader, ref: ColumnRef, groups: Sequence[int] | None
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64], int]]:
    """Yield the token ids of consecutive rows, as `contam.tables.fields.ids_of` gives them."""
    for batch in reader.value_batches(path, [ref], groups):
        with shard_errors(path):
            found = ids_of(batch, ref)
        yield found


def ids_at(
    path: str, reader: TableReader, ref: ColumnRef, rows: Sequence[int]
) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Yield (row, its token ids) for the rows (ascending, distinct)."""
    for numbers, batch in reader.value_rows(path, [ref], rows, whole=True):
        with shard_errors(path):
            ids, offsets, _ = ids_of(batch, ref)
        yield from zip(numbers, np.split(ids, offsets[1:-1]), strict=True)


def documents(
    path: str, reader: TableReader, ref: ColumnRef, rows: Sequence[int]
) -> Iterator[tuple[int, str, list[Turn] | None]]:
    """Yield (row, text, turns) of column `ref` for the rows (ascending, distinct).

    turns  of a text that is joined from some, None for any other
    """
    has_turns = ref.kind in ("chat", "list", "group")
    for numbers, batch in reader.value_rows(path, [ref], rows, whole=has_turns):
        with shard_errors(path):
            texts = texts_of(as_text_block(batch, ref))
            turns = [turns_at(batch, ref, i) if has_turns else None for i in range(len(numbers))]
        yield from zip(numbers, texts, turns, strict=True)
