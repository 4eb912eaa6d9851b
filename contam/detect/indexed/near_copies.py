"""Find near copies in MinHash segments: documents that share rare shingles in one place.

An index's windows are entered under the shingles that are smallest in some permutation. A question
is looked up under all of its shingles, so that only the index's side is sampled: see ADR
0007-the-index. What is proposed here proves nothing; the text is read and aligned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.detect.model import QUESTION
from contam.index.array_files import fetch_rows
from contam.index.minhash import MOST_WINDOWS, SHINGLE, WINDOW
from contam.kernels.windows import count_live, find_shingles, hash_shingles, propose_documents
from contam.tables.distinct import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.detect.match.token_view import SearchView
    from contam.detect.model import Bools, Int64s
    from contam.index.array_files import Rows
    from contam.index.segment import Segment

CHANCE: Final = 1e-4
"""A document is proposed when fewer windows than this would share as much by chance."""

LEAST_WINDOWS: Final = 1 << 20
"""A corpus of fewer windows is looked at as if it had so many."""

MOST_DOCUMENTS: Final = 16
"""Documents proposed for one item: the best, and those as good as the last of them."""

#: Weights are whole numbers, so that their sums do not depend on the order of adding.
_SCALE: Final = 1024
_KEY_MASK: Final = np.uint32(0xFFFFFFF0)


@dataclass(frozen=True, slots=True, eq=False)
class _Questions:
    """Shingles of the items that have a question.

    keys   uint32[m], distinct shingles, ascending
    first  int64[items + 1], where an item's begin in `which`: int64[n], indices into keys
    span   int64[items], neighbouring windows that its copy may reach over
    """

    keys: NDArray[np.uint32]
    first: Int64s
    which: Int64s
    span: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The windows of a segment's MinHash part: what does not hang on who asks.

    first   int64[documents + 1], first window of each document
    dead    bool[documents], those that no longer count;  any_dead  whether there are some
    n_live  windows of the documents that count
    """

    segment: Segment
    first: Int64s
    dead: Bools
    any_dead: bool
    n_live: int

    @classmethod
    def of(cls, segment: Segment, dead: Bools) -> Windows:
        """Read them. Raises IndexDamageError when a file is not what was written."""
        first = segment.arrays["minhash_windows"].check_all().astype(np.int64)
        return cls(segment, first, dead, bool(dead.any()), int(np.diff(first)[~dead].sum()))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Where the keys of the questions stand in one segment's entries: int64[m] each."""

    windows: Windows
    entries: NDArray[np.uint8]
    first: Int64s
    stop: Int64s


def near_copies(view: SearchView, windows: Sequence[Windows]) -> dict[Path, Int64s]:
    """Documents that the MinHash parts of segments propose for the items of a view, ascending.

    windows  of all segments of an answer at once, so that how an index is cut decides nothing
    return   by the folder of the segment

    Raises IndexDamageError when a file of an index is not what was written.
    """
    questions = _questions(view)
    if not len(questions.keys):
        return {}
    fetch_rows(_rows_of(window.segment, questions.keys) for window in windows)
    rows = [_look_up(window, questions.keys) for window in windows]
    weight, least = _weights(questions.keys, rows)
    tables = []
    for row in rows:
        table, used = propose_documents(
            questions.first,
            questions.which,
            questions.span,
            weight,
            least,
            row.entries,
            row.first,
            row.stop,
            row.windows.first,
        )
        table = table[:used]
        tables.append(table[~row.windows.dead[table[:, 1]]])
    return {
        row.windows.segment.folder: documents
        for row, documents in zip(rows, _best(tables), strict=True)
    }


def _questions(view: SearchView) -> _Questions:
    n_items = view.items.n_items
    token, starts = view.gram_table.token, view.gram_table.part_start[: 4 * n_items + 1]
    out = np.empty(int(starts[-1]) + 1, np.uint32)
    n_shingles = np.zeros(n_items, np.int64)
    total = 0
    begins = starts[QUESTION::4].tolist()
    ends = starts[QUESTION + 1 :: 4].tolist()
    for item, (lo, hi) in enumerate(zip(begins, ends, strict=True)):
        n_shingles[item] = hash_shingles(token, lo, hi, SHINGLE, out[total:])
        total += int(n_shingles[item])
    owner = np.repeat(np.arange(n_items, dtype=np.uint64), n_shingles)
    shingle = (out[:total] & _KEY_MASK).astype(np.uint64)
    pairs = distinct((owner << np.uint64(32)) | shingle)
    owner_of = (pairs >> np.uint64(32)).astype(np.int64)
    keys, which = np.unique((pairs & np.uint64(0xFFFFFFFF)).astype(np.uint32), return_inverse=True)
    return _Questions(
        keys=keys,
        first=np.searchsorted(owner_of, np.arange(n_items + 1)).astype(np.int64),
        which=which.astype(np.int64),
        span=2 + n_shingles // WINDOW,
    )


def _rows_of(segment: Segment, keys: NDArray[np.uint32]) -> Rows:
    """The entries of the buckets of these keys."""
    starts = segment.arrays["minhash_starts"].check_all()
    bucket = (keys >> np.uint32(16)).astype(np.int64)
    return segment.arrays["minhash_entries"], starts[bucket], starts[bucket + 1]


def _look_up(windows: Windows, keys: NDArray[np.uint32]) -> _Rows:
    file, lo, hi = _rows_of(windows.segment, keys)
    entries = file.check_many(lo, hi)
    first, stop = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    starts = windows.segment.arrays["minhash_starts"].check_all()
    find_shingles(keys, starts, entries, first, stop)
    return _Rows(windows, entries, first, stop)


def _weights(keys: NDArray[np.uint32], rows: Sequence[_Rows]) -> tuple[Int64s, int]:
    """What sharing each key weighs, int64[m], 0 where it is too frequent; and what is enough.

    The weight is the surprise: the logarithm of how many windows there are for one with the key.
    """
    count = np.zeros(len(keys), np.int64)
    frequent = np.zeros(len(keys), np.bool_)
    n_windows = 0
    for row in rows:
        capped = row.windows.segment.arrays["minhash_capped"].check_all()
        if len(capped):
            # Sorted in the file, as every set of keys there.
            at = np.minimum(np.searchsorted(capped, keys), len(capped) - 1)
            frequent |= capped[at] == keys
        n_windows += row.windows.n_live
        if row.windows.any_dead:
            count_live(row.entries, row.first, row.stop, row.windows.first, row.windows.dead, count)
        else:
            count += row.stop - row.first
    n_windows = max(n_windows, LEAST_WINDOWS)
    frequent |= (count > MOST_WINDOWS) | (count == 0)
    weight = np.rint(_SCALE * np.log(n_windows / np.maximum(count, 1))).astype(np.int64)
    weight[frequent] = 0
    return weight, int(np.rint(_SCALE * np.log(n_windows / CHANCE)))


def _best(tables: Sequence[NDArray[np.int64]]) -> list[Int64s]:
    """Of each segment's (item, document, weight) rows the documents that are good enough."""
    rows = np.concatenate([*tables, np.empty((0, 3), np.int64)])
    segment = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    order = np.lexsort((-rows[:, 2], rows[:, 0]))
    items = rows[order, 0]
    first = np.searchsorted(items, items)
    last = np.minimum(first + MOST_DOCUMENTS, np.searchsorted(items, items, side="right")) - 1
    keep = order[rows[order, 2] >= rows[order[last], 2]]
    return [np.unique(rows[keep[segment[keep] == number], 1]) for number in range(len(tables))]
