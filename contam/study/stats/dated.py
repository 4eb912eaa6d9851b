"""Compare scores of items by date: before and after a cutoff, and cohort by cohort.

Scores are float64[n]. Whatever drifts for every model, such as the difficulty of the items, goes
when the mean score of reference models on the same items is taken off first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtr, stdtrit

from contam.rescore.stats.clusters import Estimate, difference_of

if TYPE_CHECKING:
    from contam.study.model import Bools, Floats, Ints

SIGMAS: Final = 3.0
_NAN: Final = float("nan")
_TWO: Final = 2
_HAIR: Final = 1e-9
_BLOCK_CELLS: Final = 1 << 21


def drop(before: Floats, after: Floats) -> Estimate:
    """Mean before a cutoff less mean after it, with Welch's standard error.

    Raises ValueError for fewer than two items on a side.
    """
    if min(len(before), len(after)) < _TWO:
        raise ValueError("a drop needs two items before and two after the cutoff")
    return difference_of(before, after)


def stratified_drop(
    before: Floats, after: Floats, strata: tuple[Ints, Ints]
) -> tuple[Estimate, float]:
    """The drop within strata, each weighed by its items, and the share of the items in these.

    strata  of the items before and after, numbered alike; those with two items on either side count

    nan where no stratum has.
    """
    sides = [
        (before[strata[0] == kind], after[strata[1] == kind]) for kind in np.intersect1d(*strata)
    ]
    sides = [pair for pair in sides if min(map(len, pair)) >= _TWO]
    n = np.array([len(first) + len(second) for first, second in sides], np.float64)
    if not sides:
        return Estimate(_NAN, _NAN, 0.0), 0.0
    parts = [drop(*pair) for pair in sides]
    weights = n / n.sum()
    squares = (weights * np.array([part.error for part in parts])) ** 2
    # A stratum whose scores are all equal has no error to add.
    varies = squares > 0
    total = float(squares[varies].sum())
    df = np.array([part.df for part in parts])[varies]
    estimate = Estimate(
        value=float(weights @ np.array([part.value for part in parts])),
        error=float(np.sqrt(total)) if total else _NAN,
        # Welch and Satterthwaite's, over all strata.
        df=total**2 / float((squares[varies] ** 2 / df).sum()) if total else 0.0,
    )
    return estimate, float(n.sum()) / (len(before) + len(after))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The cutoff at which scores fall or rise most.

    day     the last day before it, as a proleptic ordinal
    z       standardised drop there, below 0 for a rise;  n_cutoffs  how many cutoffs were tried
    p       (1 + permutations with a cutoff as sharp) / (1 + permutations): the search is paid for
    """

    day: int
    z: float
    p: float
    n_cutoffs: int


def scan(
    scores: Floats,
    day: Ints,
    *,
    strata: Ints | None = None,
    least: int = 20,
    permutations: int = 2_000,
    seed: int = 0,
) -> Scan | None:
    """Try every cutoff that leaves `least` items on either side; None where there is none.

    The statistic is the difference of means over its error if dates meant nothing, of scores less
    the mean of their stratum; p by dealing the dates out anew within strata.
    """
    n = len(scores)
    order = np.argsort(day, kind="stable")
    days = day[order]
    kind = np.zeros(n, np.int64) if strata is None else np.unique(strata, return_inverse=True)[1]
    kind = kind[order]
    sizes = np.bincount(kind)
    rest = scores[order] - (np.bincount(kind, weights=scores[order]) / sizes)[kind]
    cuts = np.flatnonzero(np.diff(days) > 0) + 1
    cuts = cuts[(cuts >= least) & (cuts <= n - least)]
    deviation = float(np.sqrt((rest @ rest) / max(1, n - len(sizes))))
    if not len(cuts) or deviation <= _HAIR:
        return None
    # The residuals add up to 0: the sum before a cutoff says what the sum after it is.
    scale = (1 / cuts + 1 / (n - cuts)) / (deviation * np.sqrt(1 / cuts + 1 / (n - cuts)))
    z = np.cumsum(rest)[cuts - 1] * scale
    best = int(np.abs(z).argmax())
    reached = abs(float(z[best])) * (1 - _HAIR)
    rng = np.random.default_rng(seed)
    places = [np.flatnonzero(kind == stratum) for stratum in range(len(sizes))]
    hits = 0
    step = max(1, _BLOCK_CELLS // n)
    for begin in range(0, permutations, step):
        dealt = np.tile(rest, (min(step, permutations - begin), 1))
        for own in places:
            dealt[:, own] = rng.permuted(dealt[:, own], axis=1)
        sums = np.cumsum(dealt, axis=1)[:, cuts - 1]
        hits += int(np.count_nonzero(np.abs(sums * scale).max(axis=1) >= reached))
    return Scan(
        day=int(days[cuts[best] - 1]),
        z=float(z[best]),
        p=(1 + hits) / (1 + permutations),
        n_cutoffs=len(cuts),
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Chart:
    """A control chart of cohort means; arrays of a value a cohort.

    centre     mean of the items of the other baseline cohorts, so that none is its own yardstick
    low, high  control limits: 3 sigma, by the t of the spread within cohorts; nan for one item
    out        bool, outside of the limits
    """

    value: Floats
    centre: Floats
    low: Floats
    high: Floats
    out: Bools


def control_chart(scores: Floats, cohort: Ints, baseline: Bools | None = None) -> Chart:
    """Of items in cohorts 0, 1, ..., each of which has an item.

    baseline  bool[cohorts], which cohorts say what is usual; all of them when None
    """
    sizes = np.bincount(cohort)
    mean = np.bincount(cohort, weights=scores) / sizes
    usual = np.ones(len(sizes), np.bool_) if baseline is None else baseline
    freedom = int((sizes - 1).sum())
    rest = scores - mean[cohort]
    deviation = float(np.sqrt((rest @ rest) / freedom)) if freedom else _NAN
    others = float(sizes[usual].sum()) - np.where(usual, sizes, 0)
    total = float((sizes * mean)[usual].sum()) - np.where(usual, sizes * mean, 0.0)
    centre = np.divide(total, others, out=np.full(len(sizes), _NAN), where=others > 0)
    known = (sizes >= _TWO) & (others >= _TWO)
    error = np.full(len(sizes), _NAN)
    error[known] = deviation * np.sqrt(1 / sizes[known] + 1 / others[known])
    half = (float(stdtrit(freedom, ndtr(SIGMAS))) if freedom else _NAN) * error
    low, high = centre - half, centre + half
    out = np.asarray((mean < low) | (mean > high))
    return Chart(value=mean, centre=centre, low=low, high=high, out=out)
