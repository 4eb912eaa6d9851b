"""Choose which documents of an index are worth reading for the items of a view.

Near copies are documents that share rare shingles in one place. An index's windows are entered
under the shingles that are smallest in some permutation. A question is looked up under all of its
shingles, so that only the index's side is sampled: see ADR 0007-the-index. What is proposed so
proves nothing; the text is read and aligned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.benchmark.items import PARTS
from contam.detect.match.grams import GramPlaces
from contam.detect.model import ANSWER, N_PARTS, QUESTION
from contam.detect.policies.common import part_sums
from contam.detect.policies.policy import shortest_run
from contam.index.array_files import fetch_rows
from contam.index.minhash import MOST_WINDOWS, SHINGLE, WINDOW
from contam.kernels.candidates import CLOSED, SHUT, Lists, hits_of, open_by_grams, worth_reading
from contam.kernels.constants import ANSWER_RUN, ANSWER_WEIGHT, LEAST_WEIGHT, WORTH_ALIGNING
from contam.kernels.windows import count_live, find_shingles, hash_shingles, propose_documents
from contam.tables.memory import distinct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.detect.match.token_view import SearchView
    from contam.detect.model import Bools, Float64s, Int32s, Int64s, Uint64s
    from contam.detect.policies.policy import Policy
    from contam.index.array_files import Rows
    from contam.index.model import Recipe
    from contam.index.segment import Segment


_ABSENT: Final = -1
#: More grams in a row than a part has: runs are found by their grams already.
_NO_RUN: Final = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class PlacedSegment:
    """A segment as a piece of the whole.

    number  int32[shards of its manifest], their place in the whole; -1 for those that do not count
    state   uint8[documents], SHUT where no answer counts the document
    """

    segment: Segment
    number: Int32s
    state: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Lookup:
    """The grams of a view's items, as an index of this recipe has to be asked for them.

    grams   uint64[grams], their hashes; order  int64[grams], those together that are near in an
            index
    start   int32[grams + 1], where a gram's places begin in the next two
    place   int32[p], the token where it begins
    loose   bool[p], whether a hit there counts by itself, and not in a run alone
    at      int32[tokens], the gram that begins there, -1 for none
    view, recipe  what they were made for
    """

    grams: Uint64s
    order: Int64s
    start: Int32s
    place: Int32s
    loose: Bools
    at: Int32s
    view: SearchView
    recipe: Recipe

    @classmethod
    def of(cls, view: SearchView, recipe: Recipe) -> Lookup:
        """Make the lookup of a view."""
        table = view.gram_table
        grams = GramPlaces.of(table.token, table.part_start, recipe.gram)
        common = grams.common(grams.owners(view.benchmark), view.items.n_items)
        at = np.full(len(table.token), _ABSENT, np.int32)
        n_places = np.diff(grams.start)
        at[grams.place] = np.repeat(np.arange(len(grams.key), dtype=np.int32), n_places)
        is_short = np.diff(table.part_start) < view.spec.min_run
        return cls(
            grams=grams.key,
            order=_near_first(grams.key),
            start=grams.start,
            place=grams.place,
            loose=~np.repeat(common, n_places) | is_short[grams.part],
            at=at,
            view=view,
            recipe=recipe,
        )

    @property
    def n_run(self) -> int:
        """Grams that an index has of any run which a scan reports, in a row."""
        recipe = self.recipe
        return max(1, (self.view.spec.min_run - recipe.guarantee) // recipe.stride + 1)

    def windows(self, known: Bools, capped: Bools) -> NDArray[np.int32]:
        """The grams of runs, and of whole short parts, that a document may hold: int32[w, n_run].

        known   bool[grams], those that a segment has
        capped  bool[grams], those of which it has only some documents: -1 in a window, which counts
                as if every document had it, but where there is no other
        """
        table, recipe = self.view.gram_table, self.recipe
        gram, stride, n_run = recipe.gram, recipe.stride, self.n_run
        starts = np.flatnonzero(self.at >= 0)
        starts = starts[known[self.at[starts]]]
        part = np.searchsorted(table.part_start, starts, side="right") - 1
        left = (table.part_start[part + 1] - starts - gram) // stride + 1
        # Of a short part all grams, from its first token on.
        is_first = starts == table.part_start[part]
        length = np.where(is_first, np.minimum(left, n_run), n_run)
        keep = left >= length
        starts, length = starts[keep], length[keep]
        found = np.full((len(starts), n_run), _ABSENT, np.int32)
        every, only = np.ones(len(starts), np.bool_), np.ones(len(starts), np.bool_)
        for step in range(n_run):
            inside = length > step
            numbers = self.at[np.where(inside, starts + step * stride, starts)]
            every &= known[numbers]
            only &= capped[numbers]
            found[inside, step] = numbers[inside]
        found[(found >= 0) & capped[found] & ~only[:, np.newaxis]] = _ABSENT
        found, starts, is_run = found[every], starts[every], (length == n_run)[every]
        if (n_run - 1) * stride > gram:
            return found
        # Of a run the first and the last gram tell all tokens: each is looked for once.
        first, last = self.at[starts[is_run]], self.at[starts[is_run] + (n_run - 1) * stride]
        ends = first.astype(np.int64) << 32 | last
        once = np.argsort(ends)
        once = once[np.diff(ends[once], prepend=-1) != 0]
        return np.concatenate([found[is_run][once], found[~is_run]])

    def capped_weight(self, capped: Bools) -> Float64s:
        """What the tokens in grams of which not every document is kept weigh: float64[parts]."""
        table = self.view.gram_table
        if not capped.any():
            return np.zeros(len(table.part_weight))
        covered = (self.at >= 0) & capped[self.at]
        begins = np.flatnonzero(covered)
        for step in range(1, self.recipe.gram):
            covered[begins + step] = True
        return part_sums(
            table.weight * covered, table.part_start[:-1], np.diff(table.part_start), np.float64
        )


def _near_first(hashes: Uint64s) -> Int64s:
    """The places of hashes by their upper halves: sorting numbers takes a tenth of `argsort`."""
    half = np.uint64(32)
    ordered = np.sort((hashes >> half << half) | np.arange(len(hashes), dtype=np.uint64))
    return (ordered & np.uint64(0xFFFFFFFF)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What looking the items up gave.

    documents  for each segment the documents to read, int64, ascending
    near       bool, for each of those: only `near_copies` names it, no gram does
    capped     bool[grams]: grams of which a segment keeps only some documents
    """

    documents: tuple[Int64s, ...]
    near: tuple[Bools, ...]
    capped: Bools


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
    documents, near = [], []
    capped = np.zeros(len(lookup.grams), np.bool_)
    for part in parts:
        lists, own = look_up(lookup, part.segment)
        capped |= own
        opened = open_documents(lookup, lists, own, part.state)
        letters = (torn or {}).get(part.segment.folder, np.empty(0, np.int64))
        opened = distinct(np.concatenate([opened, letters[part.state[letters] == CLOSED]]))
        more = (near_copies or {}).get(part.segment.folder, np.empty(0, np.int64))
        documents.append(distinct(np.concatenate([opened, more[part.state[more] == CLOSED]])))
        near.append(~np.isin(documents[-1], opened))
    return Candidates(tuple(documents), tuple(near), capped)


def look_up(lookup: Lookup, segment: Segment) -> tuple[Lists, Bools]:
    """The documents of a lookup's grams in a segment, and of which grams it has only some."""
    keys = segment.keys_of(lookup.grams)
    found, end = segment.grams.find(keys[lookup.order])
    words = segment.grams.packed(found, end)
    first, stop = np.empty_like(found), np.empty_like(end)
    first[lookup.order], stop[lookup.order] = found, end
    return Lists(first, stop, words, segment.grams.width), segment.grams.capped(keys)


def open_documents(lookup: Lookup, lists: Lists, capped: Bools, state: NDArray[np.uint8]) -> Int64s:
    """Documents of one segment that are worth reading; `state` is as before then."""
    opened = open_by_grams(
        lookup.windows((lists.stop > lists.first) | capped, capped), lists, state
    )
    loose = np.empty(0, np.int64)
    if lookup.recipe.stride == 1:
        # Of what is taken with gaps, a run that counts is found by any gram.
        counted = lookup.loose & ~np.repeat(capped, np.diff(lookup.start))
        loose, _ = _held(lookup, lists, capped, counted, state, _NO_RUN)
    state[opened] = CLOSED
    return np.concatenate([opened, loose])


def items_in(lookup: Lookup, segment: Segment, documents: Int64s) -> Int64s:
    """The items of which a scan may report something in these documents, ascending."""
    lists, capped = look_up(lookup, segment)
    state = np.full(segment.n_documents, SHUT, np.uint8)
    state[documents] = CLOSED
    every = np.ones(len(lookup.place), np.bool_)
    _, parts = _held(lookup, lists, capped, every, state, lookup.n_run)
    found = distinct(parts // N_PARTS)
    n_items, variants = lookup.view.items.n_items, lookup.view.variants
    own = found[found < n_items]
    if variants is None:
        return own
    return distinct(np.concatenate([own, variants.owner[found[found >= n_items] - n_items]]))


def _held(
    lookup: Lookup,
    lists: Lists,
    capped: Bools,
    counted: Bools,
    state: NDArray[np.uint8],
    n_run: int,
) -> tuple[Int64s, Int64s]:
    """Documents that are CLOSED and hold enough of a part by the places that count, and the part.

    n_run  grams in a row that are enough
    """
    table, recipe = lookup.view.gram_table, lookup.recipe
    return worth_reading(
        np.sort(hits_of((lookup.start, lookup.place), counted, lists, state)),
        (recipe.gram, recipe.stride, n_run),
        table.part_start,
        (table.weight, table.part_weight, lookup.capped_weight(capped)),
        lookup.at,
        capped,
        lists,
        WORTH_ALIGNING,
    )


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


def items_at_risk(policy: Policy, lookup: Lookup, capped: Bools) -> Bools:
    """Items of which a run that the policy counts may have been missed for the cap: bool[items].

    A run is at risk when, wherever the index happened to sample it, only capped grams were met at
    one of the possible phases. A policy that weighs what it found is only in doubt when what is at
    risk weighs as much as its lowest threshold asks, or is nearly all of the question.

    capped  bool[grams], grams of which the index keeps only some documents
    """
    view = lookup.view
    at_risk = np.zeros(view.items.n_items, np.bool_)
    spec, traits = policy.spec, policy.traits
    table = view.gram_table
    met = lookup.place[np.repeat(capped, np.diff(lookup.start))]
    hit = distinct(np.searchsorted(table.part_start, met, side="right") - 1)
    for number in hit[hit < N_PARTS * len(at_risk)].tolist():
        item, part = divmod(number, N_PARTS)
        if PARTS[part] not in spec.parts:
            continue
        told = traits.needs_weights and part == ANSWER
        # What is weighed is aligned from the shortest runs on.
        least = view.spec.seed if traits.needs_weights else shortest_run(policy)
        run = max(ANSWER_RUN if told else least, lookup.recipe.guarantee)
        own = slice(int(table.part_start[number]), int(table.part_start[number + 1]))
        tokens = _tokens_at_risk(lookup, capped, own, run)
        weight = float(table.weight[own][tokens].sum(dtype=np.float64))
        some = bool(tokens.any())
        if told:
            some &= weight >= ANSWER_WEIGHT
        elif traits.needs_weights:
            whole = max(float(table.part_weight[number]), LEAST_WEIGHT)
            heavy = weight >= spec.thresholds[0][0] * whole
            if traits.sufficient_share and part == QUESTION:
                words = spec.number(traits.sufficient_share) * len(tokens)
                heavy |= int(tokens.sum()) >= words
            some &= heavy
        at_risk[item] |= some
    return at_risk


def _tokens_at_risk(lookup: Lookup, capped: Bools, own: slice, run: int) -> Bools:
    """Tokens of a part that lie in a run of `run` tokens that may have been missed."""
    gram, stride = lookup.recipe.gram, lookup.recipe.stride
    numbers = lookup.at[own]
    met = np.append((numbers >= 0) & capped[numbers], np.zeros(run, np.bool_))
    n = len(numbers)
    missed = np.zeros(n, np.bool_)
    for phase in range(stride):
        every = np.ones(n, np.bool_)
        for at in range(phase, run - gram + 1, stride):
            every &= met[at : at + n]
        missed |= every
    found = np.zeros(n, np.bool_)
    for begin in np.flatnonzero(missed[: max(0, n - run + 1)]).tolist():
        found[begin : begin + run] = True
    return found
