"""Clusters of items as blocks that may change places: what a permutation test may shuffle.

Items of one passage rise and fall together, so they are no exchangeable items; whole clusters of
one size (and one stratum) are exchangeable clusters. A cluster that is alone of its size stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def several(cluster: Ints) -> Ints | None:
    """The clusters of some items, or None where no two items share one; int64[n], none below 0."""
    return cluster if len(cluster) and int(np.bincount(cluster).max()) > 1 else None


def blocks_of(cluster: Ints, strata: Ints | None = None) -> list[Ints]:
    """Items by cluster: int64[clusters, size] for each size and stratum, items in their order.

    cluster  int64[n]; strata  int64[n], the same for all items of a cluster (that of its first item
    counts)
    """
    n = len(cluster)
    order = np.argsort(cluster, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(cluster[order]) != 0))
    sizes = np.diff(np.append(begins, n)) if n else np.empty(0, np.int64)
    if n == 0:
        return []
    kind = np.zeros(len(begins), np.int64) if strata is None else strata[order[begins]]
    found = []
    for stratum, size in np.unique(np.stack([kind, sizes]), axis=1).T.tolist():
        starts = begins[(kind == stratum) & (sizes == size)]
        found.append(order[starts[:, None] + np.arange(size)[None, :]].astype(np.int64))
    return found


def shuffled(blocks: list[Ints], n: int, rng: np.random.Generator) -> Ints:
    """One draw: which item's place each of the n items takes; int64[n]."""
    result = np.arange(n)
    for block in blocks:
        result[block.reshape(-1)] = block[rng.permutation(len(block))].reshape(-1)
    return result
