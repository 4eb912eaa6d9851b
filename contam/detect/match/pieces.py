"""Hold what was found: pieces of evidence, every match that counts, and what a policy counted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from contam.detect.model import Columns, Matches, Totals, gathered
from contam.detect.policies.common import exposures
from contam.kernels import match_rows as columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.model import Bools, Float64s, Int8s, Int32s, Int64s, Lengths
    from contam.kernels.match_rows import MatchRows


#: Pieces of evidence kept for one item in one document.
MOST_PIECES = 400


@dataclass(frozen=True, slots=True, eq=False)
class Pieces(Columns):
    """Pieces of evidence: matched stretches, several a match.

    match       int64[k], row of the match table they belong to, ascending
    part        int8[k], index into PARTS
    alignment   int32[k], number of the alignment within the part and document; AS_LETTER or
                AS_NUMBER (contam.kernels.match_rows) where the document has the mark of the right
                choice in place of its text
    item_token  int32[k], first token, counted from the part's first; length  int32[k] in tokens.
                Of a variant (see match.variants) both are of its tokens, which follow those of
                the items
    start, end  int32[k], code points in the document
    """

    match: Int64s
    part: NDArray[np.int8]
    alignment: NDArray[np.int32]
    item_token: NDArray[np.int32]
    length: NDArray[np.int32]
    start: NDArray[np.int32]
    end: NDArray[np.int32]

    @classmethod
    def from_rows(cls, rows: MatchRows, where: NDArray[np.int32]) -> Pieces:
        """The pieces a kernel wrote, with their code-point spans."""
        n = int(rows.used[1])
        raw = rows.pieces[:n]
        return cls(
            raw[:, columns.PIECE_MATCH].astype(np.int64),
            raw[:, columns.PIECE_PART].astype(np.int8),
            raw[:, columns.PIECE_ALIGNMENT].copy(),
            raw[:, columns.PIECE_ITEM].copy(),
            raw[:, columns.PIECE_LENGTH].copy(),
            where[:n, 0].copy(),
            where[:n, 1].copy(),
        )

    @classmethod
    def empty(cls) -> Pieces:
        """No pieces."""
        none = np.empty(0, np.int32)
        return cls(none.astype(np.int64), none.astype(np.int8), *([none] * 5))

    @classmethod
    def joined(cls, tables: Sequence[Pieces], shifts: Sequence[int]) -> Pieces:
        """All tables, one behind the other, the match numbers of each moved by its shift."""
        moved = [table.match + shift for table, shift in zip(tables, shifts, strict=True)]
        rest = ("part", "alignment", "item_token", "length", "start", "end")
        return cls(
            np.concatenate(moved),
            *(np.concatenate([getattr(table, name) for table in tables]) for name in rest),
        )

    @classmethod
    def gather(cls, tables: list[Pieces], n_matches: Sequence[int], keep: Int64s) -> Pieces:
        """The pieces of the matches `keep`, in that order, renumbered; at most MOST_PIECES a match.

        n_matches  of each table; matches are counted through all tables. See `gathered`.
        """
        counts = np.concatenate(
            [
                np.diff(np.searchsorted(table.match, np.arange(n + 1)))
                for table, n in zip(tables, n_matches, strict=True)
            ]
        )
        begins = (np.cumsum(counts) - counts)[keep]
        counts = np.minimum(counts, MOST_PIECES)[keep]
        ends = np.cumsum(counts)
        index = np.arange(int(counts.sum())) + np.repeat(begins - ends + counts, counts)
        columns = gathered(tables, index)
        return cls(**{**columns, "match": np.repeat(np.arange(len(keep)), counts)})

    def of_matches(self, keep: Int64s, n_matches: int) -> Pieces:
        """The pieces of the matches `keep`; see `gather`."""
        return Pieces.gather([self], [n_matches], keep)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hits(Columns):
    """Matches that at least one of the p policies of a view counts: m rows, k stretches.

    item, shard  int32[m];  row  int64[m]
    counted      bool[m, p], which policies count the document
    exposure     int8[m], what the document shows of the item: an index into EXPOSURES
    n_spans      int32[m], stretches of each match, which lie behind each other
    start, end   int32[k], code points of the document
    """

    item: Int32s
    shard: Int32s
    row: Int64s
    counted: Bools
    exposure: Int8s
    n_spans: Int32s
    start: Int32s
    end: Int32s

    def __len__(self) -> int:
        return len(self.item)

    @classmethod
    def none(cls, n_policies: int) -> Self:
        """No match."""
        no = np.empty(0, np.int32)
        return cls(
            item=no, shard=no, row=no.astype(np.int64), counted=np.empty((0, n_policies), np.bool_),
            exposure=no.astype(np.int8), n_spans=no, start=no, end=no,
        )  # fmt: skip

    @classmethod
    def of(cls, matches: Matches, pieces: Pieces, hits: Sequence[Bools]) -> Self:
        """The matches that are counted.

        hits  of each policy; one that does not see variants has the first rows of `matches` only
        """
        counted = np.zeros((len(matches), len(hits)), np.bool_)
        for policy, hit in enumerate(hits):
            counted[: len(hit), policy] = hit
        keep = np.flatnonzero(counted.any(axis=1))
        some = matches.take(keep)
        edges = np.searchsorted(pieces.match, keep), np.searchsorted(pieces.match, keep + 1)
        n_spans = (edges[1] - edges[0]).astype(np.int32)
        at = _ranges(edges[0], n_spans)
        return cls(
            item=some.item,
            shard=some.shard,
            row=some.row,
            counted=counted[keep],
            exposure=exposures(some),
            n_spans=n_spans,
            start=pieces.start[at],
            end=pieces.end[at],
        )

    def take(self, index: Int64s | Bools | slice) -> Self:
        """The matches at `index`, in that order, with their stretches."""
        begin = np.cumsum(self.n_spans, dtype=np.int64) - self.n_spans
        at = _ranges(begin[index], self.n_spans[index])
        rest = ("item", "shard", "row", "counted", "exposure", "n_spans")
        return type(self)(
            **{name: getattr(self, name)[index] for name in rest},
            start=self.start[at],
            end=self.end[at],
        )

    def in_order(self) -> Hits:
        """By shard, row and item: the same whoever found what first."""
        return self.take(np.lexsort((self.item, self.row, self.shard)))


def _ranges(begin: Int64s, count: Int32s) -> Int64s:
    """All positions of ranges that begin here and have so many, one range after the other."""
    ends = np.cumsum(count, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(begin - ends + count, count)


#: Columns of a `PolicyCount` besides the best match.
COUNTED: Final = ("n_documents", "n_occurrences", "best_score", "best_full")
#: How much the parts count, in PARTS order, when two documents score the same. Uneven, so that
#: documents which hold different parts do not tie again.
_TIE_WEIGHTS = (1.0, 8.0, 2.7, 2.1)


def fullness(matches: Matches) -> Float64s:
    """How much of its item each document contains, float64[m]: of equal scores the fullest is best.

    Only documents that still tie are ordered by their places in the corpus, so a verdict depends as
    little as possible on the order of the corpus.
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
    n_occurrences  int32[m], places that contain the question, or else the runs of a part
    """

    full: Float64s
    order: Int64s
    start: Int64s
    n_occurrences: Int32s

    @classmethod
    def of(cls, matches: Matches) -> Grouped:
        """The order of pairs, at least one of them."""
        full = fullness(matches)
        order = np.lexsort((matches.row, matches.shard, -full, matches.item))
        items = matches.item[order]
        fresh = np.concatenate([[True], items[1:] != items[:-1]])
        # Column by column: a maximum over rows of four takes ten times as long.
        runs = reduce(np.maximum, matches.n_runs.T)
        n_occurrences = np.where(matches.n_places > 0, matches.n_places, np.maximum(runs, 1))
        return cls(full, order, np.flatnonzero(fresh), n_occurrences)

    def best(self, score: Float64s) -> Int64s:
        """Of each item the first of its rows with the highest score, by item."""
        scores = score[self.order]
        highest = np.maximum.reduceat(scores, self.start)
        lengths = np.diff(self.start, append=len(scores))
        at = np.where(scores == np.repeat(highest, lengths), np.arange(len(scores)), len(scores))
        return self.order[np.minimum.reduceat(at, self.start)]


@dataclass(eq=False)
class PolicyCount:
    """What one policy counted of every item that was found in a document, and its best document.

    Only such items have a row, so a small corpus takes little memory however many items there are.

    row     int32[n], 1 + the row of each item in the others; 0 where nothing was found of it
    n_rows  rows in use; the others have room for some more
    best    the match with the best document of each item that has a row
    """

    row: Int32s
    n_documents: Int64s
    n_occurrences: Int64s
    best_score: Float64s
    best_full: Float64s
    best: Matches
    n_rows: int = 0

    @classmethod
    def empty(cls, n_items: int, n_read: int = 0, n_rows: int = 0) -> PolicyCount:
        """Nothing seen yet, and room for so many rows; n_read as for `Matches.zeros`."""
        return cls(
            np.zeros(n_items, np.int32),
            np.zeros(n_rows, np.int64),
            np.zeros(n_rows, np.int64),
            np.zeros(n_rows, np.float64),
            np.zeros(n_rows, np.float64),
            Matches.zeros(n_rows, n_read),
        )

    def add(
        self, matches: Matches, score: Float64s, hit: NDArray[np.bool_], grouped: Grouped
    ) -> None:
        """Count matches of documents not counted before; `grouped` says which go together."""
        at = self._rows_of(matches.item[grouped.order[grouped.start]])
        counted = hit[grouped.order]
        self.n_documents[at] += np.add.reduceat(counted, grouped.start, dtype=np.int64)
        places = np.where(counted, grouped.n_occurrences[grouped.order], 0)
        self.n_occurrences[at] += np.add.reduceat(places, grouped.start, dtype=np.int64)
        best = grouped.best(score)
        self._offer(at, matches.take(best), score[best], grouped.full[best])

    def _rows_of(self, items: Int32s) -> Int64s:
        """The rows of these different items, made where they have none."""
        fresh = items[self.row[items] == 0]
        first, n = self.n_rows, self.n_rows + len(fresh)
        if n > len(self.n_documents):
            # Half as many again: what is there is copied each time.
            room = max(n, len(self.n_documents) * 3 // 2)
            larger = PolicyCount.empty(0, self.best.read.shape[1], room)
            for name in COUNTED:
                getattr(larger, name)[:first] = getattr(self, name)[:first]
                setattr(self, name, getattr(larger, name))
            for column in fields(Matches):
                getattr(larger.best, column.name)[:first] = getattr(self.best, column.name)[:first]
            self.best = larger.best
        self.row[fresh] = np.arange(first + 1, n + 1, dtype=np.int32)
        self.n_rows = n
        return self.row[items].astype(np.int64) - 1

    def _offer(self, at: Int64s, matches: Matches, score: Float64s, full: Float64s) -> None:
        """Take each of these matches where it beats the best document so far in its row of `at`."""
        known = self.best.item[at] >= 0
        old, old_full = self.best_score[at], self.best_full[at]
        best_shard, best_row = self.best.shard[at], self.best.row[at]
        earlier = is_earlier(matches.shard, matches.row, best_shard, best_row)
        first = (full > old_full) | ((full == old_full) & earlier)
        better = ~known | (score > old) | ((score == old) & first)
        to = at[better]
        for column in fields(Matches):
            getattr(self.best, column.name)[to] = getattr(matches, column.name)[better]
        self.best_score[to] = score[better]
        self.best_full[to] = full[better]

    def merge(self, other: PolicyCount) -> None:
        """Add what another worker counted."""
        best = other.best.take(slice(other.n_rows))
        at = self._rows_of(best.item)
        for name in ("n_documents", "n_occurrences"):
            getattr(self, name)[at] += getattr(other, name)[: len(at)]
        self._offer(at, best, other.best_score[: len(at)], other.best_full[: len(at)])

    def in_order(self) -> PolicyCount:
        """The same in the order of the items found, only to be added to others by `merge`."""
        order = np.argsort(self.best.item[: self.n_rows], kind="stable")
        columns = {name: getattr(self, name)[order] for name in COUNTED}
        no_items = np.empty(0, np.int32)
        return PolicyCount(row=no_items, best=self.best.take(order), n_rows=len(order), **columns)

    def totals(self, longest_at: Lengths) -> Totals:
        """All items, also those of which nothing was found; longest_at as of `Totals`."""
        n, used = len(self.row), self.n_rows
        items = self.best.item[:used]

        def of_all(values: NDArray[Any]) -> NDArray[Any]:
            every = np.zeros(n, values.dtype)
            every[items] = values[:used]
            return every

        best = Matches.zeros(n, self.best.read.shape[1])
        for column in fields(Matches):
            getattr(best, column.name)[items] = getattr(self.best, column.name)[:used]
        return Totals(
            longest_at=longest_at,
            n_documents=of_all(self.n_documents),
            n_occurrences=of_all(self.n_occurrences),
            best_score=of_all(self.best_score),
            best_match=best,
        )


def is_earlier(shard: Int32s, row: Int64s, other_shard: Int32s, other_row: Int64s) -> Bools:
    """Which documents stand before the others in the order of the corpus."""
    earlier: Bools = (shard < other_shard) | ((shard == other_shard) & (row < other_row))
    return earlier
