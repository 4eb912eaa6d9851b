"""Find the grams that are common where the items are planned in several blocks.

What makes a gram common counts over all items of a run (see `find_common`), but no more than one
block of them is in memory with its grams. A block has all items of its benchmarks, so that it knows
how many items of a benchmark hold a gram; places add up over blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels.constants import COMMON_OWNERS, COMMON_PLACES
from contam.kernels.gram_table import item_grams
from contam.kernels.hash_set import are_entered
from contam.text.token_kinds import token_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contam.detect.match.grams import GramPlaces
    from contam.detect.model import Int32s, Int64s, Uint64s

#: Tokens of which the grams are looked at together.
_AT_ONCE = 1 << 22


class BlockTokens(NamedTuple):
    """The tokens of a block.

    hashes, starts  uint64[total], and where each part's begin: int64[parts + 1]
    n_parts         of its items; the parts behind are those of variants
    """

    hashes: Uint64s
    starts: Int64s
    n_parts: int


@dataclass(eq=False)
class GramCensus:
    """What every block says of its grams, until all are there.

    n_blocks  how many there will be
    """

    n_blocks: int
    _held: list[Uint64s] = field(default_factory=list)
    _read: list[Uint64s] = field(default_factory=list)
    _watched: list[Uint64s] = field(default_factory=list)

    def note(self, grams: GramPlaces, owners: Int32s, n_parts: int) -> None:
        """Note the grams of a block, or a share of them.

        owners  int32[places], items of its benchmark that hold the gram of each place
        n_parts  of the items; places in later parts are those of variants
        """
        if not len(grams.key):
            return
        begin = grams.start[:-1]
        own = grams.part < n_parts
        n_own = np.add.reduceat(own, begin, dtype=np.int32)
        most = np.maximum.reduceat(owners, begin)
        most_own = np.maximum.reduceat(np.where(own, owners, 0), begin)
        # Variants decide about a gram that no item of any block holds.
        read = (n_own == 0) & (most > COMMON_OWNERS)
        n_places = np.where(n_own == 0, np.diff(grams.start), n_own)
        self._held.append(grams.key[most_own > COMMON_OWNERS])
        self._read.append(grams.key[read])
        # What has more places in all has more than such a share of them in some block.
        self._watched.append(grams.key[read | (n_places > COMMON_PLACES // self.n_blocks)])

    def common(self, blocks: Iterable[BlockTokens], n: int) -> Uint64s:
        """The common grams, as a table for `are_entered`.

        blocks  all that were noted;  n  tokens of a gram
        """
        held, read, watched = (
            np.unique(np.concatenate([np.empty(0, np.uint64), *found]))
            for found in (self._held, self._read, self._watched)
        )
        table = token_table(watched)
        n_own, n_read = np.zeros(len(watched), np.int64), np.zeros(len(watched), np.int64)
        for block in blocks:
            for counts, starts in (
                (n_own, block.starts[: block.n_parts + 1]),
                (n_read, block.starts[block.n_parts :]),
            ):
                for some in _stretches(starts):
                    grams, _, _ = item_grams(block.hashes, some, n, 1, (0, 1))
                    known = np.searchsorted(watched, grams[are_entered(grams, table)])
                    np.add.at(counts, known, 1)
        of_items = (n_own > COMMON_PLACES) | np.isin(watched, held)
        of_variants = (n_read > COMMON_PLACES) | np.isin(watched, read)
        common = np.where(n_own > 0, of_items, of_variants)
        return token_table(np.union1d(held, watched[common]))


def _stretches(starts: Int64s) -> Iterable[Int64s]:
    """Where parts begin and end, for some millions of tokens at a time."""
    begin = 0
    while begin < len(starts) - 1:
        end = int(np.searchsorted(starts, starts[begin] + _AT_ONCE, side="right"))
        end = min(max(end, begin + 2), len(starts))
        yield starts[begin:end]
        begin = end - 1
