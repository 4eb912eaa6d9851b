"""Sums over the tokens of each part, without an array as long as the tokens beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

#: Parts that are summed at once: NumPy makes a copy of their values in the type of the sums.
_AT_ONCE = 1 << 18


def part_sums(
    values: NDArray[Any], start: NDArray[np.int64], length: NDArray[Any], dtype: DTypeLike
) -> NDArray[Any]:
    """The sum of the values of each part, in the shape of `start`.

    values         one a token, parts behind each other
    start, length  where a part begins in `values`, and its tokens; ascending, without gaps
    dtype          of the sums
    A sum depends on its own part alone, to the last bit.
    """
    sums: NDArray[Any] = np.zeros(start.size, dtype)
    first, n_values = start.reshape(-1), length.reshape(-1)
    for begin in range(0, len(sums), _AT_ONCE):
        some = begin + np.flatnonzero(n_values[begin : begin + _AT_ONCE])
        if len(some):
            lo, hi = first[some[0]], first[some[-1]] + n_values[some[-1]]
            sums[some] = np.add.reduceat(values[lo:hi], first[some] - lo, dtype=dtype)
    return sums.reshape(start.shape)
