"""Hold hashes in a table of open addresses, and say which others are among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@kernel
def enter_hashes(hashes: NDArray[np.uint64], table: NDArray[np.uint64]) -> None:
    """Enter hashes, equal ones once.

    hashes  uint64[n], none of them 0
    table   uint64[2**b], more places than hashes, 0 where a place is free; written
    """
    mask = np.uint64(table.shape[0] - 1)
    for i in range(hashes.shape[0]):
        at = hashes[i] & mask
        while table[at] != _ZERO and table[at] != hashes[i]:
            at = (at + _ONE) & mask
        table[at] = hashes[i]


@kernel
def are_entered(hashes: NDArray[np.uint64], table: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which hashes were entered into the table, bool[n]; 0 never is."""
    mask = np.uint64(table.shape[0] - 1)
    found = np.empty(hashes.shape[0], np.bool_)
    for i in range(hashes.shape[0]):
        at = hashes[i] & mask
        while table[at] != _ZERO and table[at] != hashes[i]:
            at = (at + _ONE) & mask
        found[i] = table[at] != _ZERO
    return found


@kernel
def marks_of(
    hashes: NDArray[np.uint64], table: NDArray[np.uint64], marks: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """The mark of each hash that was entered, uint8[n]; 0 of any other.

    marks  uint8[2**b], one for each place of the table, 0 where a place is free
    """
    mask = np.uint64(table.shape[0] - 1)
    found = np.empty(hashes.shape[0], np.uint8)
    for i in range(hashes.shape[0]):
        at = hashes[i] & mask
        while table[at] != _ZERO and table[at] != hashes[i]:
            at = (at + _ONE) & mask
        found[i] = marks[at]
    return found
