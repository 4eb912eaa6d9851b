"""Turn what the kernels wrote into columns: matches and their pieces of evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.model import FIGURES_READ, N_PARTS, Matches, gathered
from contam.kernels import match_rows as columns
from contam.kernels.changed_numbers import renumbered_shares
from contam.kernels.competing_items import find_competing_items, first_pieces, scattered_shares
from contam.kernels.told_answers import told_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.match.token_view import TokenView
    from contam.detect.model import Bools, Int32s, Int64s
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


def matches_from_rows(
    rows: MatchRows,
    view: TokenView,
    shard: int | Int32s,
    first_row: int,
    numbers: Int64s | None = None,
) -> Matches:
    """The matches a kernel wrote for one batch, as the columns policies read.

    view       what they were matched with
    shard      of all documents of the batch, or of each of them
    numbers    row of each document of the batch; None when they count up from `first_row`
    """
    n = int(rows.used[0])
    raw, real = rows.matches[:n], rows.reals[:n]
    document = raw[:, columns.MATCH_DOC].astype(np.int64)
    first_piece = first_pieces(rows)

    def ints(first: int) -> NDArray[np.int32]:
        return raw[:, first : first + N_PARTS].copy()

    return Matches(
        item=raw[:, columns.MATCH_ITEM].copy(),
        shard=np.full(n, shard, np.int32) if isinstance(shard, int) else shard[document],
        row=document + first_row if numbers is None else numbers[document],
        longest=ints(columns.MATCH_LONGEST),
        covered=ints(columns.MATCH_COVERED),
        n_runs=ints(columns.MATCH_RUNS),
        coverage=real[:, columns.REAL_COVERAGE : columns.REAL_COVERAGE + N_PARTS].copy(),
        aligned=ints(columns.MATCH_ALIGNED),
        n_places=raw[:, columns.MATCH_PLACES].copy(),
        answer_near=raw[:, columns.MATCH_ANSWER] != 0,
        exact=ints(columns.MATCH_EXACT) != 0,
        split=raw[:, columns.MATCH_SPLIT] != 0,
        scattered=scattered_shares(rows, first_piece),
        renumbered=renumbered_shares(rows, first_piece, view.gram_table.part_start, view.is_number),
        competing_item=find_competing_items(rows, first_piece, view.benchmark),
        told=told_answers(rows, first_piece, view.spec.unit, view.spec.min_run, view.gram_table),
        variant_words=np.zeros(n, np.int32),
        read=np.zeros((n, 0, FIGURES_READ), np.float32),
    )
