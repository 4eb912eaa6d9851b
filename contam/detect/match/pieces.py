"""Hold the pieces of evidence that matches are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.model import gathered
from contam.kernels import match_rows as columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.model import Bools, Int64s
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
