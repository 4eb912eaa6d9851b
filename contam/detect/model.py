"""Define what matching and policies exchange: plain arrays without behaviour.

A *view* is one (unit, seed, min_run) configuration of the scan. All columns of a table are arrays
of the same length.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from contam.benchmark.items import PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PASSAGE: Final = 0
QUESTION: Final = 1
CHOICES: Final = 2
ANSWER: Final = 3
N_PARTS: Final = len(PARTS)

#: Figures in the last axis of `Matches.read`.
FIGURES_READ: Final = 4

Bools = NDArray[np.bool_]
Int8s = NDArray[np.int8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
#: Of two types, as long as the longest fits.
Lengths = NDArray[np.uint16] | NDArray[np.uint32]
Uint64s = NDArray[np.uint64]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """A table: arrays of the same length."""

    def take(self, index: Int64s | Bools | slice) -> Self:
        """The rows at `index` (positions, a mask or a slice), in that order."""
        return type(self)(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    @classmethod
    def concat(cls, tables: Sequence[Self]) -> Self:
        """The rows of all tables, one table after the other; at least one table."""
        return cls(
            **{f.name: np.concatenate([getattr(t, f.name) for t in tables]) for f in fields(cls)}
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ItemsRead:
    """What a policy that reads documents for itself knows of the n items of a view.

    policy     fingerprint of the policy
    checkable  bool[n]
    figures    int64[n] each, by name: figures of an item for its reasons
    """

    policy: str
    checkable: Bools
    figures: Mapping[str, Int64s]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, weakref_slot=True)
class ViewItems:
    """The n items of a run as one view sees them; flat arrays hold the tokens of all parts.

    benchmark      int32[n]      number of the benchmark
    n_tokens       int32[n, 4]   tokens of each part in PARTS order; 0 means the part is absent
    n_words        int32[n, 4]   white-space separated words of the part's text; of items that are
                                 hashes only, its tokens
    token_start    int64[n, 4]   where the part's tokens begin in the flat arrays
    token_hash     uint64[total], those of their variants behind them
    part_weight    float64[n, 4], what the tokens of each part say together: 0..1 each
    n_single       int32[n, 4], tokens of each part that are one character of a script without
                   spaces
    word_start     bool[total], whether a token begins a white-space separated word; None where the
                   view does not need it (in the word unit every token counts as one)
    stretch        int32[n], tokens of the item's longest text that every layout keeps together: its
                   passage, its question or one choice
    seed           runs shorter than this many tokens may go unseen
    min_run        the length from which every run is reported, and which `Matches.covered` counts
    item_ids       n ids, for reasons that name another item
    read           what is known of the items by each policy that reads documents for itself
    """

    n_items: int
    benchmark: Int32s
    n_tokens: Int32s
    n_words: Int32s
    token_start: Int64s
    token_hash: Uint64s
    part_weight: Float64s
    n_single: Int32s
    stretch: Int32s
    item_ids: Sequence[str]
    word_start: Bools | None = None
    seed: int = 5
    min_run: int = 8
    read: tuple[ItemsRead, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Matches(Columns):
    """One row per (item, document) with evidence; m rows, part columns in PARTS order.

    item, shard    int32[m]; row int64[m]: the item's index, and the document's place
    longest        int32[m, 4]    longest run of equal tokens (exact from the view's seed on)
    covered        int32[m, 4]    tokens of the part inside runs of at least `min_run`
    n_runs         int32[m, 4]    runs of at least `min_run`, or of the whole part if shorter;
                                  runs may overlap, and each place in the document counts
    coverage       float32[m, 4]  weight share of the part's tokens matched by the alignment
    aligned        int32[m, 4]    tokens of the part matched by the alignment
    n_places       int32[m]       separate places of the document that contain the question
    answer_near    bool[m]        the answer is next to the aligned question
    exact          bool[m, 4]     the document contains the whole part as one run
    split          bool[m]        no single place of the document holds most of what it has of the
                                  question
    scattered      float32[m]     share of other text in the stretch over which the question's main
                                  alignment reaches
    renumbered     float32[m]     share of the question's other words that the document contains,
                                  if two or more of the question's numbers are between them and
                                  none of those is in the document; else 0
    told           int32[m]       tokens of the longest run of the answer alone that says enough:
                                  see `contam.kernels.match_facts`; 0 without one
    competing_item int32[m]       another item of the benchmark whose whole question is in the
                                  document and has most of the matched text; -1 without one
    variant_words  int32[m]       words of the question without its punctuation, if the document
                                  contains more of that (see match.variants) and the figures count
                                  those; 0 if they count the words of the item as it is
    read           float32[m, p, 4]  what the p policies of `ViewItems.read` found in the text of
                                  the document: the score, and three figures for their reasons
    """

    item: Int32s
    shard: Int32s
    row: Int64s
    longest: Int32s
    covered: Int32s
    n_runs: Int32s
    coverage: Float32s
    aligned: Int32s
    n_places: Int32s
    answer_near: Bools
    exact: Bools
    split: Bools
    scattered: Float32s
    renumbered: Float32s
    told: Int32s
    competing_item: Int32s
    variant_words: Int32s
    read: Float32s

    def __len__(self) -> int:
        return int(self.item.shape[0])

    @classmethod
    def zeros(cls, n_rows: int, n_read: int = 0) -> Matches:
        """`n_rows` rows that belong to no item (item -1) and hold no evidence.

        n_read  policies of the view that read documents for themselves
        """
        parts = (n_rows, N_PARTS)
        return cls(
            item=np.full(n_rows, -1, np.int32),
            shard=np.full(n_rows, -1, np.int32),
            row=np.full(n_rows, -1, np.int64),
            longest=np.zeros(parts, np.int32),
            covered=np.zeros(parts, np.int32),
            n_runs=np.zeros(parts, np.int32),
            coverage=np.zeros(parts, np.float32),
            aligned=np.zeros(parts, np.int32),
            n_places=np.zeros(n_rows, np.int32),
            answer_near=np.zeros(n_rows, np.bool_),
            exact=np.zeros(parts, np.bool_),
            split=np.zeros(n_rows, np.bool_),
            scattered=np.zeros(n_rows, np.float32),
            renumbered=np.zeros(n_rows, np.float32),
            told=np.zeros(n_rows, np.int32),
            competing_item=np.full(n_rows, -1, np.int32),
            variant_words=np.zeros(n_rows, np.int32),
            read=np.zeros((n_rows, n_read, FIGURES_READ), np.float32),
        )

    @classmethod
    def gather(cls, tables: list[Matches], index: Int64s) -> Matches:
        """The rows at `index` of all tables, one after the other; see `gathered`."""
        return cls(**gathered(tables, index))


def gathered(tables: list[Any], index: Int64s | Bools) -> dict[str, NDArray[Any]]:
    """Columns of the rows at `index` of all tables, one after the other; the list is emptied.

    Column by column, and each is let go: never are all rows there twice.
    """
    columns = {
        column.name: [getattr(table, column.name) for table in tables]
        for column in fields(tables[0])
    }
    tables.clear()
    return {name: np.concatenate(columns.pop(name))[index] for name in list(columns)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, weakref_slot=True)
class Totals:
    """What all documents together say about each item, under one policy.

    longest_at     uint[total]   longest run, in any document, that starts at this item token and
                   ends inside the token's part
    n_documents    int64[n]      documents that count (`Policy.hits`)
    n_occurrences  int64[n]
    best_score     float64[n]    the highest `Policy.score_matches` of any document; 0 without one
    best_match     Matches of n rows: the match with that document; item is -1 without one
    """

    longest_at: Lengths
    n_documents: Int64s
    n_occurrences: Int64s
    best_score: Float64s
    best_match: Matches


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Judgements:
    """A policy's answer: label int8[n] (an index into LABELS) and score float64[n]."""

    label: Int8s
    score: Float64s
