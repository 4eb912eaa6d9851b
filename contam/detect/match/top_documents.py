"""Keep the top documents of every item as evidence, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.match.counting import is_earlier
from contam.detect.match.pieces import Pieces
from contam.detect.model import Matches
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    from contam.detect.model import Bools, Float64s, Int32s, Int64s

_PRUNE_ROWS = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class TopKCutoff:
    """Of each item with as many documents as are kept, the last: float64[n], int32[n], int64[n]."""

    rank: Float64s
    shard: Int32s
    row: Int64s

    @classmethod
    def of(cls, n_items: int) -> TopKCutoff:
        """No item has so many yet."""
        rank = np.full(n_items, -np.inf)
        return cls(rank, np.zeros(n_items, np.int32), np.zeros(n_items, np.int64))

    def outranks(self, matches: Matches, rank: Float64s) -> Bools:
        """Which matches come behind the last of their item, and will never be kept."""
        last, shard, row = self.rank[matches.item], self.shard[matches.item], self.row[matches.item]
        later = is_earlier(shard, row, matches.shard, matches.row)
        behind: Bools = (rank < last) | ((rank == last) & later)
        return behind

    def note(self, matches: Matches, rank: Float64s, rows: Int64s) -> None:
        """These rows are now the last of their items."""
        items = matches.item[rows]
        self.rank[items] = rank[rows]
        self.shard[items] = matches.shard[rows]
        self.row[items] = matches.row[rows]


@dataclass(eq=False)
class TopDocuments:
    """Of every item the `most` documents that rank best, with their pieces of evidence.

    What is added in any order and any grouping leaves the same.
    """

    most: int
    cutoff: TopKCutoff
    _matches: list[Matches] = field(default_factory=list)
    _pieces: list[Pieces] = field(default_factory=list)
    _rank: list[Float64s] = field(default_factory=list)
    _waiting: int = 0
    _pruned: int = 0

    def add(self, matches: Matches, pieces: Pieces, rank: Float64s) -> None:
        """Keep what may be among the best."""
        behind = self.cutoff.outranks(matches, rank)
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

    def merge(self, other: TopDocuments) -> None:
        """Add what somebody else kept."""
        for matches, pieces, rank in zip(other._matches, other._pieces, other._rank, strict=True):
            self.add(matches, pieces, rank)

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
        self.cutoff.note(self._matches[0], self._rank[0], np.flatnonzero(last))
        self._waiting = self._pruned = len(keep)
        if len(order) >= _PRUNE_ROWS:
            # What was let go lies in holes between what was kept.
            release_unused()

    def ranked(self) -> tuple[Matches, Pieces, Float64s]:
        """The documents kept, by item and best first, their pieces and ranks."""
        self.prune()
        if not self._matches:
            return Matches.empty(), Pieces.empty(), np.empty(0)
        return self._matches[0], self._pieces[0], self._rank[0]

    def best(self) -> tuple[Matches, Pieces]:
        """The documents kept, by item and best first, and their pieces."""
        matches, pieces, _ = self.ranked()
        return matches, pieces
