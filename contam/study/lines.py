"""Fit lines over models: least squares, residuals from the line of the others, hinges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import stdtr, stdtrit

from contam.rescore.stats.clusters import ROUNDING

if TYPE_CHECKING:
    from statsmodels.regression.linear_model import RegressionResults

    from contam.rescore import Bools, Floats, Ints


LEAST_MODELS: Final = 5
"""Models that a line needs: fewer say nothing of a slope."""

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
        r2=float(found.rvalue**2) if np.ptp(y) > 0 else np.nan,
        region_low=float(x.min()),
        region_high=float(x.max()),
    )


def far_out(x: Floats) -> Bools:
    """bool[n]: points with more than three times the mean leverage (Hoaglin, Welsch, Velleman)."""
    squares = (x - x.mean()) ** 2
    found: Bools = 1 / len(x) + squares / squares.sum() > _HIGH * _COEFFICIENTS / len(x)
    return found


def freed_slope(fit: Fit, x: Floats, noise: Floats) -> tuple[float, float, float]:
    """The slope freed of noise in x, and its 95 % limits.

    noise  float64[n], sampling variance of each x, which flattens a least-squares line: that would
           look like diminishing returns

    Over the share of the variance of x that is no noise (Fuller 1987, 1.1), as are its limits; nan
    where that is below a half.
    """
    squares = float(((x - x.mean()) ** 2).sum())
    share = 1 - float(noise.mean()) * (len(x) - 1) / squares
    if not share >= _LEAST_RELIABLE:
        return np.nan, np.nan, np.nan
    return fit.slope / share, fit.slope_low / share, fit.slope_high / share


def percentile_limits(values: Floats) -> tuple[float, float]:
    """95 % limits of the draws; nan where more than one in twenty is nan."""
    known = values[~np.isnan(values)]
    if len(known) < _LEVEL * len(values):
        return np.nan, np.nan
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


def residuals(
    x: Floats, y: Floats, reference: Bools | None = None, family: Ints | None = None
) -> Residuals:
    """Residuals from the line of all other models, or of the reference models.

    reference  bool[models]; the line is of these alone, without the model itself
    family     int64[models], equal for models of one base, none of which is in the line of another

    The prediction has the error of the line and the scatter of one more model: Student's t with two
    degrees of freedom less than there are models in the line. nan where those are fewer than five
    or all have one x.
    """
    m = len(x)
    known = np.ones(m, np.bool_) if reference is None else reference
    of = np.arange(m) if family is None else family
    expected, error, df = np.full((3, m), np.nan)
    beyond = np.zeros(m, np.bool_)
    for at in range(m):
        others = known & (of != of[at])
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
    sure = error > ROUNDING * np.abs(y).max()
    t = np.divide(residual, error, out=np.full(m, np.nan), where=sure)
    return Residuals(
        expected=expected,
        residual=residual,
        residual_low=residual - half,
        residual_high=residual + half,
        residual_p=stdtr(df, t),
        beyond_fit=beyond,
    )


_GRID: Final = 400
_BOOTSTRAP_GRID: Final = 120
_SINGULAR: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a group scores more at equal compute.

    theta   with its standard error and two-sided p of Student's t; of a hinge they hold the knot
            fixed, as published, and so are a little too sure
    low, high  95 % percentile limits from resampling models, with the knot fitted anew
    slope   points for each unit of compute above the knot, or nan for segments
    r2      of a hinge without a mean (uncentered), of segments with one
    """

    n: int
    theta: float
    error: float
    p: float
    low: float
    high: float
    r2: float
    knot: float = np.nan
    slope: float = np.nan
    slope_error: float = np.nan


def hinge(
    score: Floats, compute: Floats, group: Floats, chance: float, *, draws: int, seed: int
) -> Effect:
    """Score = chance + slope max(0, compute - knot) + theta group, by least squares.

    score, compute, group  float64[n]; group is 0 or 1, and both occur. The knot is the best of all,
    found on a grid and then exactly. Raises ValueError where nothing depends on compute.
    """
    # Imported here: they take longer than all else of a study.
    from scipy.optimize import minimize_scalar
    from statsmodels.regression.linear_model import OLS

    y = score - chance
    once = np.ones((1, len(y)))

    def rest(knots: Floats) -> Floats:
        errors: Floats = _profile(y, compute, group, knots, once)[0][0]
        return errors

    knots = _knots(compute, _GRID)
    best = int(np.argmin(rest(knots)))
    found = minimize_scalar(
        lambda knot: rest(np.array([knot]))[0],
        bounds=(knots[max(best - 1, 0)], knots[min(best + 1, len(knots) - 1)]),
        method="bounded",
        options={"xatol": 1e-9},
    )
    above = np.maximum(0, compute - found.x)
    fit = OLS(y, np.stack([group, above], axis=1), hasconst=False).fit()
    thetas = _resampled(y, compute, group, draws, seed)
    slope, error = float(fit.params[1]), float(fit.bse[1])
    return _effect(fit, thetas, knot=float(found.x), slope=slope, slope_error=error)


def segmented(
    outcome: Floats, compute: Floats, group: Floats, knots: tuple[float, float], draws: int,
    seed: int,
) -> Effect:  # fmt: skip
    """Outcome = [group, 1, three segments of compute] b, by ordinary least squares.

    The segments are min(compute, k1), clip(compute - k1, 0, k2 - k1) and max(0, compute - k2).
    Raises ValueError where there are models in too few of them, or too few models.
    """
    from statsmodels.regression.linear_model import OLS

    design = _segments(compute, group, knots)
    n, k = design.shape
    if n <= k or np.linalg.matrix_rank(design) < k:
        raise ValueError("too few models in one of the three segments of compute")
    thetas = _resampled_segments(design, outcome, draws, seed)
    return _effect(OLS(outcome, design, hasconst=True).fit(), thetas)


def _effect(fit: RegressionResults, thetas: Floats, **hinge: float) -> Effect:
    """The first coefficient of a fit, and its limits by resampling."""
    # Where the outcome is one number, there is nothing to divide by: nan is what that should give.
    with np.errstate(divide="ignore", invalid="ignore"):
        p, r2 = float(fit.pvalues[0]), float(fit.rsquared)
    low, high = percentile_limits(thetas)
    return Effect(
        n=int(fit.nobs),
        theta=float(fit.params[0]),
        error=float(fit.bse[0]),
        # An error that rounding alone left says nothing.
        p=p if fit.bse[0] > ROUNDING * np.abs(fit.model.endog).max() else np.nan,
        low=low,
        high=high,
        r2=r2 if np.isfinite(r2) else np.nan,
        **hinge,
    )


def _segments(compute: Floats, group: Floats, knots: tuple[float, float]) -> Floats:
    first, second = knots
    return np.stack(
        [
            group,
            np.ones(len(compute)),
            np.minimum(compute, first),
            np.clip(compute - first, 0, second - first),
            np.maximum(0, compute - second),
        ],
        axis=1,
    )


def _weights(n: int, draws: int, seed: int) -> Floats:
    """float64[draws, n]: how often each model is drawn."""
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=draws)
    return drawn.astype(np.float64)


def _resampled_segments(design: Floats, outcome: Floats, draws: int, seed: int) -> Floats:
    """float64[draws]: theta in every draw of models, nan where its design determines none."""
    n, k = design.shape
    # Centred and scaled, so that the normal equations keep their digits.
    spread = design.std(axis=0)
    design = np.divide(design - design.mean(axis=0), spread, out=np.ones((n, k)), where=spread > 0)
    weights = _weights(n, draws, seed)
    products = (design[:, :, None] * design[:, None, :]).reshape(n, -1)
    normal = (weights @ products).reshape(draws, k, k)
    right = weights @ (design * outcome[:, None])
    values = np.linalg.eigvalsh(normal)
    fine = values[:, 0] > _SINGULAR * values[:, -1]
    thetas = np.full(draws, np.nan)
    thetas[fine] = np.linalg.solve(normal[fine], right[fine][:, :, None])[:, 0, 0] / spread[0]
    return thetas


def _knots(compute: Floats, n: int) -> Floats:
    low, high = float(compute.min()), float(compute.max())
    if low == high:
        raise ValueError("all models have the same compute")
    # Below the least compute the hinge is a line that meets chance there; not above the most.
    return np.linspace(low - (high - low), high, n, endpoint=False)


def _profile(
    y: Floats, compute: Floats, group: Floats, knots: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """Squared error and theta for each draw (row of weights) and knot; float64[draws, knots].

    The two normal equations are solved in closed form; inf where they have no single solution.
    """
    above = np.maximum(0, compute[None, :] - knots[:, None])
    hh = weights @ (above**2).T
    hn = weights @ (above * group).T
    hy = weights @ (above * y).T
    nn = (weights @ group**2)[:, None]
    ny = (weights @ (group * y))[:, None]
    yy = (weights @ y**2)[:, None]
    det = hh * nn - hn**2
    fine = det > 1e-12 * np.maximum(hh * nn, 1e-300)
    safe = np.where(fine, det, 1.0)
    slope = (hy * nn - ny * hn) / safe
    theta = (ny * hh - hy * hn) / safe
    error = np.where(fine, yy - slope * hy - theta * ny, np.inf)
    return error, theta


def _resampled(y: Floats, compute: Floats, group: Floats, draws: int, seed: int) -> Floats:
    """float64[draws]: theta when models are drawn with replacement, the knot fitted anew."""
    weights = _weights(len(y), draws, seed)
    errors, thetas = _profile(y, compute, group, _knots(compute, _BOOTSTRAP_GRID), weights)
    rows, best = np.arange(draws), np.argmin(errors, axis=1)
    return np.where(np.isfinite(errors[rows, best]), thetas[rows, best], np.nan)
