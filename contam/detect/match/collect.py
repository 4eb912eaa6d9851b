"""What the workers remember of the documents they have matched, in bounded memory.

Collections merge in any order and any grouping to the same answer: counts add up, runs take the
maximum, the best document and the documents kept as evidence follow one total order.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.detect.match.counting import Grouped, PolicyCount
from contam.detect.match.kept import Kept, Last
from contam.detect.match.pieces import Pieces
from contam.detect.model import Pairs, Totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.match.lane import Lane
    from contam.detect.model import Float64s, Int32s
    from contam.detect.policies.policy import Policy

#: Pairs that wait to be scored together: a policy's work over all items is done once for them.
_COUNT_ROWS = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What several workers on one lane remember together; to be changed under the lock alone."""

    counts: list[PolicyCount]
    kept: Kept
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Collected:
    """What a collection holds, without the lane it was made for: plain arrays.

    longest_at, n_tokens  as of `Collection`;  counts  one a policy
    pairs, pieces, rank   the documents kept
    """

    n_tokens: int
    longest_at: Int32s
    counts: tuple[PolicyCount, ...]
    pairs: Pairs
    pieces: Pieces
    rank: Float64s


class _Fresh(NamedTuple):
    """What some documents hold: of the items as they are, and with their readings folded in."""

    strict: Pairs
    pairs: Pairs
    pieces: Pieces


@dataclass(eq=False)
class Collection:
    """All that one worker remembers of one lane.

    longest_at  int32[item tokens], longest run in any document from that token on
    shared      what it counts and keeps together with other workers, see `beside`
    fresh       pairs and pieces that no policy has been asked about yet
    """

    lane: Lane
    policies: tuple[Policy, ...]
    ranking: Policy
    longest_at: NDArray[np.int32]
    shared: Shared
    n_tokens: int = 0
    _fresh: list[_Fresh] = field(default_factory=list)
    _n_fresh: int = 0

    @classmethod
    def start(
        cls, lane: Lane, policies: Sequence[Policy], ranking: Policy, most_documents: int
    ) -> Collection:
        """An empty collection."""
        n = lane.items.n_items
        kept = Kept(most_documents, Last.of(n))
        n_read = len(lane.items.read)
        shared = Shared([PolicyCount.empty(n, n_read) for _ in policies], kept)
        longest_at = np.zeros(len(lane.plan.token), np.int32)
        return cls(lane, tuple(policies), ranking, longest_at, shared)

    def beside(self) -> Collection:
        """An empty collection for another worker, which counts and keeps together with this one."""
        # Not `zeros_like`, which writes: tokens of which no run is found cost no memory so.
        longest_at = np.zeros(self.longest_at.shape, np.int32)
        return Collection(self.lane, self.policies, self.ranking, longest_at, self.shared)

    def add(self, pairs: Pairs, pieces: Pieces) -> None:
        """Take the pairs of documents that no collection has seen before."""
        strict, glued = pairs, self.lane.glued
        if glued is not None:
            strict, pairs, pieces = glued.fold(pairs, pieces, self._rank)
        if len(pairs) == 0:
            return
        self._fresh.append(_Fresh(strict, pairs, pieces))
        self._n_fresh += len(pairs)
        if self._n_fresh > _COUNT_ROWS:
            self.settle()

    def _rank(self, pairs: Pairs) -> Float64s:
        return self.ranking.score_pairs(pairs, self.lane.items)

    @property
    def counts(self) -> list[PolicyCount]:
        """What each policy counted in all that was added."""
        self.settle()
        return self.shared.counts

    def settle(self) -> None:
        """Ask the policies about the fresh pairs, and keep them."""
        if not self._fresh:
            return
        tables = [one.pairs for one in self._fresh]
        strict = pairs = Pairs.concat(tables)
        if any(one.strict is not one.pairs for one in self._fresh):
            strict = Pairs.concat([one.strict for one in self._fresh])
        pieces = Pieces.concat([one.pieces for one in self._fresh], _shifts(tables))
        self._fresh, self._n_fresh = [], 0
        items = self.lane.items
        seen = [pairs if policy.traits.sees_variants else strict for policy in self.policies]
        grouped = {id(table): Grouped.of(table) for table in (strict, pairs) if len(table)}
        scores = [
            policy.score_pairs(table, items)
            for policy, table in zip(self.policies, seen, strict=True)
        ]
        hits = [
            policy.hits(table, items, score)
            for policy, table, score in zip(self.policies, seen, scores, strict=True)
        ]
        rank = (
            scores[self.policies.index(self.ranking)]
            if self.ranking in self.policies
            else self._rank(pairs)
        )
        with self.shared.lock:
            for count, table, score, hit in zip(
                self.shared.counts, seen, scores, hits, strict=True
            ):
                if len(table):
                    count.add(table, score, hit, grouped[id(table)])
            self.shared.kept.add(pairs, pieces, rank)

    def merge(self, other: Collection) -> None:
        """Add what another worker collected over other documents; nobody may be at work on it."""
        longer = other.longest_at > self.longest_at
        self.longest_at[longer] = other.longest_at[longer]
        self.n_tokens += other.n_tokens
        self.settle()
        other.settle()
        if other.shared is self.shared:
            return
        for mine, theirs in zip(self.counts, other.counts, strict=True):
            mine.merge(theirs)
        self.shared.kept.merge(other.shared.kept)

    def collected(self) -> Collected:
        """All that was collected, to be added to a collection of the same lane by `take`."""
        counts = tuple(self.counts)
        pairs, pieces, rank = self.shared.kept.ranked()
        return Collected(
            n_tokens=self.n_tokens,
            longest_at=self.longest_at,
            counts=counts,
            pairs=pairs,
            pieces=pieces,
            rank=rank,
        )

    def take(self, other: Collected) -> None:
        """Add what a collection for an equal lane held, in this process or in another.

        Values are copied into arrays of our own: the types and layouts that the kernels were
        compiled for stay, whatever the way they came changed.
        """
        self.settle()
        np.maximum(self.longest_at, other.longest_at, out=self.longest_at)
        self.n_tokens += other.n_tokens
        for mine, theirs in zip(self.shared.counts, other.counts, strict=True):
            mine.merge(theirs)
        if len(other.pairs):
            self.shared.kept.add(other.pairs, other.pieces, other.rank)

    def evidence(self) -> tuple[Pairs, Pieces]:
        """The documents kept, by item and best first, and their pieces."""
        self.settle()
        return self.shared.kept.best()

    def totals(self, policy: int) -> Totals:
        """What all documents together say, for the policy with this number."""
        count = self.counts[policy]
        return Totals(
            longest_at=self.longest_at[: len(self.lane.items.token_hash)],
            n_documents=count.n_documents,
            n_occurrences=count.n_occurrences,
            best_score=count.best_score,
            best_shard=count.best.shard,
            best_row=count.best.row,
            best_pair=count.best,
        )


def _shifts(tables: Sequence[Pairs]) -> list[int]:
    """Row at which each table begins when all stand one behind the other."""
    ends = np.cumsum([len(table) for table in tables])
    return [0, *(int(end) for end in ends[:-1])]
