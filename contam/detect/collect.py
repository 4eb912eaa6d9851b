"""What a worker remembers of the documents it has matched, in bounded memory.

Collections merge in any order and any grouping to the same answer: counts add up, runs take the
maximum, the best document and the documents kept as evidence follow one total order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.model import Pairs, Totals
from contam.detect.pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.lane import Lane
    from contam.detect.model import Bools, Float64s, Int32s, Int64s
    from contam.detect.policy import Policy

_PRUNE_ROWS = 1 << 15
#: Pairs that wait to be scored together: a policy's work over all items is done once for them.
_COUNT_ROWS = 1 << 15

#: How much the parts count, in PARTS order, when two documents score the same. Uneven, so that
#: documents which hold different parts do not tie again.
_TIE_WEIGHTS = (1.0, 8.0, 2.7, 2.1)


def fullness(pairs: Pairs) -> Float64s:
    """How much of its item each document holds, float64[m]: of equal scores the fullest is best.

    Only what then still ties is decided by where the documents stand, so what is said of an item
    does not hang on the order of the corpus.
    """
    full: Float64s = 16.0 * pairs.answer_near.astype(np.float64)
    # Column by column: a product of matrices may round differently for another number of rows.
    for part, weight in enumerate(_TIE_WEIGHTS):
        full += weight * pairs.coverage[:, part].astype(np.float64)
        full += 1e-6 * weight * (pairs.longest[:, part] + pairs.aligned[:, part])
    return full


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Pairs by item, the fullest document first, then by place: one order for every policy.

    full   float64[m], fullness of the pairs;  order  int64[m], rows of the pairs
    start  int64[k], where each item's rows begin in `order`
    """

    full: Float64s
    order: Int64s
    start: Int64s

    @classmethod
    def of(cls, pairs: Pairs) -> Grouped:
        """The order of pairs, at least one of them."""
        full = fullness(pairs)
        order = np.lexsort((pairs.row, pairs.shard, -full, pairs.item))
        items = pairs.item[order]
        fresh = np.concatenate([[True], items[1:] != items[:-1]])
        return cls(full, order, np.flatnonzero(fresh))

    def best(self, score: Float64s) -> Int64s:
        """Of each item the first of its rows with the highest score, by item."""
        scores = score[self.order]
        highest = np.maximum.reduceat(scores, self.start)
        lengths = np.diff(self.start, append=len(scores))
        at = np.where(scores == np.repeat(highest, lengths), np.arange(len(scores)), len(scores))
        best: Int64s = self.order[np.minimum.reduceat(at, self.start)]
        return best


@dataclass(eq=False)
class PolicyCount:
    """Per item, what one policy counted and its best document."""

    n_documents: Int64s
    n_occurrences: Int64s
    best_score: Float64s
    best_full: Float64s
    best: Pairs

    @classmethod
    def empty(cls, n_items: int) -> PolicyCount:
        """Nothing seen yet."""
        return cls(
            np.zeros(n_items, np.int64),
            np.zeros(n_items, np.int64),
            np.zeros(n_items, np.float64),
            np.zeros(n_items, np.float64),
            Pairs.zeros(n_items),
        )

    def add(self, pairs: Pairs, score: Float64s, hit: NDArray[np.bool_], grouped: Grouped) -> None:
        """Count pairs of documents not counted before; `grouped` says which go together."""
        places = np.maximum(pairs.n_places, np.maximum(pairs.n_runs.max(axis=1, initial=0), 1))
        occurrences = np.where(pairs.n_places > 0, pairs.n_places, places)
        np.add.at(self.n_documents, pairs.item[hit], 1)
        np.add.at(self.n_occurrences, pairs.item[hit], occurrences[hit])
        best = grouped.best(score)
        self.offer(pairs, best, score[best], grouped.full[best])

    def offer(self, pairs: Pairs, rows: Int64s, score: Float64s, full: Float64s) -> None:
        """Take each of these rows (one an item at most) where it beats the best document so far."""
        at, shard, row = pairs.item[rows], pairs.shard[rows], pairs.row[rows]
        known = self.best.item[at] >= 0
        old, old_full = self.best_score[at], self.best_full[at]
        earlier = _is_earlier(shard, row, self.best.shard[at], self.best.row[at])
        first = (full > old_full) | ((full == old_full) & earlier)
        better = ~known | (score > old) | ((score == old) & first)
        to, winners = at[better], rows[better]
        for column in fields(Pairs):
            getattr(self.best, column.name)[to] = getattr(pairs, column.name)[winners]
        self.best_score[to] = score[better]
        self.best_full[to] = full[better]

    def merge(self, other: PolicyCount) -> None:
        """Add what another worker counted."""
        self.n_documents += other.n_documents
        self.n_occurrences += other.n_occurrences
        seen = np.flatnonzero(other.best.item >= 0)
        self.offer(other.best, seen, other.best_score[seen], other.best_full[seen])


@dataclass(frozen=True, slots=True, eq=False)
class Last:
    """Of each item with as many documents as are kept, the last: float64[n], int32[n], int64[n]."""

    rank: Float64s
    shard: Int32s
    row: Int64s

    @classmethod
    def of(cls, n_items: int) -> Last:
        """No item has so many yet."""
        rank = np.full(n_items, -np.inf)
        return cls(rank, np.zeros(n_items, np.int32), np.zeros(n_items, np.int64))

    def outranks(self, pairs: Pairs, rank: Float64s) -> Bools:
        """Which pairs come behind the last of their item, and will never be kept."""
        last, shard, row = self.rank[pairs.item], self.shard[pairs.item], self.row[pairs.item]
        later = _is_earlier(shard, row, pairs.shard, pairs.row)
        behind: Bools = (rank < last) | ((rank == last) & later)
        return behind

    def note(self, pairs: Pairs, rank: Float64s, rows: Int64s) -> None:
        """These rows are now the last of their items."""
        items = pairs.item[rows]
        self.rank[items] = rank[rows]
        self.shard[items] = pairs.shard[rows]
        self.row[items] = pairs.row[rows]


@dataclass(eq=False)
class Collection:
    """All that one lane remembers.

    longest_at  int32[item tokens], longest run in any document from that token on
    fresh       pairs and pieces that no policy has been asked about yet
    pairs, pieces, rank   documents kept as evidence, best first within an item
    """

    lane: Lane
    policies: tuple[Policy, ...]
    ranking: Policy
    most_documents: int
    longest_at: NDArray[np.int32]
    _last: Last
    n_tokens: int = 0
    _counts: list[PolicyCount] = field(default_factory=list)
    _fresh: list[tuple[Pairs, Pieces]] = field(default_factory=list)
    _n_fresh: int = 0
    _pairs: list[Pairs] = field(default_factory=list)
    _pieces: list[Pieces] = field(default_factory=list)
    _rank: list[Float64s] = field(default_factory=list)
    _waiting: int = 0
    _pruned: int = 0

    @classmethod
    def start(
        cls, lane: Lane, policies: Sequence[Policy], ranking: Policy, most_documents: int
    ) -> Collection:
        """An empty collection."""
        n = lane.items.n_items
        return cls(
            lane=lane,
            policies=tuple(policies),
            ranking=ranking,
            most_documents=most_documents,
            longest_at=np.zeros(len(lane.plan.token), np.int32),
            _last=Last.of(n),
            _counts=[PolicyCount.empty(n) for _ in policies],
        )

    def add(self, pairs: Pairs, pieces: Pieces) -> None:
        """Take the pairs of documents that no collection has seen before."""
        if len(pairs) == 0:
            return
        self._fresh.append((pairs, pieces))
        self._n_fresh += len(pairs)
        if self._n_fresh > _COUNT_ROWS:
            self._count()

    @property
    def counts(self) -> list[PolicyCount]:
        """What each policy counted in all that was added."""
        self._count()
        return self._counts

    def _count(self) -> None:
        """Ask the policies about the fresh pairs, and keep them."""
        if not self._fresh:
            return
        tables = [pairs for pairs, _ in self._fresh]
        pairs = Pairs.concat(tables)
        pieces = Pieces.concat([pieces for _, pieces in self._fresh], _shifts(tables))
        self._fresh, self._n_fresh = [], 0
        items = self.lane.items
        grouped = Grouped.of(pairs)
        rank = None
        for policy, count in zip(self.policies, self._counts, strict=True):
            score = policy.score_pairs(pairs, items)
            count.add(pairs, score, policy.hits(pairs, items, score), grouped)
            if policy == self.ranking:
                rank = score
        self._keep(pairs, pieces, self.ranking.score_pairs(pairs, items) if rank is None else rank)

    def _keep(self, pairs: Pairs, pieces: Pieces, rank: Float64s) -> None:
        behind = self._last.outranks(pairs, rank)
        if behind.any():
            stay = np.flatnonzero(~behind)
            pieces = pieces.of_pairs(stay, len(pairs))
            pairs, rank = pairs.take(stay), rank[stay]
        self._pairs.append(pairs)
        self._pieces.append(pieces)
        self._rank.append(rank)
        self._waiting += len(pairs)
        if self._waiting > max(_PRUNE_ROWS, 2 * self._pruned):
            self.prune()

    def prune(self) -> None:
        """Keep the best documents of every item, by rank, then shard and row."""
        if not self._pairs or (len(self._pairs) == 1 and self._waiting == self._pruned):
            return
        rank = np.concatenate(self._rank)
        shifts = _shifts(self._pairs)
        # What was joined is let go at once: two workers may do this at the same time.
        pairs, self._pairs = Pairs.concat(self._pairs), []
        pieces, self._pieces = Pieces.concat(self._pieces, shifts), []
        order = np.lexsort((pairs.row, pairs.shard, -rank, pairs.item))
        items = pairs.item[order]
        first = np.flatnonzero(np.concatenate([[True], items[1:] != items[:-1]]))
        lengths = np.diff(np.append(first, len(items)))
        place = np.arange(len(items)) - np.repeat(first, lengths)
        keep = order[place < self.most_documents]
        self._last.note(pairs, rank, order[place == self.most_documents - 1])
        self._pairs = [pairs.take(keep)]
        self._rank = [rank[keep]]
        self._pieces = [pieces.of_pairs(keep, len(pairs))]
        self._waiting = self._pruned = len(keep)

    def merge(self, other: Collection) -> None:
        """Add what another worker collected over other documents."""
        np.maximum(self.longest_at, other.longest_at, out=self.longest_at)
        self.n_tokens += other.n_tokens
        for mine, theirs in zip(self.counts, other.counts, strict=True):
            mine.merge(theirs)
        for pairs, pieces, rank in zip(other._pairs, other._pieces, other._rank, strict=True):
            self._keep(pairs, pieces, rank)

    def evidence(self) -> tuple[Pairs, Pieces]:
        """The documents kept, by item and best first, and their pieces."""
        self._count()
        self.prune()
        if not self._pairs:
            none = np.empty(0, np.int32)
            empty = Pieces(none.astype(np.int64), none.astype(np.int8), *([none] * 5))
            return Pairs.empty(), empty
        return self._pairs[0], self._pieces[0]

    def totals(self, policy: int) -> Totals:
        """What all documents together say, for the policy with this number."""
        count = self.counts[policy]
        return Totals(
            longest_at=self.longest_at,
            n_documents=count.n_documents,
            n_occurrences=count.n_occurrences,
            best_score=count.best_score,
            best_shard=count.best.shard,
            best_row=count.best.row,
            best_pair=count.best,
        )


def _is_earlier(shard: Int32s, row: Int64s, other_shard: Int32s, other_row: Int64s) -> Bools:
    """Which documents stand before the others in the order of the corpus."""
    earlier: Bools = (shard < other_shard) | ((shard == other_shard) & (row < other_row))
    return earlier


def _shifts(tables: Sequence[Pairs]) -> list[int]:
    """Row at which each table begins when all stand one behind the other."""
    ends = np.cumsum([len(table) for table in tables])
    return [0, *(int(end) for end in ends[:-1])]
