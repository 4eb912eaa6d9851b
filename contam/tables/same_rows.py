"""Compare a file with what was written of it: every row that was to stay is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from contam.tables.some_rows import kept

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from contam.tables.edits import Edit


def count_same(
    old: Iterable[pa.RecordBatch],
    new: Iterable[pa.RecordBatch],
    edits: Sequence[Edit],
    texts: Collection[str],
) -> int:
    """How many rows are the same in all columns.

    old, new  batches of equal columns, cut in any way
    edits     rows ascending: of rows that were dropped nothing is there, of others all but the
              columns `texts` is the same

    Raises ValueError where a row is missing, too many or another.
    """
    stream = _Rows(new)
    n_same = begin = 0
    for batch in old:
        # Edits of this batch; they are few.
        here = [edit for edit in edits if begin <= edit.row < begin + batch.num_rows]
        keep, edited = np.ones(batch.num_rows, np.bool_), np.zeros(batch.num_rows, np.bool_)
        keep[[edit.row - begin for edit in here if edit.drop]] = False
        edited[[edit.row - begin for edit in here if not edit.drop]] = True
        left, edited = kept(batch, keep), edited[keep]
        done = 0
        for piece in stream.take(left.num_rows):
            same = slice(done, done + piece.num_rows)
            _compare(left.slice(done, piece.num_rows), piece, edited[same], texts, begin)
            done += piece.num_rows
        if done < left.num_rows:
            raise ValueError(f"rows behind row {begin} are missing in what was written")
        n_same += int((~edited).sum())
        begin += batch.num_rows
    if stream.rest():
        raise ValueError("what was written has more rows")
    return n_same


class _Rows:
    """Batches as a stream of rows."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._held: pa.RecordBatch | None = None

    def take(self, n_rows: int) -> Iterator[pa.RecordBatch]:
        """The next rows, so many or as many as there are."""
        while n_rows:
            if self._held is None or not self._held.num_rows:
                self._held = next(self._batches, None)
                if self._held is None:
                    return
            piece = self._held.slice(0, n_rows)
            self._held = self._held.slice(piece.num_rows)
            n_rows -= piece.num_rows
            if piece.num_rows:
                yield piece

    def rest(self) -> int:
        """How many rows were not taken."""
        held = self._held.num_rows if self._held is not None else 0
        return int(held + sum(batch.num_rows for batch in self._batches))


def _compare(
    old: pa.RecordBatch,
    new: pa.RecordBatch,
    edited: np.ndarray[tuple[int], np.dtype[np.bool_]],
    texts: Collection[str],
    row: int,
) -> None:
    if old.schema.names != new.schema.names:
        raise ValueError("what was written has other columns")
    some = ~edited
    for at, name in enumerate(old.schema.names):
        mine, theirs = old.column(at), new.column(at)
        if name in texts and edited.any():
            mine, theirs = kept(mine, some), kept(theirs, some)
        if not _are_same(mine, theirs):
            raise ValueError(f"a row from row {row} on is another in column {name}")


def _are_same(mine: pa.Array, theirs: pa.Array) -> bool:
    if mine.type != theirs.type:
        return False
    if pt.is_dictionary(mine.type):
        # Dictionaries may differ in what no row has.
        mine, theirs = mine.dictionary_decode(), theirs.dictionary_decode()
    # What is no number is not equal to itself.
    return bool(mine.equals(theirs)) or repr(mine.to_pylist()) == repr(theirs.to_pylist())
