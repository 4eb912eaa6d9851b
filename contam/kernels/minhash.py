"""Compute MinHash signatures of shingles, bit for bit those of `datasketch`.

A shingle is `n` consecutive tokens; its value is the higher half of the spread hash of that gram
(`contam.kernels.gram_table.hash_grams`). To `datasketch` that value is what its `hashfunc`
returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import kernel
from contam.kernels.gram_table import GRAM_BASE, GRAM_SPREAD, power
from contam.kernels.tokens import WORDS, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.kernels.chars import CharTables

#: Permutation schemes: a * h + b modulo 2**32, and modulo the prime 2**61 - 1.
AFFINE32 = 0
MERSENNE61 = 1

#: Signature of an empty set, in every place.
NOTHING = np.uint32(0xFFFFFFFF)

_PRIME = np.uint64((1 << 61) - 1)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_61 = np.uint64(61)
_MIX_1 = np.uint64(0x85EBCA6B)
_MIX_2 = np.uint64(0xC2B2AE35)
_13 = np.uint64(13)
_16 = np.uint64(16)


@kernel
def mix32(value: np.uint32) -> np.uint32:
    """The 32-bit finalizer of MurmurHash3, a bijection."""
    h = np.uint64(value)
    h ^= h >> _16
    h = (h * _MIX_1) & _LOW
    h ^= h >> _13
    h = (h * _MIX_2) & _LOW
    return np.uint32(h ^ (h >> _16))


@kernel
def permuted61(a: np.uint64, b: np.uint64, value: np.uint64) -> np.uint32:
    """(a * value + b), modulo 2**64 as NumPy has it, then modulo 2**61 - 1; its lower half."""
    y = a * value + b
    y = (y & _PRIME) + (y >> _61)
    y = y - _PRIME if y >= _PRIME else y
    return np.uint32(y & _LOW)


@kernel
def hash_shingles(
    token: NDArray[np.uint64], lo: int, hi: int, n: int, out: NDArray[np.uint32]
) -> int:
    """Values of the shingles of token[lo:hi] to out; returns how many.

    n  tokens of a shingle; a text of fewer tokens is one shingle of all of them
    """
    if hi <= lo:
        return 0
    n = min(n, hi - lo)
    drop = power(GRAM_BASE, n)
    value = np.uint64(0)
    for i in range(lo, lo + n):
        value = value * GRAM_BASE + token[i]
    count = hi - lo - n + 1
    # The higher half is that of the product: mixing with its own higher half changes the lower.
    out[0] = np.uint32((value * GRAM_SPREAD) >> _HALF)
    for i in range(1, count):
        value = value * GRAM_BASE + token[lo + i + n - 1] - token[lo + i - 1] * drop
        out[i] = np.uint32((value * GRAM_SPREAD) >> _HALF)
    return count


@kernel
def sign(
    shingle: NDArray[np.uint32],
    count: int,
    scheme: int,
    factor: NDArray[np.uint64],
    shift: NDArray[np.uint64],
    out: NDArray[np.uint32],
) -> None:
    """Signature of the set shingle[:count].

    scheme         AFFINE32 or MERSENNE61
    factor, shift  uint64[p], one permutation each; in AFFINE32 below 2**32
    out            uint32[p], written
    """
    n_perm = out.shape[0]
    out[:] = NOTHING
    if scheme == AFFINE32:
        a = factor.astype(np.uint32)
        b = shift.astype(np.uint32)
        for i in range(count):
            h = mix32(shingle[i])
            for p in range(n_perm):
                # Numba widens a product of 32 bits to 64; only its lower half counts.
                out[p] = min(out[p], np.uint32(a[p] * h + b[p]))
    else:
        for i in range(count):
            wide = np.uint64(shingle[i])
            for p in range(n_perm):
                out[p] = min(out[p], permuted61(factor[p], shift[p], wide))


@kernel
def sign_texts(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    n: int,
    scheme: int,
    factor: NDArray[np.uint64],
    shift: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    spans: NDArray[np.int32],
    shingle: NDArray[np.uint32],
    tables: CharTables,
    out: NDArray[np.uint32],
) -> None:
    """Signature of each document text[offsets[i] : offsets[i + 1]], in words.

    hashes, spans  scratch for the longest document, as `tokenize` wants it
    shingle        uint32[as long as hashes], scratch
    out            uint32[docs, p], written
    """
    for i in range(offsets.shape[0] - 1):
        limits = (offsets[i], offsets[i + 1])
        count = 0
        if limits[1] > limits[0]:
            words = tokenize(text, limits, WORDS, hashes, spans, tables)
            count = hash_shingles(hashes, 0, words, n, shingle)
        sign(shingle, count, scheme, factor, shift, out[i])
