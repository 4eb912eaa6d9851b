"""Compute intervals of mean scores: binomial, clustered, repeated, bootstrapped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from contam.rescore.stats.clusters import right_or_wrong, shared, spread_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from contam.rescore import Bools, Floats, Ints


LEVEL: Final = 0.95
_RESAMPLES: Final = 2_000
_BLOCK_DRAWS: Final = 4_000_000
_GROUPS: Final = 20
#: Single items below which a bootstrap of their mean covers visibly less than it claims.
_FEW: Final = 30


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the limits of its interval; `method` names how the limits were made."""

    estimate: float
    low: float
    high: float
    method: str


def wilson(
    successes: float, n: float, level: float = LEVEL, *, quantile: float | None = None
) -> tuple[float, float]:
    """Wilson limits of a proportion (1927). Both numbers may be fractional: a mean times n.

    quantile  what to take for the normal quantile of `level`: that of t for few clusters

    Raises ValueError unless 0 <= successes <= n and n > 0.
    """
    if not 0 <= successes <= n or n <= 0:
        raise ValueError(f"{successes} of {n} is no proportion")
    z = _quantile(level) if quantile is None else quantile
    p = successes / n
    middle = p + z * z / (2 * n)
    half = z * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
    scale = 1 + z * z / n
    # At 0 and 1 the limit is p itself, but for rounding.
    return min(p, max(0.0, (middle - half) / scale)), max(p, min(1.0, (middle + half) / scale))


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
    other scores   the t interval over clusters, or over single items where these are few; else a
                   percentile bootstrap over items, which is too narrow for few

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
    low, high = bootstrap_limits(scores, seed=seed)
    return Interval(mean, low, high, "bootstrap")


def _by_spread(scores: Floats, cluster: Ints | None, mean: float, unit: str) -> Interval:
    nothing = float("nan")
    spread = spread_of(scores, cluster)
    if spread.n_clusters == 1:
        return Interval(mean, nothing, nothing, f"one {unit[:-1]} only")
    quantile = spread.quantile(LEVEL)
    # A share stays within 0 and 1; other scores have no such ends.
    share = bool(scores.min() >= 0 and scores.max() <= 1)
    if right_or_wrong(scores) or (share and not spread.error > 0):
        limits = wilson(mean * spread.effective, spread.effective, quantile=quantile)
        return Interval(mean, *limits, f"Wilson over {unit}")
    if not spread.error > 0:
        return Interval(mean, nothing, nothing, f"no spread between {unit}")
    half = quantile * spread.error
    low, high = (0.0, 1.0) if share else (-np.inf, np.inf)
    return Interval(mean, max(low, mean - half), min(high, mean + half), f"t over {unit}")


def gain_interval(
    scores: Floats, clean: Bools, cluster: Ints | None = None, *, seed: int = 0
) -> Interval:
    """Full - clean, the mean of all n items less that of the clean ones, with a 95 % interval.

    scores  float64[n]; clean  bool[n]; cluster  int64[n], None where every item stands alone

    full - clean is the share of the other items times (their mean - the clean mean). The limits of
    that difference come from the limits of its two sides by square and add (Newcombe 1998, method
    10; with clusters on both sides by their correlation, Zou and Donner 2008). Not a number
    without a clean item; exactly 0 without another one.
    """
    n, n_clean = len(scores), int(np.count_nonzero(clean))
    nothing = float("nan")
    if n_clean == 0:
        return Interval(nothing, nothing, nothing, "no clean item")
    if n_clean == n:
        return Interval(0.0, 0.0, 0.0, "no other item")
    sides = [(scores[mask], None if cluster is None else cluster[mask]) for mask in (~clean, clean)]
    rest, own = (interval_of(*side, seed=seed) for side in sides)
    together = 0.0 if cluster is None else shared(*(spread_of(*side) for side in sides))
    gained = float(scores.mean() - scores[clean].mean())
    method = rest.method if rest.method == own.method else f"{rest.method}, {own.method}"
    if np.isnan([rest.low, own.low]).any():
        return Interval(gained, nothing, nothing, method)
    difference = rest.estimate - own.estimate
    low = difference - _added(rest.estimate - rest.low, own.high - own.estimate, together)
    high = difference + _added(rest.high - rest.estimate, own.estimate - own.low, together)
    share = (n - n_clean) / n
    return Interval(gained, share * low, share * high, method)


def jackknife_gain(
    aggregate: Callable[[Bools], float],
    inside: Bools,
    clean: Bools,
    cluster: Ints | None = None,
    *,
    seed: int = 0,
) -> Interval:
    """Full - clean of a metric that is no mean of items, with a 95 % interval.

    aggregate  the metric over a mask of all n items; inside, clean  bool[n], clean within inside

    The items, whole clusters together, are dealt into 20 groups, and the gain is made again without
    each (delete-a-group jackknife, t of 19 degrees of freedom). No limits below 20 clusters, or
    where the metric is not defined without one of the groups.
    """
    nothing = float("nan")
    if not clean.any():
        return Interval(nothing, nothing, nothing, "no clean item")
    gained = aggregate(inside) - aggregate(clean)
    if bool(np.all(clean == inside)):
        return Interval(gained, gained, gained, "no other item")
    places = np.flatnonzero(inside)
    code = places if cluster is None else cluster[places]
    names, of = np.unique(code, return_inverse=True)
    if len(names) < _GROUPS:
        return Interval(gained, nothing, nothing, "none: too few clusters to leave groups out")
    group = np.random.default_rng(seed).permutation(len(names))[of] % _GROUPS
    without = np.empty(_GROUPS)
    for at in range(_GROUPS):
        kept = inside.copy()
        kept[places[group == at]] = False
        own = kept & clean
        without[at] = aggregate(kept) - aggregate(own) if own.any() else nothing
    if np.isnan(without).any():
        return Interval(gained, nothing, nothing, "none: not defined without some of the items")
    rest = without - without.mean()
    error = float(np.sqrt((_GROUPS - 1) / _GROUPS * (rest @ rest)))
    half = float(stdtrit(_GROUPS - 1, 0.5 + LEVEL / 2)) * error
    return Interval(gained, gained - half, gained + half, "jackknife")


def _added(first: float, second: float, correlation: float) -> float:
    """The length of one arm of a difference, from the arms of its sides."""
    squared = first * first + second * second - 2 * correlation * first * second
    return float(np.sqrt(max(0.0, squared)))


def bootstrap_limits(
    scores: Floats, *, seed: int, resamples: int = _RESAMPLES, level: float = LEVEL
) -> tuple[float, float]:
    """Percentile limits of the mean over draws of items with replacement."""
    rng = np.random.default_rng(seed)
    n = len(scores)
    values = np.empty(resamples)
    step = max(1, _BLOCK_DRAWS // n)
    for begin in range(0, resamples, step):
        end = min(resamples, begin + step)
        values[begin:end] = scores[rng.integers(0, n, (end - begin, n))].mean(axis=1)
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(values, [tail, 100 - tail])
    return float(low), float(high)


def _quantile(level: float) -> float:
    return float(ndtri(0.5 + level / 2))
