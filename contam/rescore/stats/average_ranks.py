"""Rank values, with the mean of their places for equal ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def average_ranks(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Ranks from 1 for the lowest value; float64[n], as `scipy.stats.rankdata` gives them.

    Importing `scipy.stats` takes a second, in every command.
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2)[place]
    return ranks
