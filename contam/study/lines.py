"""Fit lines over models: ordinary least squares, leverage, residuals from the line of the others.

Every function takes one point for each model: x on one set of items, y on another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    from contam.study.model import Bools, Floats

LEAST_MODELS: Final = 5
"""Models that a line needs: fewer say nothing of a slope."""

_NAN: Final = float("nan")
_LEVEL: Final = 0.95
_TAILS: Final = ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2)
_COEFFICIENTS: Final = 2
_HIGH: Final = 3.0
_LEAST_DISTINCT: Final = 3
_LEAST_RELIABLE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A least-squares line y = intercept + slope x with 95 % limits of t with n - 2 d.f.

    error  standard error of the slope;  region_low, region_high  smallest and largest x of the fit
    """

    n: int
    slope: float
    slope_low: float
    slope_high: float
    error: float
    intercept: float
    intercept_low: float
    intercept_high: float
    r2: float
    region_low: float
    region_high: float


def fit_line(x: Floats, y: Floats) -> Fit:
    """The line through at least three points with different x; ValueError for fewer."""
    n = len(x)
    if n < _LEAST_DISTINCT or np.ptp(x) == 0:
        raise ValueError(f"{n} points, not all with another x, determine no line")
    # Imported here: it takes longer than all else of a study.
    from scipy.stats import linregress

    found = linregress(x, y)
    t = float(stdtrit(n - _COEFFICIENTS, _TAILS[1]))
    return Fit(
        n=n,
        slope=float(found.slope),
        slope_low=float(found.slope - t * found.stderr),
        slope_high=float(found.slope + t * found.stderr),
        error=float(found.stderr),
        intercept=float(found.intercept),
        intercept_low=float(found.intercept - t * found.intercept_stderr),
        intercept_high=float(found.intercept + t * found.intercept_stderr),
        r2=float(found.rvalue**2) if np.ptp(y) > 0 else _NAN,
        region_low=float(x.min()),
        region_high=float(x.max()),
    )


def far_out(x: Floats) -> Bools:
    """bool[n]: points with more than three times the mean leverage (Hoaglin, Welsch, Velleman)."""
    squares = (x - x.mean()) ** 2
    found: Bools = 1 / len(x) + squares / squares.sum() > _HIGH * _COEFFICIENTS / len(x)
    return found


def resampled_slope(
    x: Floats, y: Floats, noise: Floats, *, draws: int, seed: int
) -> tuple[float, float, float]:
    """The slope freed of noise in x, and its 95 % percentile limits when models are resampled.

    noise  float64[n], sampling variance of each x, which flattens a least-squares line: that would
           look like diminishing returns

    Noise is taken off the variance of x, in every draw anew. nan where less than half of this
    variance is more than noise, in the sample or in one draw of twenty.
    """
    point = float(_freed_slope(x, y, noise, _LEAST_RELIABLE))
    if np.isnan(point):
        return _NAN, _NAN, _NAN
    picked = np.random.default_rng(seed).integers(0, len(x), size=(draws, len(x)))
    slopes = _freed_slope(x[picked], y[picked], noise[picked], _LEAST_RELIABLE / 2)
    return point, *percentile_limits(slopes)


def _freed_slope(x: Floats, y: Floats, noise: Floats, least: float) -> Floats:
    """Slopes along the last axis; nan where `least` of the variance of x or more is noise."""
    rest = x - x.mean(axis=-1, keepdims=True)
    squares = (rest**2).sum(axis=-1)
    true = np.asarray(squares - noise.mean(axis=-1) * (x.shape[-1] - 1))
    reliable = (squares > 0) & (true > least * squares)
    slopes = np.full(true.shape, _NAN)
    np.divide((rest * y).sum(axis=-1), true, out=slopes, where=reliable)
    return slopes


def percentile_limits(values: Floats) -> tuple[float, float]:
    """95 % limits of the draws; nan where more than one in twenty is nan."""
    known = values[~np.isnan(values)]
    if len(known) < _LEVEL * len(values):
        return _NAN, _NAN
    low, high = np.quantile(known, _TAILS)
    return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """How far each model lies from the line of others; float64[models] each.

    expected    y on that line;  residual  y - expected, with 95 % limits of a prediction
    residual_p  one-sided, of a model that lies on the line or above
    beyond_fit  bool[models], whether the line is extended to reach its x
    """

    expected: Floats
    residual: Floats
    residual_low: Floats
    residual_high: Floats
    residual_p: Floats
    beyond_fit: Bools


def residuals(x: Floats, y: Floats, reference: Bools | None = None) -> Residuals:
    """Residuals from the line of all other models, or of the reference models.

    reference  bool[models]; the line is of these alone, without the model itself

    The prediction has the error of the line and the scatter of one more model: Student's t with two
    degrees of freedom less than there are models in the line. nan where those are fewer than five
    or all have one x.
    """
    m = len(x)
    known = np.ones(m, np.bool_) if reference is None else reference
    expected, error, df = np.full((3, m), _NAN)
    beyond = np.zeros(m, np.bool_)
    for at in range(m):
        others = known & (np.arange(m) != at)
        own = x[others]
        n = len(own)
        if n < LEAST_MODELS or np.ptp(own) == 0:
            continue
        fit = fit_line(own, y[others])
        squares = n * own.var()
        expected[at] = fit.intercept + fit.slope * x[at]
        error[at] = fit.error * np.sqrt(squares * (1 + 1 / n) + (x[at] - own.mean()) ** 2)
        df[at] = n - _COEFFICIENTS
        beyond[at] = not fit.region_low <= x[at] <= fit.region_high
    residual = y - expected
    half = stdtrit(df, _TAILS[1]) * error
    t = np.divide(residual, error, out=np.full(m, _NAN), where=error > 0)
    return Residuals(
        expected=expected,
        residual=residual,
        residual_low=residual - half,
        residual_high=residual + half,
        residual_p=stdtr(df, t),
        beyond_fit=beyond,
    )
