"""Sums over the tokens of each part, without an array as long as the tokens beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


def part_sums(
    values: NDArray[Any], start: NDArray[np.int64], length: NDArray[Any], dtype: DTypeLike
) -> NDArray[Any]:
    """The sum of the values of each part, in the shape of `start`.

    values         one a token, parts behind each other
    start, length  where a part begins in `values`, and its tokens; ascending, without gaps
    dtype          of the sums
    A sum depends on its own part alone, to the last bit.
    """
    sums: NDArray[Any] = np.zeros(start.shape, dtype)
    filled = length > 0
    if filled.any():
        first = start[filled]
        end = first[-1] + length[filled][-1]
        sums[filled] = np.add.reduceat(values[:end], first, dtype=dtype)
    return sums
