"""Compute standard errors of means over clustered items.

Questions about one passage, or two copies of one item, are no independent draws. Every number of a
re-scoring that says how sure it is counts clusters the way this module does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    from contam.rescore import Floats, Ints


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
        return _quantile(self.df, level)


def _quantile(df: float, level: float) -> float:
    return min(_HUGE, float(stdtrit(max(df, _LEAST_DF), 0.5 + level / 2)))


def right_or_wrong(scores: Floats) -> bool:
    """Whether all scores are 0 or 1, whatever their shape."""
    return bool(np.all((scores == 0) | (scores == 1)))


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
            error=np.nan,
            df=0.0,
            effective=float(n_clusters),
            parts=np.zeros(n_clusters),
            codes=names.astype(np.int64),
        )
    sums = np.bincount(place, weights=scores - scores.mean())
    parts = sums / n / np.sqrt(1 - sizes / n)
    variance = float((parts * parts).sum())
    alone = float(np.var(scores, ddof=1)) / n
    effect = variance / alone if alone > 0 else np.nan
    return Spread(
        n_clusters=n_clusters,
        error=float(np.sqrt(variance)),
        df=float(freedom(sizes, np.array(effect))),
        effective=n / max(1.0, effect) if effect > 0 else float(n_clusters),
        parts=parts,
        codes=names.astype(np.int64),
    )


def freedom(sizes: Ints, effect: Floats) -> Floats:
    """Satterthwaite's degrees of freedom of a clustered error; float64, as `effect`.

    sizes   int64[clusters], items of each; effect  design effects, nan where nothing varies

    Cluster sums vary like size * (1 + (size - 1) * r), r the correlation within clusters that would
    make the design effect, 1 where that is unknown.
    """
    power_1, power_2, power_3, power_4 = (
        float((sizes.astype(np.float64) ** power).sum()) for power in range(1, 5)
    )
    excess = power_2 / power_1 - 1
    if excess <= 0:
        return np.full_like(effect, len(sizes) - 1)
    within = np.clip(np.where(effect > 0, (effect - 1) / excess, 1.0), 0.0, 1.0)
    total = power_1 + within * (power_2 - power_1)
    squares = (
        power_2 + 2 * within * (power_3 - power_2) + within**2 * (power_4 - 2 * power_3 + power_2)
    )
    result: Floats = total**2 / squares - 1
    return result


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its standard error and the degrees of freedom of its t."""

    value: float
    error: float
    df: float

    @property
    def p(self) -> float:
        """Two-sided p of 0; nan without an error."""
        if not (self.error > 0 and self.df > 0):
            return np.nan
        return float(2 * stdtr(self.df, -abs(self.value) / self.error))

    def limits(self, level: float = 0.95) -> tuple[float, float]:
        """The t interval."""
        if not (self.error > 0 and self.df > 0):
            return np.nan, np.nan
        half = self.error * _quantile(self.df, level)
        return self.value - half, self.value + half


def difference_of(
    first: Floats, second: Floats, clusters: tuple[Ints, Ints] | None = None
) -> Estimate:
    """Mean of the first less mean of the second, Welch's t test with clusters on either side.

    clusters  of the items of both, numbered alike; None where every item stands alone
    """
    sides = (
        (spread_of(first), spread_of(second))
        if clusters is None
        else (spread_of(first, clusters[0]), spread_of(second, clusters[1]))
    )
    own, other = (side.error**2 for side in sides)
    together = 0.0 if clusters is None else shared(*sides) * sides[0].error * sides[1].error
    squares = own**2 / max(sides[0].df, _LEAST_DF) + other**2 / max(sides[1].df, _LEAST_DF)
    return Estimate(
        value=float(first.mean() - second.mean()),
        error=float(np.sqrt(max(own + other - 2 * together, 0.0))) if own + other > 0 else np.nan,
        df=(own + other) ** 2 / squares if squares > 0 else 0.0,
    )


def shared(first: Spread, second: Spread) -> float:
    """Correlation of two means whose clusters may be the same ones; 0 where they share none."""
    if not (first.error > 0 and second.error > 0):
        return 0.0
    _, at, at_second = np.intersect1d(
        first.codes, second.codes, assume_unique=True, return_indices=True
    )
    together = float((first.parts[at] * second.parts[at_second]).sum())
    return min(1.0, max(-1.0, together / (first.error * second.error)))


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
