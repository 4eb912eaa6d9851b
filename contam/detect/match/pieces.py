"""Hold the pieces of evidence that matches are made of."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

import numpy as np

from contam.detect.model import gathered
from contam.detect.policies.exposure import exposures
from contam.kernels import match_rows as columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.model import Bools, Int8s, Int32s, Int64s, Matches
    from contam.kernels.match_rows import MatchRows


#: Pieces of evidence kept for one item in one document.
MOST_PIECES = 400


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
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
    def concat(cls, tables: Sequence[Pieces], shifts: Sequence[int]) -> Pieces:
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

    def take(self, index: Int64s | Bools) -> Pieces:
        """The pieces at `index` (positions or a mask), in that order."""
        return Pieces(**gathered([self], index))

    def of_matches(self, keep: Int64s, n_matches: int) -> Pieces:
        """The pieces of the matches `keep`; see `gather`."""
        return Pieces.gather([self], [n_matches], keep)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hits:
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

    @classmethod
    def concat(cls, tables: Sequence[Hits]) -> Self:
        """The rows of all tables, one table after the other; at least one table."""
        names = [column.name for column in fields(cls)]
        return cls(
            **{name: np.concatenate([getattr(table, name) for table in tables]) for name in names}
        )

    def take(self, index: Int64s) -> Hits:
        """The matches at these positions, in that order."""
        begin = np.cumsum(self.n_spans, dtype=np.int64) - self.n_spans
        at = _ranges(begin[index], self.n_spans[index])
        rest = ("item", "shard", "row", "counted", "exposure", "n_spans")
        return Hits(
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
    found: Int64s = np.arange(total) + np.repeat(begin - ends + count, count)
    return found
