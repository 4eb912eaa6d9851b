"""Fit lines over models: ordinary least squares, leverage, residuals from the line of the others.

Every function takes one point for each model: x on one set of items, y on another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

LEAST_MODELS: Final = 5
"""Models that a line needs: fewer say nothing of a slope."""

_NAN: Final = float("nan")
_LEVEL: Final = 0.95
_COEFFICIENTS: Final = 2
_HIGH: Final = 3.0
_LEAST_DISTINCT: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A least-squares line y = intercept + slope x with 95 % limits of t with n - 2 d.f.

    error  standard error of the slope;  region  smallest and largest x of the fit
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
    region: tuple[float, float]


def fit_line(x: Floats, y: Floats) -> Fit:
    """The line through at least three points with different x; ValueError for fewer."""
    n = len(x)
    if n < _LEAST_DISTINCT or np.ptp(x) == 0:
        raise ValueError(f"{n} points, not all with another x, determine no line")
    middle = x.mean()
    spread = float(((x - middle) ** 2).sum())
    slope = float(((x - middle) * y).sum()) / spread
    intercept = float(y.mean()) - slope * float(middle)
    rest = float(((y - intercept - slope * x) ** 2).sum())
    variance = rest / (n - _COEFFICIENTS)
    error = np.sqrt(variance / spread)
    beside = np.sqrt(variance * (1 / n + middle**2 / spread))
    t = float(stdtrit(n - _COEFFICIENTS, (1 + _LEVEL) / 2))
    total = float(((y - y.mean()) ** 2).sum())
    return Fit(
        n=n,
        slope=slope,
        slope_low=slope - t * float(error),
        slope_high=slope + t * float(error),
        error=float(error),
        intercept=intercept,
        intercept_low=intercept - t * float(beside),
        intercept_high=intercept + t * float(beside),
        r2=1 - rest / total if total > 0 else _NAN,
        region=(float(x.min()), float(x.max())),
    )


def leverage(x: Floats) -> Floats:
    """float64[n]: the diagonal of the hat matrix; its sum is 2."""
    rest = x - x.mean()
    spread = float((rest**2).sum())
    return np.asarray(1 / len(x) + rest**2 / spread, np.float64)


def far_out(x: Floats) -> Bools:
    """bool[n]: points with more than three times the mean leverage (Hoaglin, Welsch, Velleman)."""
    found: Bools = leverage(x) > _HIGH * _COEFFICIENTS / len(x)
    return found


def reliability(x: Floats, noise: Floats) -> float:
    """The share of the variance of x over models that is not sampling noise.

    noise  float64[n], sampling variance of each x. Noise in x flattens a least-squares line by this
           factor, which would look like diminishing returns. At most 1; below 0 it is 0.
    """
    variance = float(np.var(x, ddof=1))
    return max(0.0, 1 - float(noise.mean()) / variance) if variance > 0 else 0.0


def resampled_slope(
    x: Floats, y: Floats, noise: Floats, *, draws: int, seed: int
) -> tuple[float, float, float]:
    """The slope freed of noise in x, and its 95 % percentile limits when models are resampled.

    The slope is divided by the reliability of x, in every draw anew. nan where less than half of
    the variance of x is more than noise, in the sample or in one draw of twenty.
    """
    whole = reliability(x, noise)
    if whole < _LEAST_RELIABLE:
        return _NAN, _NAN, _NAN
    rng = np.random.default_rng(seed)
    n = len(x)
    picked = rng.integers(0, n, size=(draws, n))
    xs, ys = x[picked], y[picked]
    rest = xs - xs.mean(axis=1, keepdims=True)
    variance = (rest**2).sum(axis=1)
    kept = np.zeros(draws)
    np.divide(noise[picked].mean(axis=1) * (n - 1), variance, out=kept, where=variance > 0)
    reliable = 1 - kept
    fine = (variance > 0) & (reliable > _LEAST_RELIABLE / 2)
    point = fit_line(x, y).slope / whole
    if np.count_nonzero(fine) < _LEVEL * draws:
        return point, _NAN, _NAN
    slopes = (rest * ys).sum(axis=1)[fine] / variance[fine] / reliable[fine]
    low, high = np.quantile(slopes, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return point, float(low), float(high)


_LEAST_RELIABLE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """How far each model lies from the line of others; float64[models] each.

    expected  y on that line;  residual  y - expected, with 95 % limits of a prediction
    p         one-sided, of a model that lies on the line or above
    beyond    bool[models], whether the line is extended to reach its x
    """

    expected: Floats
    residual: Floats
    low: Floats
    high: Floats
    p: Floats
    beyond: Bools


def residuals(x: Floats, y: Floats, reference: Bools | None = None) -> Residuals:
    """Residuals from the line of all other models, or of the reference models.

    reference  bool[models]; the line is of these alone, without the model itself

    The prediction has the error of the line and the scatter of one more model: Student's t with two
    degrees of freedom less than there are models in the line. nan where those are fewer than five
    or all have one x.
    """
    m = len(x)
    known = np.ones(m, np.bool_) if reference is None else reference
    columns = {name: np.full(m, _NAN) for name in ("expected", "residual", "low", "high", "p")}
    beyond = np.zeros(m, np.bool_)
    for at in range(m):
        others = known.copy()
        others[at] = False
        own_x, own_y = x[others], y[others]
        n = len(own_x)
        if n < LEAST_MODELS or np.ptp(own_x) == 0:
            continue
        fit = fit_line(own_x, own_y)
        spread = float(((own_x - own_x.mean()) ** 2).sum())
        scatter = fit.error * np.sqrt(spread)
        error = scatter * np.sqrt(1 + 1 / n + (x[at] - own_x.mean()) ** 2 / spread)
        expected = fit.intercept + fit.slope * x[at]
        residual = y[at] - expected
        half = float(stdtrit(n - _COEFFICIENTS, (1 + _LEVEL) / 2)) * error
        columns["expected"][at], columns["residual"][at] = expected, residual
        columns["low"][at], columns["high"][at] = residual - half, residual + half
        if error > 0:
            columns["p"][at] = float(stdtr(n - _COEFFICIENTS, residual / error))
        beyond[at] = not fit.region[0] <= x[at] <= fit.region[1]
    return Residuals(**columns, beyond=beyond)
