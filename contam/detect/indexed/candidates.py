"""Choose which documents of an index are worth reading for the items of a view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.detect.match.grams import GramPlaces
from contam.detect.model import ANSWER, CHOICES, N_PARTS, QUESTION
from contam.index.model import KEY_BITS
from contam.kernels.candidates import (
    CLOSED,
    ItemGrams,
    describe_places,
    hash_places,
    open_by_reach,
    open_by_weight,
)
from contam.kernels.postings import POSTING_WORDS, find_postings
from contam.tables.distinct import distinct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.detect.match.token_view import SearchView
    from contam.detect.model import Bools, Int32s, Int64s, Uint64s
    from contam.index.model import Recipe
    from contam.index.segment import Segment

#: A document in which only runs below the guarantee were seen is read when what was seen weighs
#: this share of an item part. The scan reports such a document from 0.3 on; an index sees one gram
#: in `stride`, so about a quarter of that.
LEAST_SHARE: Final = 0.1
_DROPPED_BITS = np.uint64(64 - KEY_BITS)
_COLUMNS = np.dtype([("gram", "<i8"), ("row", "<i8"), ("hash", "<u8")])


@dataclass(frozen=True, slots=True, eq=False)
class PlacedSegment:
    """A segment as a piece of the whole.

    number  int32[shards of its manifest], their place in the whole; -1 for those that do not count
    state   uint8[documents], SHUT where no answer counts the document
    seeds   uint64[shards of its manifest], see `document_seed`
    """

    segment: Segment
    number: Int32s
    state: NDArray[np.uint8]
    seeds: Uint64s


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Lookup:
    """The grams of a view's items, as an index of this recipe has to be asked for them.

    keys   uint64[grams], 40 bits each
    order  int64[grams], the grams by their keys: neighbours are together in an index
    grams  their places in the items, and how far a run must reach from each
    view, recipe  what they were made for
    """

    keys: Uint64s
    order: Int64s
    grams: ItemGrams
    view: SearchView
    recipe: Recipe

    @classmethod
    def of(cls, view: SearchView, recipe: Recipe) -> Lookup:
        """Make the lookup of a view."""
        hashes, start, place, part, common = _grams_of(view, recipe.gram)
        followed = _followed(view, recipe.guarantee)
        context = np.empty(len(place), np.uint32)
        ways = np.empty(len(place), np.uint16)
        describe_places(
            view.gram_table.token,
            view.gram_table.part_start,
            place,
            part,
            followed,
            recipe.gram,
            recipe.guarantee,
            context,
            ways,
        )
        weak = followed[part] & ~np.repeat(common, np.diff(start))
        keys = hashes >> _DROPPED_BITS
        return cls(
            keys=keys,
            order=np.argsort(keys, kind="stable"),
            grams=ItemGrams(start, place, context, ways, weak),
            view=view,
            recipe=recipe,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What looking the items up gave.

    documents  for each segment the documents to read, int64, ascending
    near       bool, for each of those: only `near_copies` names it, no gram does
    capped     bool[grams]: grams of which an index keeps only some of the documents
    """

    documents: tuple[Int64s, ...]
    near: tuple[Bools, ...]
    capped: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Where the grams of a lookup stand in one segment; only those that do.

    which  int64[n], gram; begin, end  int64[n], its first posting and the one behind its last
    """

    which: Int64s
    begin: Int64s
    end: Int64s

    def take(self, keep: Bools) -> Ranges:
        """Some of them."""
        return Ranges(self.which[keep], self.begin[keep], self.end[keep])


def find_candidates(
    lookup: Lookup,
    parts: Sequence[PlacedSegment],
    near_copies: Mapping[Path, Int64s] | None = None,
    torn: Mapping[Path, Int64s] | None = None,
) -> Candidates:
    """Look all grams up in all segments and choose the documents to read.

    The states of the parts' documents are changed on the way, and the same when this returns.

    near_copies  further documents to read, by the folder of their segment: see `near_copies`
    torn         the same: see `torn_documents`

    Raises IndexDamageError when a file of an index is not what was written.
    """
    ranges = [look_up(lookup, part.segment) for part in parts]
    total = np.zeros(len(lookup.keys), np.int64)
    for some in ranges:
        total[some.which] += some.end - some.begin
    frequent = total > lookup.recipe.cap
    kept: Sequence[Frequent | None] = [None] * len(parts)
    capped = np.zeros(len(lookup.keys), np.bool_)
    if frequent.any():
        kept, capped = gather_frequent(frequent, ranges, parts, lookup.recipe.cap)
    documents, near = [], []
    for number, part in enumerate(parts):
        found = ranges[number]
        rare = found.take(~frequent[found.which])
        opened = open_documents(lookup, part.segment, part.state, rare, kept[number])
        letters = (torn or {}).get(part.segment.folder, np.empty(0, np.int64))
        opened = distinct(np.concatenate([opened, letters[part.state[letters] == CLOSED]]))
        more = (near_copies or {}).get(part.segment.folder, np.empty(0, np.int64))
        documents.append(distinct(np.concatenate([opened, more[part.state[more] == CLOSED]])))
        near.append(~np.isin(documents[-1], opened))
        capped[capped_here(lookup.keys, part.segment)] = True
    return Candidates(tuple(documents), tuple(near), capped)


def look_up(lookup: Lookup, segment: Segment) -> Ranges:
    """Where the grams of a lookup stand in a segment."""
    starts, postings = segment.arrays["starts"], segment.arrays["postings"]
    starts.check_all()
    keys = lookup.keys[lookup.order]
    bucket = (keys >> np.uint64(24)).astype(np.int64)
    fresh = np.ones(len(bucket), np.bool_)
    fresh[1:] = bucket[1:] != bucket[:-1]
    bucket = bucket[fresh]
    postings.check_many(starts.array[bucket], starts.array[bucket + 1])
    begin, end = find_postings(keys, starts.array, postings.array)
    which = np.flatnonzero(end > begin)
    return Ranges(lookup.order[which], begin[which], end[which])


def open_documents(
    lookup: Lookup,
    segment: Segment,
    state: NDArray[np.uint8],
    rare: Ranges,
    frequent: Frequent | None,
) -> Int64s:
    """Documents of one segment that the hits make worth reading; `state` is as before then."""
    entries = segment.arrays["doc_entries"]
    entries.check_all()
    opened: list[Int64s] = []
    hits: list[Int64s] = []
    pieces = [(rare, segment.arrays["postings"].array)]
    if frequent is not None:
        pieces.append((frequent.ranges, frequent.postings))
    for ranges, postings in pieces:
        found = (ranges.which, ranges.begin, ranges.end)
        strong, weak = open_by_reach(found, postings, entries.array, lookup.grams, state)
        opened.append(strong)
        hits.append(weak)
    ordered = np.sort(np.concatenate(hits))
    plan = lookup.view.gram_table
    weights = (plan.weight, plan.part_weight)
    opened.append(
        open_by_weight(ordered, lookup.recipe.gram, plan.part_start, weights, LEAST_SHARE, state)
    )
    documents = np.concatenate(opened)
    state[documents] = CLOSED
    return documents


def capped_here(keys: Uint64s, segment: Segment) -> Int64s:
    """Which of the keys this segment keeps only in part."""
    capped = segment.arrays["capped_key"]
    if not len(capped):
        return np.empty(0, np.int64)
    capped.check_all()
    at = np.minimum(np.searchsorted(capped.array, keys), len(capped) - 1)
    return np.flatnonzero(capped.array[at] == keys)


def _followed(view: SearchView, guarantee: int) -> Bools:
    """Parts that are worth reading a document for although only shorter runs were seen."""
    n_tokens = np.diff(view.gram_table.part_start).reshape(-1, N_PARTS)
    followed = np.ones(n_tokens.shape, np.bool_)
    followed[:, CHOICES] = n_tokens[:, QUESTION] < guarantee
    followed[:, ANSWER] = False
    return followed.reshape(-1)


def _grams_of(view: SearchView, gram: int) -> tuple[Uint64s, Int32s, Int32s, Int32s, Bools]:
    """Distinct grams, where the places of each begin, the places, their parts, what is common."""
    plan = view.gram_table
    grams = GramPlaces.of(plan.token, plan.part_start, gram)
    n_items = view.items.n_items
    owners = grams.owners(view.benchmark)
    return grams.key, grams.start, grams.place, grams.part, grams.common(owners, n_items)


@dataclass(frozen=True, slots=True, eq=False)
class Frequent:
    """What is kept of the frequent grams in one segment: a small table of postings of its own.

    ranges    where the grams are in it
    postings  uint16[n, POSTING_WORDS]
    """

    ranges: Ranges
    postings: NDArray[np.uint16]


def gather_frequent(
    frequent: Bools,
    ranges: Sequence[Ranges],
    parts: Sequence[PlacedSegment],
    cap: int,
) -> tuple[list[Frequent], Bools]:
    """Choose, for each frequent gram, the `cap` postings that count.

    Every segment keeps at most `cap` postings of a gram. Over several segments the same rule is
    applied once more, so that how an index is cut into segments changes no answer.

    Documents that are not answered for are left out first, then postings that repeat document and
    context of an earlier one; of the rest those with the smallest document hash stay.

    frequent  bool[grams];  ranges  of all grams in each segment
    return    (kept in each segment, bool[grams]: whether any was left out for being too many)
    """
    capped = np.zeros(len(frequent), np.bool_)
    gathered = [
        _postings_of(frequent, found, part) for found, part in zip(ranges, parts, strict=True)
    ]
    number = np.repeat(np.arange(len(parts)), list(map(len, gathered)))
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
    for at, part in enumerate(parts):
        mine = every[bounds[at] : bounds[at + 1]][keep[bounds[at] : bounds[at + 1]]]
        mine = mine[np.lexsort((mine["row"], mine["gram"]))]
        kept.append(_table(mine["gram"], part.segment.arrays["postings"].array[mine["row"]]))
    return kept, capped


def _table(gram: Int64s, postings: NDArray[np.uint16]) -> Frequent:
    which, begin = np.unique(gram, return_index=True)
    end = np.append(begin[1:], len(gram)).astype(np.int64)
    table = np.ascontiguousarray(postings).reshape(-1, POSTING_WORDS)
    # The kernels are compiled for arrays that nobody writes to.
    table.flags.writeable = False
    return Frequent(Ranges(which.astype(np.int64), begin.astype(np.int64), end), table)


def _postings_of(frequent: Bools, ranges: Ranges, part: PlacedSegment) -> NDArray[np.void]:
    """The postings of the frequent grams in one segment that may count: see _COLUMNS."""
    segment = part.segment
    mine = ranges.take(frequent[ranges.which])
    lengths = mine.end - mine.begin
    row = np.repeat(mine.begin - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    gram = np.repeat(mine.which, lengths)
    words = segment.arrays["postings"].array[row].astype(np.int64)
    document = segment.document_of(words[:, 3] | (words[:, 4] << 16))
    live = part.state[document] == CLOSED
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
    # Of each document's shard and row: the same however an index is cut.
    shard, rows = segment.place_of(document[chosen])
    hashes = np.empty(len(chosen), np.uint64)
    hash_places(part.seeds[shard], rows, hashes)
    found["hash"] = hashes
    return found
