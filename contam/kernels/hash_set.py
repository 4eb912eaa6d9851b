"""Hold hashes in tables of open addresses and in filters, and say which others are among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import kernel, lean_kernel

if TYPE_CHECKING:
    from contam.kernels._jit import Bools, Uint8s, Uint64s

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_BYTE = np.uint64(7)
_THREE = np.uint64(3)


@lean_kernel
def slot_of_key(keys: Uint64s, key: np.uint64) -> np.uint64:
    """Where a key is in a table, or the free place where it would be.

    keys  uint64[2**b], 0 where a place is free, and some are
    """
    mask = np.uint64(keys.shape[0] - 1)
    at = key & mask
    while keys[at] != _ZERO and keys[at] != key:
        at = (at + _ONE) & mask
    return at


@lean_kernel
def filter_shift(bits: Uint8s) -> np.uint64:
    """How far a hash is shifted to be the number of its bit in a filter, uint8[2**f]."""
    shift = 61
    size = bits.shape[0]
    while size > 1:
        size >>= 1
        shift -= 1
    return np.uint64(shift)


@lean_kernel
def note_key(bits: Uint8s, shift: np.uint64, key: np.uint64) -> None:
    """Set the bit of a hash in a filter; shift  see `filter_shift`."""
    bit = key >> shift
    bits[bit >> _THREE] |= np.uint8(_ONE << (bit & _BYTE))


@lean_kernel
def is_noted(bits: Uint8s, shift: np.uint64, key: np.uint64) -> bool:
    """Whether the bit of a hash is set in a filter."""
    bit = key >> shift
    return bool((np.uint64(bits[bit >> _THREE]) >> (bit & _BYTE)) & _ONE)


@kernel
def enter_hashes(hashes: Uint64s, table: Uint64s) -> None:
    """Enter hashes, equal ones once.

    hashes  uint64[n], none of them 0
    table   uint64[2**b], more places than hashes, 0 where a place is free; written
    """
    for i in range(hashes.shape[0]):
        table[slot_of_key(table, hashes[i])] = hashes[i]


@kernel
def are_entered(hashes: Uint64s, table: Uint64s) -> Bools:
    """Which hashes were entered into the table, bool[n]; 0 never is."""
    found = np.empty(hashes.shape[0], np.bool_)
    for i in range(hashes.shape[0]):
        found[i] = table[slot_of_key(table, hashes[i])] != _ZERO
    return found


@kernel
def marks_of(hashes: Uint64s, table: Uint64s, marks: Uint8s) -> Uint8s:
    """The mark of each hash that was entered, uint8[n]; 0 of any other.

    marks  uint8[2**b], one for each place of the table, 0 where a place is free
    """
    found = np.empty(hashes.shape[0], np.uint8)
    for i in range(hashes.shape[0]):
        found[i] = marks[slot_of_key(table, hashes[i])]
    return found
