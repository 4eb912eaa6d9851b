"""Match documents whose shard is gone by the hashes that the index holds.

Of such a document the index knows its length and which item grams stand at which of its tokens.
Those tokens are written into an otherwise empty document, which is then matched like any other.
Up to three neighbours on either side of a gram are known by four bits each, so an end may be said
to reach further than it does. Positions count tokens, since the characters are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.corpus.batches import DocBatch
from contam.detect.indexed.candidates import look_up
from contam.kernels.candidates import fill_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from contam.detect.indexed.candidates import Lookup
    from contam.detect.indexed.indexes import PlacedSegment
    from contam.detect.model import Int64s, Uint64s

    Tokens = tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]

#: Tokens of such documents that are held at once.
_MOST_TOKENS = 1 << 22


def hashed_batches(
    lookup: Lookup, part: PlacedSegment, documents: Int64s, shard: Int64s, row: Int64s
) -> Iterator[tuple[DocBatch, Tokens]]:
    """These documents of a segment as far as the items' grams tell: batches with their tokens.

    documents   int64[n], ascending
    shard, row  int64[n], where they stood; rows of one shard ascend
    """
    lengths = part.segment.arrays["doc_tokens"]
    lengths.check_all()
    n_tokens = lengths.array[documents].astype(np.int64)
    begin = 0
    while begin < len(documents):
        end = begin + 1
        while (
            end < len(documents)
            and shard[end] == shard[begin]
            and int(n_tokens[begin : end + 1].sum()) <= _MOST_TOKENS
        ):
            end += 1
        chosen = slice(begin, end)
        starts = np.concatenate([[0], np.cumsum(n_tokens[chosen])])
        hashes = _fill(lookup, part, documents[chosen], starts)
        yield _batch(int(shard[begin]), row[chosen], starts), (hashes, _spans(starts), starts)
        begin = end


def _fill(lookup: Lookup, part: PlacedSegment, documents: Int64s, starts: Int64s) -> Uint64s:
    """The tokens of the documents, 0 where nothing is known."""
    segment = part.segment
    entries = segment.arrays["doc_entries"].array
    ranges = look_up(lookup, segment)
    hashes = np.zeros(int(starts[-1]), np.uint64)
    fill_tokens(
        (ranges.which, ranges.begin, ranges.end),
        segment.arrays["postings"].array,
        (documents, entries[documents].astype(np.int64), entries[documents + 1].astype(np.int64)),
        starts,
        lookup.grams,
        lookup.view.gram_table.token,
        (lookup.recipe.gram, lookup.recipe.stride),
        hashes,
    )
    return hashes


def _batch(shard: int, rows: Int64s, starts: Int64s) -> DocBatch:
    # One character a token: what the kernels count as characters then counts tokens.
    data = np.full(int(starts[-1]), ord("."), np.uint8)
    return DocBatch(shard, int(rows[0]), data, starts, 0, 0, 0, 0, rows=rows)


def _spans(starts: Int64s) -> NDArray[np.int32]:
    lengths = np.diff(starts)
    within = np.arange(int(starts[-1])) - np.repeat(starts[:-1], lengths)
    return np.stack([within, within + 1], axis=1).astype(np.int32)
