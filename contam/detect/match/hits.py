"""Keep every match that a policy counts, with its stretches, for those who take documents out.

Evidence keeps the best documents of an item; these are all of them, and lie in the parts of a
search, a piece each.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

import numpy as np

from contam.detect.policies.exposure import exposures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.match.pieces import Pieces
    from contam.detect.model import Bools, Int8s, Int32s, Int64s, Matches


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
