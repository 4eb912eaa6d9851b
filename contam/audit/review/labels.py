"""Compute precision, misses, the corrected rate and Cohen's kappa from reviewed items.

Formulas: prediction-powered inference (Angelopoulos et al. 2023) and its tuned form, PPI++; the
limit of what a judge can save (Dorner, Nastl, Hardt 2025); kappa (Cohen 1960).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtri

from contam.rescore.stats.intervals import LEVEL, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST: Final = 2
"""Labels without which no variance is known, so nothing is estimated."""


@dataclass(frozen=True, slots=True)
class Powered:
    """A mean that labels and a proxy give together.

    weight   lambda, how much the proxy is listened to: 0 is the labels alone
    saving   tau_max = 1 / (1 - rho^2), how many times fewer labels the proxy can save at the most
    error    standard error of the mean
    """

    interval: Interval
    weight: float
    saving: float
    error: float


def powered(
    gold: Floats,
    proxy: Floats,
    rest: Floats,
    *,
    weight: float | None = None,
    level: float = LEVEL,
) -> Powered:
    """Mean of gold over all items, of which only some were read.

    gold    float64[n], what the reader said
    proxy   float64[n], what the detector said of the same items
    rest    float64[N], what the detector said of items nobody read
    weight  lambda; None takes the best one, clipped to 0..1

    theta = lambda mean(rest) + mean(gold - lambda proxy), with
    Var = lambda^2 Var(rest)/N + Var(gold - lambda proxy)/n.

    Raises ValueError below `LEAST` labels or when the lengths differ.
    """
    n, n_rest = len(gold), len(rest)
    if n < LEAST or len(proxy) != n:
        raise ValueError(f"{n} labels for {len(proxy)} answers of the detector")
    if weight is None:
        weight = _best_weight(gold, proxy, rest) if n_rest else 0.0
    mean = float(np.mean(gold - weight * proxy)) + (weight * float(np.mean(rest)) if weight else 0)
    variance = float(np.var(gold - weight * proxy)) / n
    if weight:
        variance += weight * weight * float(np.var(rest)) / n_rest
    half = float(ndtri(0.5 + level / 2)) * float(np.sqrt(variance))
    name = "labels alone" if weight == 0 else "prediction-powered"
    return Powered(
        Interval(mean, max(0.0, mean - half), min(1.0, mean + half), name),
        weight,
        1.0 / (1.0 - _rho2(gold, proxy)) if _rho2(gold, proxy) < 1 else inf,
        float(np.sqrt(variance)),
    )


def labels_needed(
    variance: float, rho2: float, half_width: float, n_rest: float = inf, level: float = LEVEL
) -> float:
    """Labels for an interval of this half width: z^2 Var = w^2 with the best weight.

    Var = (variance / n) (1 - rho2 N / (N + n)); `n_rest` is N.
    """
    z2 = float(ndtri(0.5 + level / 2)) ** 2
    scale = z2 * variance / half_width**2
    if n_rest == inf:
        return scale * (1 - rho2)
    # n^2 + n (N - scale) - scale N (1 - rho2) = 0
    b = n_rest - scale
    return (-b + float(np.sqrt(b * b + 4 * scale * n_rest * (1 - rho2)))) / 2


def kappa(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Agreement of two readers beyond chance; not a number when both always say one thing.

    Raises ValueError without items or when the lengths differ.
    """
    a, b = np.asarray(first, np.bool_), np.asarray(second, np.bool_)
    if not len(a) or len(a) != len(b):
        raise ValueError(f"{len(a)} labels beside {len(b)}")
    seen = float(np.mean(a == b))
    chance = float(a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean()))
    return (seen - chance) / (1 - chance) if chance < 1 else float("nan")


def _best_weight(gold: Floats, proxy: Floats, rest: Floats) -> float:
    n, n_rest = len(gold), len(rest)
    spread = float(np.var(np.concatenate([proxy, rest]), ddof=1))
    if spread == 0:
        return 0.0
    shared = float(np.mean((gold - gold.mean()) * (proxy - proxy.mean())))
    return float(np.clip(shared / ((1 + n / n_rest) * spread), 0.0, 1.0))


def _rho2(gold: Floats, proxy: Floats) -> float:
    if np.ptp(gold) == 0 or np.ptp(proxy) == 0:
        return 0.0
    return float(np.corrcoef(gold, proxy)[0, 1] ** 2)
