"""Fit score against compute with a group effect: a hinge with a free knot, and fixed segments.

After Dominguez-Olmedo, Dorner and Hardt 2025 (training on the test task).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.study.lines import percentile_limits

if TYPE_CHECKING:
    from statsmodels.regression.linear_model import RegressionResults

    from contam.study.model import Floats

_GRID: Final = 400
_BOOTSTRAP_GRID: Final = 120
_SINGULAR: Final = 1e-9
_NAN: Final = float("nan")


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
    knot: float = _NAN
    slope: float = _NAN
    slope_error: float = _NAN


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
        p=p if fit.bse[0] > 0 else _NAN,
        low=low,
        high=high,
        r2=r2 if np.isfinite(r2) else _NAN,
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
    thetas = np.full(draws, _NAN)
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
    return np.where(np.isfinite(errors[rows, best]), thetas[rows, best], _NAN)
