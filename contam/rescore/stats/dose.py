"""Test whether a model scores higher the more of an item stands in the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from contam.rescore.stats.clusters import spread_of

if TYPE_CHECKING:
    from contam.rescore import Floats, Ints

LEAST_OTHERS: Final = 4
"""Other models without which nobody knows how far honest slopes differ."""


class Slope(NamedTuple):
    """How much more a model's score rises with exposure than that of the others.

    value, low, high  score per unit of exposure, limits of 95 %;  p  one-sided, of no more
    """

    value: float
    low: float
    high: float
    p: float


def slopes(scores: Floats, exposure: Floats, cluster: Ints) -> list[Slope] | None:
    """Of each model beside all others; None with fewer than four of these, or equal exposures.

    scores  float64[models, items], of which more is better;  exposure  float64[items];  cluster
    int64[items]

    Items have intercepts of their own, which cancel: where all models have the same items it is
    the difference of slopes. Its error is that of one more model among the others, whose slopes
    differ by chance and by what items ask of them, and at least the model's own by whole clusters.
    """
    m = len(scores)
    if m <= LEAST_OTHERS or not len(exposure):
        return None
    ahead = exposure - exposure.mean()
    square = float(ahead @ ahead)
    if not square > 0:
        return None
    raw = scores @ ahead / square
    found = []
    for at in range(m):
        others = np.delete(raw, at)
        value = float(raw[at] - others.mean())
        apart = scores[at] - np.delete(scores, at, axis=0).mean(axis=0)
        rest = apart - apart.mean() - value * ahead
        own = spread_of(len(ahead) * ahead * rest / square, cluster).error
        error = max(float(np.std(others, ddof=1)) * float(np.sqrt(m / (m - 1))), own)
        half = error * float(stdtrit(m - 2, 0.975))
        found.append(Slope(value, value - half, value + half, float(stdtr(m - 2, -value / error))))
    return found
