"""Collect the matches of workers in bounded memory.

Collections merge in any order and any grouping to the same answer: counts add up, runs take the
maximum, the best document and the documents kept as evidence follow one total order.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.match.pieces import Grouped, Hits, Pieces, PolicyCount, is_earlier
from contam.detect.model import Matches, Totals
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.match.by_source import FoundSources
    from contam.detect.match.token_view import TokenView
    from contam.detect.model import Float64s, Int32s, Int64s, Lengths
    from contam.detect.policies.policy import Policy

#: Matches that wait to be scored together: a policy's work over all items is done once for them.
_COUNT_ROWS = 1 << 15
#: Matches that wait before all but the top documents are let go.
_PRUNE_ROWS = 1 << 15
#: Tokens whose longest runs are merged at once.
_PIECE = 1 << 19


@dataclass(eq=False)
class TopDocuments:
    """Of every item the `most` documents that rank best, with their pieces of evidence.

    What is added in any order and any grouping leaves the same.

    last_rank, last_shard, last_row  of each item with as many documents as are kept, the last:
                                     float64[n], int32[n], int64[n]
    """

    most: int
    last_rank: Float64s
    last_shard: Int32s
    last_row: Int64s
    _matches: list[Matches] = field(default_factory=list)
    _pieces: list[Pieces] = field(default_factory=list)
    _rank: list[Float64s] = field(default_factory=list)
    _waiting: int = 0
    _pruned: int = 0

    @classmethod
    def of(cls, most: int, n_items: int) -> TopDocuments:
        """No item has a document yet."""
        rank = np.full(n_items, -np.inf)
        return cls(most, rank, np.zeros(n_items, np.int32), np.zeros(n_items, np.int64))

    def add(self, matches: Matches, pieces: Pieces, rank: Float64s) -> None:
        """Keep what may be among the best."""
        item = matches.item
        last, shard, row = self.last_rank[item], self.last_shard[item], self.last_row[item]
        later = is_earlier(shard, row, matches.shard, matches.row)
        # Behind the last of their item: they will never be kept.
        behind = (rank < last) | ((rank == last) & later)
        if behind.any():
            stay = np.flatnonzero(~behind)
            pieces = pieces.of_matches(stay, len(matches))
            matches, rank = matches.take(stay), rank[stay]
        self._matches.append(matches)
        self._pieces.append(pieces)
        self._rank.append(rank)
        self._waiting += len(matches)
        # Half as many again: while they are put in order they are there twice.
        if self._waiting > max(_PRUNE_ROWS, self._pruned + self._pruned // 2):
            self.prune()

    def prune(self) -> None:
        """Keep the best documents of every item, by rank, then shard and row."""
        if not self._matches or (len(self._matches) == 1 and self._waiting == self._pruned):
            return
        rank, self._rank = np.concatenate(self._rank), []
        tables, self._matches = self._matches, []
        pieces, self._pieces = self._pieces, []
        item, shard, row = (
            np.concatenate([getattr(table, name) for table in tables])
            for name in ("item", "shard", "row")
        )
        order = np.lexsort((row, shard, -rank, item))
        item = item[order]
        first = np.flatnonzero(np.concatenate([[True], item[1:] != item[:-1]]))
        place = np.arange(len(item)) - np.repeat(first, np.diff(np.append(first, len(item))))
        keep = order[place < self.most]
        last = place[place < self.most] == self.most - 1
        self._pieces = [Pieces.gather(pieces, [len(table) for table in tables], keep)]
        self._matches = [Matches.gather(tables, keep)]
        self._rank = [rank[keep]]
        kept = self._matches[0]
        items = kept.item[last]
        self.last_rank[items] = self._rank[0][last]
        self.last_shard[items], self.last_row[items] = kept.shard[last], kept.row[last]
        self._waiting = self._pruned = len(keep)
        if len(order) >= _PRUNE_ROWS:
            # The memory that was freed is in gaps between what stays.
            release_unused()

    def ranked(self) -> tuple[Matches, Pieces, Float64s]:
        """The documents kept, by item and best first, their pieces and ranks."""
        self.prune()
        if not self._matches:
            return Matches.zeros(0), Pieces.empty(), np.empty(0)
        return self._matches[0], self._pieces[0], self._rank[0]


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What several workers on one view share; it is changed only under the lock.

    hits  every match that a policy counts; None where nobody asks for them
    """

    counts: list[PolicyCount]
    top_documents: TopDocuments
    hits: list[Hits] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Collected:
    """What a collection holds, without the view it was made for: plain arrays.

    n_tokens  as of `Collection`;  counts  one a policy
    runs_at, runs           item tokens at which a run begins, ascending, and the longest of each
    matches, pieces, rank   the documents kept
    hits    every match that a policy counts, where they were asked for
    """

    n_tokens: int
    runs_at: Int64s
    runs: Lengths
    counts: tuple[PolicyCount, ...]
    matches: Matches
    pieces: Pieces
    rank: Float64s
    hits: Hits | None = None


@dataclass(eq=False)
class Collection:
    """All that one worker remembers of one view.

    longest_at  longest run in any document from each item token on, see `no_runs`
    shared      what it counts and keeps together with other workers, see `empty_sibling`
    sources     counts documents by their sources, where somebody tells them
    fresh       matches, those of variants too, and their pieces: what no policy has been asked
                about yet
    """

    view: TokenView
    policies: tuple[Policy, ...]
    ranking: Policy
    longest_at: Lengths
    shared: Shared
    n_tokens: int = 0
    sources: FoundSources | None = None
    _fresh: list[tuple[Matches, Pieces]] = field(default_factory=list)
    _n_fresh: int = 0

    @classmethod
    def start(
        cls,
        view: TokenView,
        policies: Sequence[Policy],
        ranking: Policy,
        most_documents: int,
        *,
        every_hit: bool = False,
    ) -> Collection:
        """An empty collection; every_hit  whether it keeps every match that a policy counts."""
        n = view.items.n_items
        top_documents = TopDocuments.of(most_documents, n)
        n_read = len(view.items.read)
        counts = [PolicyCount.empty(n, n_read) for _ in policies]
        shared = Shared(counts, top_documents, [] if every_hit else None)
        return cls(view, tuple(policies), ranking, no_runs(view), shared)

    def empty_sibling(self) -> Collection:
        """An empty collection for another worker, which counts and keeps together with this one."""
        sibling = Collection(
            self.view, self.policies, self.ranking, no_runs(self.view), self.shared
        )
        if self.sources is not None:
            sibling.sources = self.sources.empty_sibling()
        return sibling

    def add(self, matches: Matches, pieces: Pieces) -> None:
        """Take all matches of documents that no collection has seen before."""
        if len(matches) == 0:
            return
        self._fresh.append((matches, pieces))
        if self.sources is not None:
            self.sources.note(matches)
        self._n_fresh += len(matches)
        if self._n_fresh > _COUNT_ROWS:
            self.flush()

    def _rank(self, matches: Matches) -> Float64s:
        return self.ranking.score_matches(matches, self.view.items)

    @property
    def counts(self) -> list[PolicyCount]:
        """What each policy counted in all that was added."""
        self.flush()
        return self.shared.counts

    def flush(self) -> None:
        """Fold the fresh matches of variants in, ask the policies about all, and keep them."""
        if not self._fresh:
            return
        tables = [matches for matches, _ in self._fresh]
        strict = matches = Matches.concat(tables)
        pieces = Pieces.joined([pieces for _, pieces in self._fresh], _shifts(tables))
        self._fresh, self._n_fresh = [], 0
        if self.view.variants is not None:
            strict, matches, pieces = self.view.variants.fold(matches, pieces, self._rank)
        items = self.view.items
        seen = [matches if policy.traits.sees_variants else strict for policy in self.policies]
        grouped = {id(table): Grouped.of(table) for table in (strict, matches) if len(table)}
        scores = [
            policy.score_matches(table, items)
            for policy, table in zip(self.policies, seen, strict=True)
        ]
        hits = [
            policy.hits(table, items, score)
            for policy, table, score in zip(self.policies, seen, scores, strict=True)
        ]
        if self.sources is not None:
            self.sources.flush(list(zip(seen, hits, strict=True)))
        rank = (
            scores[self.policies.index(self.ranking)]
            if self.ranking in self.policies
            else self._rank(matches)
        )
        with self.shared.lock:
            for count, table, score, hit in zip(
                self.shared.counts, seen, scores, hits, strict=True
            ):
                if len(table):
                    count.add(table, score, hit, grouped[id(table)])
            if self.shared.hits is not None:
                self.shared.hits.append(Hits.of(matches, pieces, hits))
            self.shared.top_documents.add(matches, pieces, rank)

    def merge(self, other: Collection) -> None:
        """Add what another worker collected over other documents; nobody may be at work on it."""
        if not self.n_tokens:
            # Nothing was read here: its array takes no memory yet, and never does so.
            self.longest_at, other.longest_at = other.longest_at, self.longest_at
        for begin in range(0, len(self.longest_at), _PIECE):
            some = slice(begin, begin + _PIECE)
            if other.longest_at[some].any():
                np.maximum(self.longest_at[some], other.longest_at[some], out=self.longest_at[some])
        self.n_tokens += other.n_tokens
        self.flush()
        other.flush()
        if other.shared is not self.shared:
            self._take_shared(other.collected())

    def collected(self) -> Collected:
        """All that was collected, to be added to a collection of the same view by `take`."""
        counts = tuple(count.in_order() for count in self.counts)
        matches, pieces, rank = self.shared.top_documents.ranked()
        return Collected(
            n_tokens=self.n_tokens,
            runs_at=(runs_at := np.flatnonzero(self.longest_at)),
            runs=self.longest_at[runs_at],
            counts=counts,
            matches=matches,
            pieces=pieces,
            rank=rank,
            hits=self.hits(),
        )

    def hits(self) -> Hits | None:
        """Every match that a policy counts, in order; None where nobody asks for them."""
        self.flush()
        if (tables := self.shared.hits) is None:
            return None
        return Hits.concat([Hits.none(len(self.policies)), *tables]).in_order()

    def take(self, other: Collected) -> None:
        """Add what a collection for an equal view held, in this process or in another.

        Values are copied into arrays of our own: the types and layouts that the kernels were
        compiled for stay, whatever the way they came changed.
        """
        self.flush()
        known = self.longest_at[other.runs_at]
        self.longest_at[other.runs_at] = np.maximum(known, other.runs)
        self.n_tokens += other.n_tokens
        self._take_shared(other)

    def _take_shared(self, other: Collected) -> None:
        for mine, theirs in zip(self.shared.counts, other.counts, strict=True):
            mine.merge(theirs)
        if self.shared.hits is not None and other.hits is not None:
            self.shared.hits.append(other.hits)
        if len(other.matches):
            self.shared.top_documents.add(other.matches, other.pieces, other.rank)

    def documents(self) -> tuple[Int64s, Int64s]:
        """Shard and row of every document that is evidence or some policy's best, so far.

        Other workers may go on with what they share.
        """
        self.flush()
        with self.shared.lock:
            tables = [self.shared.top_documents.ranked()[0]]
            tables += [count.best for count in self.shared.counts]
            shard = np.concatenate([table.shard for table in tables]).astype(np.int64)
            row = np.concatenate([table.row for table in tables]).astype(np.int64)
        return shard[shard >= 0], row[shard >= 0]

    def evidence(self) -> tuple[Matches, Pieces]:
        """The documents kept, by item and best first, and their pieces."""
        self.flush()
        matches, pieces, _ = self.shared.top_documents.ranked()
        return matches, pieces

    def totals(self, policy: int) -> Totals:
        """What all documents together say, for the policy with this number."""
        return self.counts[policy].totals(self.longest_at)


def no_runs(view: TokenView) -> Lengths:
    """Room for the longest run at every token of a view: uint16[tokens], uint32 of long parts.

    Tokens at which no run is found take no memory.
    """
    n_tokens = len(view.items.token_hash)
    if view.longest <= np.iinfo(np.uint16).max:
        return np.zeros(n_tokens, np.uint16)
    return np.zeros(n_tokens, np.uint32)


def as_halves(longest_at: Lengths) -> NDArray[np.uint16]:
    """The same memory as the kernels take it, whichever of the two types it has."""
    halves: NDArray[np.uint16] = longest_at.view(np.uint16)
    return halves.reshape(len(longest_at), longest_at.itemsize // halves.itemsize)


def _shifts(tables: Sequence[Matches]) -> list[int]:
    """Row at which each table begins when all stand one behind the other."""
    ends = np.cumsum([len(table) for table in tables])
    return [0, *(int(end) for end in ends[:-1])]
