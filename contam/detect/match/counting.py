"""Count documents and places per item and policy, and keep the best document."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.model import Matches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.detect.model import Bools, Float64s, Int32s, Int64s

#: How much the parts count, in PARTS order, when two documents score the same. Uneven, so that
#: documents which hold different parts do not tie again.
_TIE_WEIGHTS = (1.0, 8.0, 2.7, 2.1)


def fullness(matches: Matches) -> Float64s:
    """How much of its item each document holds, float64[m]: of equal scores the fullest is best.

    Only what then still ties is decided by where the documents stand, so what is said of an item
    does not hang on the order of the corpus.
    """
    full: Float64s = 16.0 * matches.answer_near.astype(np.float64)
    # A copy of the text as it is comes before one without its punctuation.
    full -= 1e-3 * (matches.variant_words > 0)
    # Column by column: a product of matrices may round differently for another number of rows.
    for part, weight in enumerate(_TIE_WEIGHTS):
        full += weight * matches.coverage[:, part].astype(np.float64)
        full += 1e-6 * weight * (matches.longest[:, part] + matches.aligned[:, part])
    return full


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Matches by item, the fullest document first, then by place: one order for every policy.

    full   float64[m], fullness of the matches;  order  int64[m], rows of the matches
    start  int64[k], where each item's rows begin in `order`
    """

    full: Float64s
    order: Int64s
    start: Int64s

    @classmethod
    def of(cls, matches: Matches) -> Grouped:
        """The order of pairs, at least one of them."""
        full = fullness(matches)
        order = np.lexsort((matches.row, matches.shard, -full, matches.item))
        items = matches.item[order]
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
    best: Matches

    @classmethod
    def empty(cls, n_items: int, n_read: int = 0) -> PolicyCount:
        """Nothing seen yet; n_read as for `Matches.zeros`."""
        return cls(
            np.zeros(n_items, np.int64),
            np.zeros(n_items, np.int64),
            np.zeros(n_items, np.float64),
            np.zeros(n_items, np.float64),
            Matches.zeros(n_items, n_read),
        )

    def add(
        self, matches: Matches, score: Float64s, hit: NDArray[np.bool_], grouped: Grouped
    ) -> None:
        """Count matches of documents not counted before; `grouped` says which go together."""
        places = np.maximum(matches.n_places, np.maximum(matches.n_runs.max(axis=1, initial=0), 1))
        occurrences = np.where(matches.n_places > 0, matches.n_places, places)
        np.add.at(self.n_documents, matches.item[hit], 1)
        np.add.at(self.n_occurrences, matches.item[hit], occurrences[hit])
        best = grouped.best(score)
        self.offer(matches, best, score[best], grouped.full[best])

    def offer(self, matches: Matches, rows: Int64s, score: Float64s, full: Float64s) -> None:
        """Take each of these rows (one an item at most) where it beats the best document so far."""
        at, shard, row = matches.item[rows], matches.shard[rows], matches.row[rows]
        known = self.best.item[at] >= 0
        old, old_full = self.best_score[at], self.best_full[at]
        earlier = is_earlier(shard, row, self.best.shard[at], self.best.row[at])
        first = (full > old_full) | ((full == old_full) & earlier)
        better = ~known | (score > old) | ((score == old) & first)
        to, winners = at[better], rows[better]
        for column in fields(Matches):
            getattr(self.best, column.name)[to] = getattr(matches, column.name)[winners]
        self.best_score[to] = score[better]
        self.best_full[to] = full[better]

    def merge(self, other: PolicyCount) -> None:
        """Add what another worker counted."""
        self.n_documents += other.n_documents
        self.n_occurrences += other.n_occurrences
        seen = np.flatnonzero(other.best.item >= 0)
        self.offer(other.best, seen, other.best_score[seen], other.best_full[seen])


def is_earlier(shard: Int32s, row: Int64s, other_shard: Int32s, other_row: Int64s) -> Bools:
    """Which documents stand before the others in the order of the corpus."""
    earlier: Bools = (shard < other_shard) | ((shard == other_shard) & (row < other_row))
    return earlier
