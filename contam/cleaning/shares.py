"""Divide the shards of a corpus among workers that write them."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

#: A byte of a shard in which something was found takes as long as so many that are only copied.
_TOUCHED: Final = 20
#: What any shard takes besides, in bytes that are copied.
_FILE: Final = 1 << 20


def share_of(
    sizes: Sequence[int], touched: Collection[int], index: int, count: int
) -> tuple[int, ...]:
    """The numbers of the shards of one of `count` workers, ascending; index from 0.

    sizes    bytes of each shard
    touched  numbers of the shards in which something was found

    Every shard is in one share. The one that takes longest goes to the worker with the least to do,
    and so on: those with finds, which come first, are spread, and all shares take about as long.
    """
    costs = [_FILE + size * (_TOUCHED if n in touched else 1) for n, size in enumerate(sizes)]
    order = sorted(range(len(costs)), key=lambda n: (n not in touched, -costs[n], n))
    loads = [(0, worker) for worker in range(count)]
    mine = []
    for number in order:
        load, worker = loads[0]
        heapq.heapreplace(loads, (load + costs[number], worker))
        if worker == index:
            mine.append(number)
    return tuple(sorted(mine))
