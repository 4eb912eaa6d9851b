"""Collect the matches of workers in bounded memory.

Collections merge in any order and any grouping to the same answer: counts add up, runs take the
maximum, the best document and the documents kept as evidence follow one total order.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.detect.match.counting import Grouped, PolicyCount
from contam.detect.match.pieces import Pieces
from contam.detect.match.top_documents import TopDocuments, TopKCutoff
from contam.detect.model import Matches, Totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.match.token_view import TokenView
    from contam.detect.model import Float64s, Int32s
    from contam.detect.policies.policy import Policy

#: Matches that wait to be scored together: a policy's work over all items is done once for them.
_COUNT_ROWS = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What several workers on one view remember together; to be changed under the lock alone."""

    counts: list[PolicyCount]
    top_documents: TopDocuments
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Collected:
    """What a collection holds, without the view it was made for: plain arrays.

    longest_at, n_tokens  as of `Collection`;  counts  one a policy
    matches, pieces, rank   the documents kept
    """

    n_tokens: int
    longest_at: Int32s
    counts: tuple[PolicyCount, ...]
    matches: Matches
    pieces: Pieces
    rank: Float64s


class _Fresh(NamedTuple):
    """What some documents hold: of the items as they are, and with their readings folded in."""

    strict: Matches
    matches: Matches
    pieces: Pieces


@dataclass(eq=False)
class Collection:
    """All that one worker remembers of one view.

    longest_at  int32[item tokens], longest run in any document from that token on
    shared      what it counts and keeps together with other workers, see `beside`
    fresh       matches and pieces that no policy has been asked about yet
    """

    view: TokenView
    policies: tuple[Policy, ...]
    ranking: Policy
    longest_at: NDArray[np.int32]
    shared: Shared
    n_tokens: int = 0
    _fresh: list[_Fresh] = field(default_factory=list)
    _n_fresh: int = 0

    @classmethod
    def start(
        cls, view: TokenView, policies: Sequence[Policy], ranking: Policy, most_documents: int
    ) -> Collection:
        """An empty collection."""
        n = view.items.n_items
        top_documents = TopDocuments(most_documents, TopKCutoff.of(n))
        n_read = len(view.items.read)
        shared = Shared([PolicyCount.empty(n, n_read) for _ in policies], top_documents)
        longest_at = np.zeros(len(view.gram_table.token), np.int32)
        return cls(view, tuple(policies), ranking, longest_at, shared)

    def empty_sibling(self) -> Collection:
        """An empty collection for another worker, which counts and keeps together with this one."""
        # Not `zeros_like`, which writes: tokens of which no run is found cost no memory so.
        longest_at = np.zeros(self.longest_at.shape, np.int32)
        return Collection(self.view, self.policies, self.ranking, longest_at, self.shared)

    def add(self, matches: Matches, pieces: Pieces) -> None:
        """Take the matches of documents that no collection has seen before."""
        strict, variants = matches, self.view.variants
        if variants is not None:
            strict, matches, pieces = variants.fold(matches, pieces, self._rank)
        if len(matches) == 0:
            return
        self._fresh.append(_Fresh(strict, matches, pieces))
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
        """Ask the policies about the fresh matches, and keep them."""
        if not self._fresh:
            return
        tables = [one.matches for one in self._fresh]
        strict = matches = Matches.concat(tables)
        if any(one.strict is not one.matches for one in self._fresh):
            strict = Matches.concat([one.strict for one in self._fresh])
        pieces = Pieces.concat([one.pieces for one in self._fresh], _shifts(tables))
        self._fresh, self._n_fresh = [], 0
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
            self.shared.top_documents.add(matches, pieces, rank)

    def merge(self, other: Collection) -> None:
        """Add what another worker collected over other documents; nobody may be at work on it."""
        longer = other.longest_at > self.longest_at
        self.longest_at[longer] = other.longest_at[longer]
        self.n_tokens += other.n_tokens
        self.flush()
        other.flush()
        if other.shared is self.shared:
            return
        for mine, theirs in zip(self.counts, other.counts, strict=True):
            mine.merge(theirs)
        self.shared.top_documents.merge(other.shared.top_documents)

    def collected(self) -> Collected:
        """All that was collected, to be added to a collection of the same view by `take`."""
        counts = tuple(self.counts)
        matches, pieces, rank = self.shared.top_documents.ranked()
        return Collected(
            n_tokens=self.n_tokens,
            longest_at=self.longest_at,
            counts=counts,
            matches=matches,
            pieces=pieces,
            rank=rank,
        )

    def take(self, other: Collected) -> None:
        """Add what a collection for an equal view held, in this process or in another.

        Values are copied into arrays of our own: the types and layouts that the kernels were
        compiled for stay, whatever the way they came changed.
        """
        self.flush()
        np.maximum(self.longest_at, other.longest_at, out=self.longest_at)
        self.n_tokens += other.n_tokens
        for mine, theirs in zip(self.shared.counts, other.counts, strict=True):
            mine.merge(theirs)
        if len(other.matches):
            self.shared.top_documents.add(other.matches, other.pieces, other.rank)

    def evidence(self) -> tuple[Matches, Pieces]:
        """The documents kept, by item and best first, and their pieces."""
        self.flush()
        return self.shared.top_documents.best()

    def totals(self, policy: int) -> Totals:
        """What all documents together say, for the policy with this number."""
        count = self.counts[policy]
        return Totals(
            longest_at=self.longest_at[: len(self.view.items.token_hash)],
            n_documents=count.n_documents,
            n_occurrences=count.n_occurrences,
            best_score=count.best_score,
            best_match=count.best,
        )


def _shifts(tables: Sequence[Matches]) -> list[int]:
    """Row at which each table begins when all stand one behind the other."""
    ends = np.cumsum([len(table) for table in tables])
    return [0, *(int(end) for end in ends[:-1])]
