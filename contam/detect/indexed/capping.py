"""Choose which grams to keep where too many documents hold them.

Every segment keeps at most `cap` postings of a gram. Over several segments the same rule is applied
once more, so that how an index is cut into segments changes no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contam.kernels.candidates import CLOSED, hash_places
from contam.kernels.postings import POSTING_WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.indexed.candidates import Ranges
    from contam.detect.model import Bools, Int64s, Uint64s
    from contam.index.segment import Segment


@dataclass(frozen=True, slots=True, eq=False)
class Frequent:
    """What is kept of the frequent grams in one segment: a small table of postings of its own.

    ranges    where the grams stand in it
    postings  uint16[n, POSTING_WORDS]
    """

    ranges: Ranges
    postings: NDArray[np.uint16]


def gather_frequent(
    frequent: Bools,
    ranges: Sequence[Ranges],
    segments: Sequence[Segment],
    states: Sequence[NDArray[np.uint8]],
    seeds: Sequence[Uint64s],
    cap: int,
) -> tuple[list[Frequent], Bools]:
    """Choose, for each frequent gram, the `cap` postings that count.

    Documents that are not answered for are left out first, then postings that repeat document and
    context of an earlier one; of the rest those with the smallest document hash stay.

    frequent  bool[grams];  ranges  of all grams in each segment
    states    uint8[documents] of each segment
    seeds     uint64[shards of the manifest] for each segment, see `document_seed`
    return    (kept in each segment, bool[grams]: whether any was left out for being too many)
    """
    capped = np.zeros(len(frequent), np.bool_)
    gathered = [
        _postings_of(frequent, found, segment, state, seed)
        for found, segment, state, seed in zip(ranges, segments, states, seeds, strict=True)
    ]
    number = np.repeat(np.arange(len(segments)), [len(one) for one in gathered])
    every = np.concatenate(gathered)
    order = np.lexsort((every["row"], number, every["hash"], every["gram"]))
    gram = every["gram"][order]
    first = np.searchsorted(gram, gram)
    place = np.arange(len(gram)) - first
    capped[gram[place >= cap]] = True
    keep = np.zeros(len(every), np.bool_)
    keep[order[place < cap]] = True
    bounds = np.cumsum([0, *map(len, gathered)])
    kept = []
    for at, segment in enumerate(segments):
        mine = every[bounds[at] : bounds[at + 1]][keep[bounds[at] : bounds[at + 1]]]
        mine = mine[np.lexsort((mine["row"], mine["gram"]))]
        kept.append(_table(mine["gram"], segment.arrays["postings"].array[mine["row"]]))
    return kept, capped


def _table(gram: Int64s, postings: NDArray[np.uint16]) -> Frequent:
    from contam.detect.indexed.candidates import Ranges

    which, begin = np.unique(gram, return_index=True)
    end = np.append(begin[1:], len(gram)).astype(np.int64)
    table = np.ascontiguousarray(postings).reshape(-1, POSTING_WORDS)
    # The kernels are compiled for arrays that nobody writes to.
    table.flags.writeable = False
    return Frequent(Ranges(which.astype(np.int64), begin.astype(np.int64), end), table)


_COLUMNS = np.dtype([("gram", "<i8"), ("row", "<i8"), ("hash", "<u8")])


def _postings_of(
    frequent: Bools,
    ranges: Ranges,
    segment: Segment,
    state: NDArray[np.uint8],
    seeds: Uint64s,
) -> NDArray[np.void]:
    """The postings of the frequent grams in one segment that may count: see _COLUMNS."""
    mine = ranges.take(frequent[ranges.which])
    lengths = mine.end - mine.begin
    row = np.repeat(mine.begin - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    gram = np.repeat(mine.which, lengths)
    words = segment.arrays["postings"].array[row].astype(np.int64)
    document = segment.document_of(words[:, 3] | (words[:, 4] << 16))
    live = state[document] == CLOSED
    row, gram, document, words = row[live], gram[live], document[live], words[live]
    context = (words[:, 1] >> 8) | (words[:, 2] << 8)
    order = np.lexsort((row, context, document, gram))
    again = np.zeros(len(order), np.bool_)
    again[1:] = (
        (gram[order][1:] == gram[order][:-1])
        & (document[order][1:] == document[order][:-1])
        & (context[order][1:] == context[order][:-1])
    )
    chosen = np.sort(order[~again])
    found = np.empty(len(chosen), _COLUMNS)
    found["gram"], found["row"] = gram[chosen], row[chosen]
    found["hash"] = _hashes(segment, document[chosen], seeds)
    return found


def _hashes(segment: Segment, documents: Int64s, seeds: Uint64s) -> Uint64s:
    """Hash of each document's shard and row: the same however an index is cut."""
    shard, row = segment.place_of(documents)
    hashes = np.empty(len(documents), np.uint64)
    hash_places(seeds[shard], row, hashes)
    return hashes
