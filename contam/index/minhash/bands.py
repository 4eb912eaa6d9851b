"""Make the permutations and bands of MinHash sketches with `datasketch`."""

from __future__ import annotations

import zlib
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import ConfigError, Public, Statement

if TYPE_CHECKING:
    from datasketch import LeanMinHash, MinHash
    from numpy.typing import NDArray

SEED: Final = 1
"""The default seed of datasketch's permutations."""

_NAMES: Final = {"affine32": "affine32", "mersenne61": "legacy"}
#: crc32 of the first eight permutations: other ones would find no near copy in a stored index.
_KNOWN: Final = {"affine32": 3725234358, "mersenne61": 3720390116}


@cache
def permutations(
    n_perm: int, scheme: str, seed: int = SEED
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Factors and shifts of the first permutations of a seed, uint64[n_perm] each, read-only.

    The first n permutations of "mersenne61" are the same however many are drawn; those of
    "affine32" are not. Raises ConfigError for an unknown scheme.
    """
    if scheme not in _NAMES:
        raise ConfigError(
            "{!r} is not a scheme",
            Public(scheme),
            hint=Statement("known: {}", Public(", ".join(_NAMES))),
        )
    known = _draw(8, scheme, SEED)
    if zlib.crc32(known.tobytes()) != _KNOWN[scheme]:
        raise ConfigError(
            "this release of datasketch draws other permutations than indexes were made with",
            hint="install datasketch 2.0.0, which draws those",
        )
    factor, shift = _draw(n_perm, scheme, seed)
    return factor, shift


def _draw(n_perm: int, scheme: str, seed: int) -> NDArray[np.uint64]:
    """uint64[2, n_perm], read-only."""
    from datasketch import MinHash

    drawn = np.array(MinHash(n_perm, seed=seed, scheme=_NAMES[scheme]).permutations, np.uint64)
    drawn.setflags(write=False)
    return drawn


def as_datasketch(
    signature: NDArray[np.uint32], scheme: str, *, lean: bool = False, seed: int = SEED
) -> MinHash | LeanMinHash:
    """A signature as `datasketch.MinHash`, or as `datasketch.LeanMinHash`.

    It can be compared and merged with any that datasketch made of the same shingles: its
    `hashfunc` has to return the values that `contam.index.minhash.sketches.shingle_values` gives.
    """
    from datasketch import LeanMinHash, MinHash

    made = MinHash(hashvalues=signature, seed=seed, scheme=_NAMES[scheme], hashfunc=int)
    return LeanMinHash(made) if lean else made
