"""Compare a file with what was written of it: every row that was to stay is the same."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from contam.errors import ShardError
from contam.tables.blocks import texts_of
from contam.tables.columns import TextColumns
from contam.tables.edits import edited
from contam.tables.fields import filled_block, kept, taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from contam.tables.edits import Edit, Rewrite


def count_same(
    old: Iterable[pa.RecordBatch],
    new: Iterable[pa.RecordBatch],
    how: Rewrite,
    path: str,
) -> int:
    """How many rows are the same in all columns.

    old, new  batches of equal columns, cut in any way
    how       nothing is there of rows that were dropped; of others with an edit the text that a
              scan reads is the old one with its spans replaced, and all other columns are the same
    path      of the file that was written

    Raises ValueError where a row is missing, too many or another, ShardError where its text is.
    """
    stream = _Rows(new)
    compare = _Compare(how, path)
    n_same = begin = 0
    for batch in old:
        end = begin + batch.num_rows
        here = how.of_rows(begin, end).edits
        keep = np.ones(batch.num_rows, np.bool_)
        keep[[edit.row for edit in here if edit.drop]] = False
        left = kept(batch, keep)
        # Where the rows that stay are among those that are left.
        places = np.cumsum(keep) - 1
        edited = {int(places[edit.row]): edit for edit in here if not edit.drop}
        done = 0
        for piece in stream.take(left.num_rows):
            inside = {
                place - done: edit
                for place, edit in edited.items()
                if done <= place < done + piece.num_rows
            }
            compare(left.slice(done, piece.num_rows), piece, inside, begin)
            done += piece.num_rows
        if done < left.num_rows:
            raise ValueError(f"rows behind row {begin} are missing")
        n_same += left.num_rows - len(edited)
        begin = end
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


class _Compare:
    """Compares rows with what was written of them."""

    def __init__(self, how: Rewrite, path: str) -> None:
        self._sources = TextColumns(how.sources.every[0], how.sources.every[1:])
        self._replacement, self._path, self._texts = how.replacement, path, how.texts

    def __call__(
        self, old: pa.RecordBatch, new: pa.RecordBatch, edits: Mapping[int, Edit], first_row: int
    ) -> None:
        """Raise an error unless all columns are the same.

        edits  of rows of these batches: of them the columns of the text are not
        """
        if old.schema.names != new.schema.names:
            raise ValueError("what was written has other columns")
        same = np.ones(old.num_rows, np.bool_)
        same[list(edits)] = False
        for at, name in enumerate(old.schema.names):
            mine, theirs = old.column(at), new.column(at)
            if name in self._texts and edits:
                mine, theirs = kept(mine, same), kept(theirs, same)
            if not _are_same(mine, theirs):
                raise ValueError(f"a row from row {first_row} on is another in column {name}")
        if not edits:
            return
        places = np.array(sorted(edits))
        texts = zip(
            places.tolist(), *(self._read(batch, places) for batch in (old, new)), strict=True
        )
        for place, before, after in texts:
            edit = edits[place]
            check_text(before, after, edit, first_row + edit.row, self._replacement, self._path)

    def _read(self, batch: pa.RecordBatch, places: NDArray[np.int64]) -> list[str]:
        """The texts of some rows as a scan reads them."""
        rows = taken(batch, places)
        return texts_of(filled_block(rows, self._sources, partial(taken, rows)))


def check_text(
    before: str, after: str, edit: Edit, row: int, replacement: str | None, path: str
) -> None:
    """Raise ShardError unless a text is the one before with the spans of its edit replaced."""
    # Bytes that are no UTF-8 may become other characters when what parts them is cut.
    wanted = edited(before, edit.spans, replacement)
    # Of several columns or turns one that has lost all its text may not be joined any more.
    if _with_text(wanted) != _with_text(after) and "\ufffd" not in before:
        raise ShardError(
            "{shard}: the text of row {} was not written as it should be", row, shard=path,
            hint="drop the document as a whole, or leave the file out",
        )  # fmt: skip


def _with_text(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _are_same(mine: pa.Array, theirs: pa.Array) -> bool:
    if mine.type != theirs.type:
        return False
    if pt.is_dictionary(mine.type):
        # Dictionaries may differ in what no row has.
        mine, theirs = mine.dictionary_decode(), theirs.dictionary_decode()
    if pt.is_floating(mine.type):
        # What is no number is not equal to itself: bits are compared.
        bits = pa.binary(mine.type.bit_width // 8)
        mine, theirs = mine.view(bits), theirs.view(bits)
    return bool(mine.equals(theirs)) or repr(mine.to_pylist()) == repr(theirs.to_pylist())
