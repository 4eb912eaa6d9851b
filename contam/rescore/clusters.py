"""Errors of means whose items rise and fall together, by whole clusters.

Questions about one passage, or two copies of one item, are no independent draws. Every number of a
re-scoring that says how sure it is counts clusters the way this module does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_NAN: Final = float("nan")
_HUGE: Final = 1e9
_LEAST_DF: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How sure a mean of n items is.

    n_clusters  clusters behind it, n where every item stands alone
    error       standard error of the mean, nan below two clusters
    df          degrees of freedom of its t quantile
    effective   independent items that would give this error: n over the design effect, at most n;
                the clusters where nothing varies
    parts       float64[clusters], what each cluster adds to the error: error**2 = sum of squares
    codes       int64[clusters], the cluster of each part
    """

    n_clusters: int
    error: float
    df: float
    effective: float
    parts: Floats
    codes: Ints

    def quantile(self, level: float) -> float:
        """The t quantile of a two-sided interval; huge, yet finite, for next to no freedom."""
        return min(_HUGE, float(stats.t.ppf(0.5 + level / 2, max(self.df, _LEAST_DF))))


def spread_of(scores: Floats, cluster: Ints | None = None) -> Spread:
    """The error of the mean of scores, float64[n], and what it rests on.

    cluster  int64[n]; None where every item stands alone

    The sum of squared cluster sums, each scaled by 1 - its share of the items (CR2 of Bell and
    McCaffrey 2002 for a mean; with clusters of one item it is the usual s.d. / sqrt(n)). The
    degrees of freedom are Satterthwaite's for cluster sums whose variances go with their sizes and
    the correlation found within clusters: one less than the clusters where they are equally large.
    """
    n = len(scores)
    code = np.arange(n) if cluster is None else cluster
    names, place, sizes = np.unique(code, return_inverse=True, return_counts=True)
    n_clusters = len(names)
    if n_clusters <= 1:
        return Spread(
            n_clusters=n_clusters,
            error=_NAN,
            df=0.0,
            effective=float(n_clusters),
            parts=np.zeros(n_clusters),
            codes=names.astype(np.int64),
        )
    sums = np.bincount(place, weights=scores - scores.mean())
    parts = sums / n / np.sqrt(1 - sizes / n)
    variance = float(parts @ parts)
    alone = float(np.var(scores, ddof=1)) / n
    effect = variance / alone if alone > 0 else _NAN
    excess = float(sizes @ sizes) / n - 1
    within = 1.0 if excess > 0 else 0.0
    if excess > 0 and effect > 0:
        within = min(1.0, max(0.0, (effect - 1) / excess))
    weights = sizes * (1 + (sizes - 1) * within)
    return Spread(
        n_clusters=n_clusters,
        error=float(np.sqrt(variance)),
        df=float(weights.sum()) ** 2 / float(weights @ weights) - 1,
        effective=n / max(1.0, effect) if effect > 0 else float(n_clusters),
        parts=parts,
        codes=names.astype(np.int64),
    )


def shared(first: Spread, second: Spread) -> float:
    """Correlation of two means whose clusters may be the same ones; 0 where they share none."""
    if not (first.error > 0 and second.error > 0):
        return 0.0
    _, at, at_second = np.intersect1d(
        first.codes, second.codes, assume_unique=True, return_indices=True
    )
    together = float(first.parts[at] @ second.parts[at_second])
    return min(1.0, max(-1.0, together / (first.error * second.error)))
