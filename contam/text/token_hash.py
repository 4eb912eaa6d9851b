"""Compute the frozen 64-bit token hash in plain Python, outside hot loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_SEED = 0x9E37_79B9_7F4A_7C15
_STEP = 0xD6E8_FEB8_6659_FD93
_LAST = 0xFF51_AFD7_ED55_8CCD


def token_hash(token: bytes) -> int:
    """Hash of a token's folded UTF-8 bytes: 1 .. 2**64 - 1, never 0.

    Eight bytes at a time, little endian, the last chunk padded with zero bytes. Part of the
    normaliser's version: a change makes every index and every frozen vector void.
    """
    mixed = _SEED
    for at in range(0, len(token), 8):
        chunk = int.from_bytes(token[at : at + 8], "little")
        mixed = ((mixed ^ chunk) * _STEP) & _MASK
        mixed ^= mixed >> 32
    mixed = (mixed * _LAST) & _MASK
    mixed ^= mixed >> 29
    return mixed or 1


def hash_code_points(codes: NDArray[np.int64]) -> NDArray[np.uint64]:
    """`token_hash` of many tokens of one code point each (no surrogates), uint64[n]."""
    code = codes.astype(np.uint64)
    tail = [(code >> np.uint64(6 * k)) & np.uint64(0x3F) | np.uint64(0x80) for k in range(3)]
    two = (code >> np.uint64(6)) | np.uint64(0xC0) | (tail[0] << np.uint64(8))
    three = (code >> np.uint64(12)) | np.uint64(0xE0) | (tail[1] << np.uint64(8))
    three |= tail[0] << np.uint64(16)
    four = (code >> np.uint64(18)) | np.uint64(0xF0) | (tail[2] << np.uint64(8))
    four |= (tail[1] << np.uint64(16)) | (tail[0] << np.uint64(24))
    limits = [code < np.uint64(0x80), code < np.uint64(0x800), code < np.uint64(0x10000)]
    return hash_chunks(np.select(limits, [code, two, three], four))


def hash_chunks(chunks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`token_hash` of many tokens of at most eight bytes, little endian, uint64[n]."""
    mixed = (chunks ^ np.uint64(_SEED)) * np.uint64(_STEP)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(_LAST)
    mixed ^= mixed >> np.uint64(29)
    mixed[mixed == 0] = 1
    return mixed
