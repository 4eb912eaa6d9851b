"""Compute standard errors and intervals of means, over clustered items too, and pass@k.

Questions about one passage, or two copies of one item, are no independent draws. Every number of a
re-scoring that says how sure it is counts clusters the way this module does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import betaincinv, gammaln, stdtr, stdtrit

from contam.detect.intervals import LEVEL, wilson

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contam.rescore import Bools, Floats, Ints


SURE: Final = 0.05
"""The level of every test."""

LEAST_CLUSTERS: Final = 10
"""Clusters below which errors over them say little."""

_HUGE: Final = 1e9
_LEAST_DF: Final = 0.01
ROUNDING: Final = 1e-9
"""An error below this share of what it is the error of is one of rounding alone."""


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


def _quantile(df: float, level: float) -> float:
    """The t quantile of a two-sided interval; huge, yet finite, for next to no freedom."""
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


def error_of_mean(spreads: Sequence[Spread]) -> float:
    """Standard error of the mean of several means, whose clusters may be the same ones."""
    codes = np.concatenate([spread.codes for spread in spreads])
    parts = np.concatenate([spread.parts for spread in spreads])
    sums = np.bincount(np.unique(codes, return_inverse=True)[1], weights=parts)
    if np.isnan([spread.error for spread in spreads]).any():
        return np.nan
    return float(np.sqrt(sums @ sums)) / len(spreads)


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
    def is_sure(self) -> bool:
        """Whether there is an error to speak of: one of rounding alone says nothing."""
        return self.error > ROUNDING * abs(self.value) and self.df > 0

    @property
    def p(self) -> float:
        """Two-sided p of 0; nan without an error."""
        if not self.is_sure:
            return np.nan
        return float(2 * stdtr(self.df, -abs(self.value) / self.error))

    def limits(self, level: float = 0.95) -> tuple[float, float]:
        """The t interval; nan without an error."""
        if not self.is_sure:
            return np.nan, np.nan
        half = self.error * _quantile(self.df, level)
        return self.value - half, self.value + half


def difference_of(
    first: Floats, second: Floats, clusters: tuple[Ints, Ints] | None = None
) -> Estimate:
    """Mean of the first less mean of the second, Welch's t test with clusters on either side.

    clusters  of the items of both, numbered alike; None where every item stands alone
    """
    pairs = zip((first, second), clusters or (None, None), strict=True)
    sides = [spread_of(values, code) for values, code in pairs]
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


def blocks_of(cluster: Ints) -> list[Ints]:
    """Items by cluster: int64[clusters, size] for each size, items in their order.

    cluster  int64[n]
    """
    n = len(cluster)
    order = np.argsort(cluster, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(cluster[order]) != 0))
    sizes = np.diff(np.append(begins, n)) if n else np.empty(0, np.int64)
    return [
        order[begins[sizes == size][:, None] + np.arange(size)[None, :]].astype(np.int64)
        for size in np.unique(sizes).tolist()
    ]


def shuffled(blocks: list[Ints], n: int, rng: np.random.Generator) -> Ints:
    """One draw: which item's place each of the n items takes; int64[n]."""
    result = np.arange(n)
    for block in blocks:
        result[block.reshape(-1)] = block[rng.permutation(len(block))].reshape(-1)
    return result


_RESAMPLES: Final = 2_000
_BLOCK_DRAWS: Final = 4_000_000
_GROUPS: Final = 20
#: Single items below which a bootstrap of their mean says little.
_FEW: Final = 10


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the limits of its interval; `method` names how the limits were made."""

    estimate: float
    low: float
    high: float
    method: str


def clopper_pearson(successes: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Clopper-Pearson limits of a proportion (1934), as published tables mostly give them."""
    tail = (1 - level) / 2
    low = betaincinv(successes, n - successes + 1, tail) if successes else 0.0
    high = betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    return float(low), float(high)


def newcombe(
    first: tuple[float, int], second: tuple[float, int], level: float = LEVEL
) -> tuple[float, float]:
    """Limits of p1 - p2 for independent samples (Newcombe 1998, method 10).

    first, second  (successes, n)
    """
    p1, p2 = first[0] / first[1], second[0] / second[1]
    (l1, u1), (l2, u2) = wilson(*first, level), wilson(*second, level)
    d = p1 - p2
    low = d - float(np.hypot(p1 - l1, u2 - p2))
    return low, d + float(np.hypot(u1 - p1, p2 - l2))


def interval_of(scores: Floats, cluster: Ints | None = None, *, seed: int = 0) -> Interval:
    """The mean of item scores with a 95 % interval; not a number without items.

    0/1 scores     Wilson; where clusters hold several items, with n over the design effect for n
                   and the t quantile of the clusters for the normal one (Korn and Graubard 1998)
    other scores   the t interval over clusters, or over single items where these are few; else the
                   bootstrap-t over items, which holds for skewed scores, too

    No limits where one item or cluster is all there is, or where all scores are equal and no share.
    """
    n = len(scores)
    if n == 0:
        nothing = float("nan")
        return Interval(nothing, nothing, nothing, "no item")
    mean = float(scores.mean())
    if cluster is not None and len(np.unique(cluster)) < n:
        return _by_spread(scores, cluster, mean, "clusters")
    if right_or_wrong(scores):
        return Interval(mean, *wilson(float(scores.sum()), n), "Wilson")
    if n < _FEW or bool(np.all(scores == scores[0])):
        return _by_spread(scores, None, mean, "items")
    limits = bootstrap_limits(scores, seed=seed)
    if limits is None:
        return _by_spread(scores, None, mean, "items")
    return Interval(mean, *_within(scores, *limits), "bootstrap-t")


def _by_spread(scores: Floats, cluster: Ints | None, mean: float, unit: str) -> Interval:
    nothing = float("nan")
    spread = spread_of(scores, cluster)
    if spread.n_clusters == 1:
        return Interval(mean, nothing, nothing, f"one {unit[:-1]} only")
    quantile = _quantile(spread.df, LEVEL)
    if right_or_wrong(scores) or (are_shares(scores) and not spread.error > 0):
        limits = wilson(mean * spread.effective, spread.effective, quantile=quantile)
        return Interval(mean, *limits, f"Wilson over {unit}")
    if not spread.error > 0:
        return Interval(mean, nothing, nothing, f"no spread between {unit}")
    half = quantile * spread.error
    return Interval(mean, *_within(scores, mean - half, mean + half), f"t over {unit}")


def are_shares(scores: Floats) -> bool:
    """Whether all scores lie within 0 and 1."""
    return bool(((scores >= 0) & (scores <= 1)).all())


def _within(scores: Floats, low: float, high: float) -> tuple[float, float]:
    """Limits of a mean of shares stay within 0 and 1; other scores have no such ends."""
    return (max(0.0, low), min(1.0, high)) if are_shares(scores) else (low, high)


def jackknife(
    statistic: Callable[[Bools], float],
    inside: Bools,
    cluster: Ints | None = None,
    *,
    seed: int = 0,
) -> Estimate:
    """A statistic that is no mean of items, with its error.

    statistic  of a mask of all n items; inside  bool[n], those it is of

    The items, whole clusters together, are dealt into 20 groups, and the statistic is made again
    without each (delete-a-group jackknife, t of 19 degrees of freedom). No error below 20 clusters,
    or where it is not defined without one of the groups.
    """
    value = statistic(inside)
    places = np.flatnonzero(inside)
    names, of = np.unique(places if cluster is None else cluster[places], return_inverse=True)
    if len(names) < _GROUPS:
        return Estimate(value, np.nan, 0.0)
    group = np.random.default_rng(seed).permutation(len(names))[of] % _GROUPS
    without = np.empty(_GROUPS)
    for at in range(_GROUPS):
        kept = inside.copy()
        kept[places[group == at]] = False
        without[at] = statistic(kept)
    rest = without - without.mean()
    return Estimate(value, float(np.sqrt((_GROUPS - 1) / _GROUPS * (rest @ rest))), _GROUPS - 1.0)


def bootstrap_limits(
    scores: Floats, *, seed: int, resamples: int = _RESAMPLES, level: float = LEVEL
) -> tuple[float, float] | None:
    """Limits of the mean by the bootstrap-t (Efron 1981), float64[n] of scores that stand alone.

    None where one draw of twenty or more has no spread.
    """
    rng = np.random.default_rng(seed)
    n = len(scores)
    rest = scores - scores.mean()
    least = ROUNDING * float(np.abs(rest).max())
    values = np.full(resamples, np.nan)
    step = max(1, _BLOCK_DRAWS // n)
    for begin in range(0, resamples, step):
        end = min(resamples, begin + step)
        drawn = rest[rng.integers(0, n, (end - begin, n))]
        error = drawn.std(axis=1, ddof=1) / np.sqrt(n)
        np.divide(drawn.mean(axis=1), error, out=values[begin:end], where=error > least)
    known = values[~np.isnan(values)]
    if len(known) < LEVEL * resamples:
        return None
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(known, [tail, 100 - tail]) * scores.std(ddof=1) / np.sqrt(n)
    return float(scores.mean() - high), float(scores.mean() - low)


def pass_at(k: int, right: Floats, answers: Ints) -> Floats:
    """The chance that one of k answers is right, of each item (Chen et al. 2021); float64[n].

    right    float64[n], answers that are right;  answers  int64[n], at least k
    """
    wrong = answers - right
    most = np.maximum(wrong, k)
    none = gammaln(most + 1) - gammaln(most - k + 1) - gammaln(answers + 1)
    result: Floats = np.where(wrong < k, 1.0, 1 - np.exp(none + gammaln(answers - k + 1)))
    return result


def samples_note(scores: Floats, answers: Ints, cluster: Ints | None = None) -> str:
    """The error of a mean by its sources, and pass@k with its error, in words.

    scores  float64[n], each the share of an item's answers that are right;  answers  int64[n]

    Var = (Var(x) + E[sigma_i**2] / K) / n (Miller 2024): what items differ by, and what the K
    answers of one item do. "" where an item has one answer only, or a score is no such share.
    """
    right = scores * answers
    if len(scores) <= 1 or answers.min() <= 1 or right_or_wrong(scores):
        return ""
    if not are_shares(scores) or np.abs(right - right.round()).max() > _ROUNDING:
        return ""
    right = right.round()
    whole = spread_of(scores, cluster).error
    sampled = float(np.sqrt((scores * (1 - scores) / (answers - 1)).sum())) / len(scores)
    between = float(np.sqrt(max(0.0, whole**2 - sampled**2)))
    k = int(answers.min())
    most = pass_at(k, right, answers)
    return (
        f"{k} answers an item: error {whole:.4f}, {between:.4f} between items and {sampled:.4f} "
        f"within; pass@{k} {most.mean():.4f}, error {spread_of(most, cluster).error:.4f}"
    )


_ROUNDING = 1e-6
