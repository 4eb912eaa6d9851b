"""Give a share the limits between which it lies."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import ndtri

LEVEL: Final = 0.95


def wilson(
    successes: float, n: float, level: float = LEVEL, *, quantile: float | None = None
) -> tuple[float, float]:
    """Wilson limits of a proportion (1927). Both numbers may be fractional: a mean times n.

    quantile  what to take for the normal quantile of `level`: that of t for few clusters

    Raises ValueError unless 0 <= successes <= n and n > 0.
    """
    if not 0 <= successes <= n or n <= 0:
        raise ValueError(f"{successes} of {n} is no proportion")
    z = normal(level) if quantile is None else quantile
    p = successes / n
    middle = p + z * z / (2 * n)
    half = z * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
    scale = 1 + z * z / n
    # At 0 and 1 the limit is p itself, but for rounding.
    return min(p, max(0.0, (middle - half) / scale)), max(p, min(1.0, (middle + half) / scale))


def normal(level: float) -> float:
    """The normal quantile of a two-sided interval."""
    return float(ndtri(0.5 + level / 2))
