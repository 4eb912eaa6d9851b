"""Fit score against compute with a group effect: a hinge with a free knot, and fixed segments.

After Dominguez-Olmedo, Dorner and Hardt 2025 (training on the test task).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import stdtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LEVEL: Final = 0.95
_GRID: Final = 400
_BOOTSTRAP_GRID: Final = 120
_BLOCK: Final = 500
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
    knot: float
    slope: float
    slope_error: float
    r2: float


def hinge(
    score: Floats, compute: Floats, group: Floats, chance: float, *, draws: int, seed: int
) -> Effect:
    """Score = chance + slope max(0, compute - knot) + theta group, by least squares.

    score, compute, group  float64[n]; group is 0 or 1, and both occur. The knot is the best of all,
    found on a grid and then exactly. Raises ValueError where nothing depends on compute.
    """
    y = score - chance
    knots = _knots(compute, _GRID)
    weights = np.ones((1, len(y)))
    errors = _profile(y, compute, group, knots, weights)[0][0]
    best = int(np.argmin(errors))
    # Imported here: it takes longer than all else of a study.
    from scipy.optimize import minimize_scalar

    ends = knots[max(best - 1, 0)], knots[min(best + 1, len(knots) - 1)]
    found = minimize_scalar(
        lambda knot: _profile(y, compute, group, np.array([knot]), weights)[0][0, 0],
        bounds=ends,
        method="bounded",
        options={"xatol": 1e-9},
    )
    knot = float(found.x)
    above = np.maximum(0, compute - knot)
    coefficients, covariance, rest = _least_squares(np.stack([above, group], axis=1), y)
    theta, error = float(coefficients[1]), float(np.sqrt(covariance[1, 1]))
    low, high = _resampled(y, compute, group, draws, seed)
    return Effect(
        n=len(y),
        theta=theta,
        error=error,
        p=_p(theta, error, len(y) - 2),
        low=low,
        high=high,
        knot=knot,
        slope=float(coefficients[0]),
        slope_error=float(np.sqrt(covariance[0, 0])),
        r2=1 - rest / float((y**2).sum()),
    )


def segmented(
    outcome: Floats, compute: Floats, group: Floats, knots: tuple[float, float], draws: int,
    seed: int,
) -> Effect:  # fmt: skip
    """Outcome = [1, group, three segments of compute] b, by ordinary least squares.

    The segments are min(compute, k1), clip(compute - k1, 0, k2 - k1) and max(0, compute - k2).
    Raises ValueError where there are models in too few of them, or too few models.
    """
    design = _segments(compute, group, knots)
    n, k = design.shape
    if n <= k or np.linalg.matrix_rank(design) < k:
        raise ValueError("too few models in one of the three segments of compute")
    coefficients, covariance, rest = _least_squares(design, outcome)
    theta, error = float(coefficients[1]), float(np.sqrt(covariance[1, 1]))
    low, high = _limits(_resampled_segments(design, outcome, draws, seed), draws)
    total = float(((outcome - outcome.mean()) ** 2).sum())
    return Effect(
        n=n,
        theta=theta,
        error=error,
        p=_p(theta, error, n - k),
        low=low,
        high=high,
        knot=_NAN,
        slope=_NAN,
        slope_error=_NAN,
        r2=1 - rest / total if total > 0 else _NAN,
    )


def _segments(compute: Floats, group: Floats, knots: tuple[float, float]) -> Floats:
    first, second = knots
    return np.stack(
        [
            np.ones(len(compute)),
            group,
            np.minimum(compute, first),
            np.clip(compute - first, 0, second - first),
            np.maximum(0, compute - second),
        ],
        axis=1,
    )


def _resampled_segments(design: Floats, outcome: Floats, draws: int, seed: int) -> Floats:
    """Theta of every draw of models whose design determines it."""
    n = len(design)
    # Centred and scaled, so that the normal equations keep their digits.
    spread = design.std(axis=0)
    design = np.where(
        spread > 0, (design - design.mean(axis=0)) / np.where(spread > 0, spread, 1), 1
    )
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)
    products = (design[:, :, None] * design[:, None, :]).reshape(n, -1)
    normal = (weights @ products).reshape(draws, design.shape[1], -1)
    right = weights @ (design * outcome[:, None])
    values = np.linalg.eigvalsh(normal)
    fine = values[:, 0] > _SINGULAR * values[:, -1]
    found = np.linalg.solve(normal[fine], right[fine][:, :, None])[:, 1, 0]
    return np.asarray(found / spread[1], np.float64)


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


def _resampled(
    y: Floats, compute: Floats, group: Floats, draws: int, seed: int
) -> tuple[float, float]:
    """Limits of theta when models are drawn with replacement, the knot fitted in every draw."""
    rng = np.random.default_rng(seed)
    n = len(y)
    knots = _knots(compute, _BOOTSTRAP_GRID)
    thetas = []
    for begin in range(0, draws, _BLOCK):
        size = min(_BLOCK, draws - begin)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)
        errors, theta = _profile(y, compute, group, knots, weights)
        best = np.argmin(errors, axis=1)
        rows = np.arange(size)
        known = np.isfinite(errors[rows, best])
        thetas.append(theta[rows, best][known])
    return _limits(np.concatenate(thetas), draws)


def _limits(values: Floats, draws: int) -> tuple[float, float]:
    """Percentile limits; nan where more than one draw in twenty gave none."""
    if len(values) < _LEVEL * draws:
        return _NAN, _NAN
    low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def _least_squares(design: Floats, y: Floats) -> tuple[Floats, Floats, float]:
    """Coefficients, their covariance, and the sum of squares that is left."""
    coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
    rest = float(((y - design @ coefficients) ** 2).sum())
    n, k = design.shape
    covariance = np.linalg.inv(design.T @ design) * rest / (n - k)
    return np.asarray(coefficients, np.float64), np.asarray(covariance, np.float64), rest


def _p(value: float, error: float, df: int) -> float:
    return 2 * float(stdtr(df, -abs(value) / error)) if error > 0 and df > 0 else _NAN
