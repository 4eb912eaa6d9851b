"""A twin of `ranking.pairwise` for two models, which tests one pair at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from contam.rescore.stats.clusters import Estimate, spread_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_NAN = float("nan")
_LEAST_CLUSTERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Mean difference first - second over common items, its paired error, z and two-sided p.

    z  difference / error
    p  McNemar's exact one for 0/1 scores of items that stand alone, else of the paired t test, by
       whole clusters where there are any
    """

    difference: float
    error: float
    z: float
    p: float


def compare(first: Floats, second: Floats, cluster: Ints | None = None) -> Comparison:
    """Compare two models by their scores on the same n items (Miller 2024)."""
    d = first - second
    difference = float(d.mean()) if len(d) else _NAN
    spread = spread_of(d, cluster)
    found = Estimate(difference, spread.error, spread.df)
    if not spread.error > 0:
        # Equal on every item, apart by the same amount on every one, or all in one cluster.
        equal = spread.n_clusters >= _LEAST_CLUSTERS and difference == 0
        z, p = (0.0, 1.0) if equal else (_NAN, _NAN)
    else:
        z, p = difference / spread.error, found.p
    binary = bool(np.all((first == 0) | (first == 1)) and np.all((second == 0) | (second == 1)))
    if binary and spread.n_clusters == len(d):
        p = mcnemar(first, second)
    return Comparison(difference=difference, error=spread.error, z=z, p=p)


def mcnemar(first: Floats, second: Floats) -> float:
    """Exact two-sided McNemar p: binomial(min(n10, n01), n10 + n01, 1/2); 1 if none differ."""
    only_first = int(np.count_nonzero(first > second))
    only_second = int(np.count_nonzero(second > first))
    n = only_first + only_second
    return float(stats.binomtest(min(only_first, only_second), n, 0.5).pvalue) if n else 1.0
