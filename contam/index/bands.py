"""Permutations and band geometry exactly as `datasketch` makes them, and sketches in its types."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED: Final = 1
"""What datasketch draws its permutations from unless told otherwise."""

_PRIME: Final = (1 << 61) - 1
_NAMES: Final = {"affine32": "affine32", "mersenne61": "legacy"}


@cache
def permutations(
    n_perm: int, scheme: str, seed: int = SEED
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Factors and shifts of the first permutations of a seed, uint64[n_perm] each, read-only.

    The first n permutations of "mersenne61" are the same however many are drawn; those of
    "affine32" are not. Raises ConfigError for an unknown scheme.
    """
    draw = np.random.RandomState(seed)
    if scheme == "affine32":
        odd = draw.randint(0, 1 << 31, n_perm, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
        factor = odd.astype(np.uint64)
        shift = draw.randint(0, 1 << 32, n_perm, dtype=np.uint32).astype(np.uint64)
    elif scheme == "mersenne61":
        pairs = [
            (draw.randint(1, _PRIME, dtype=np.uint64), draw.randint(0, _PRIME, dtype=np.uint64))
            for _ in range(n_perm)
        ]
        factor, shift = np.ascontiguousarray(np.array(pairs, np.uint64).reshape(-1, 2).T)
    else:
        raise ConfigError(f"{scheme!r} is not a scheme", hint=f"known: {', '.join(_NAMES)}")
    factor.setflags(write=False)
    shift.setflags(write=False)
    return factor, shift


_STEPS: Final = 2000


@cache
def best_bands(threshold: float, n_perm: int, misses: float = 0.5) -> tuple[int, int]:
    """(bands, rows) that err least on both sides of a similarity: datasketch's optimum.

    misses  weight of what is missed above the threshold; what is let through below it has the rest
    """
    below = _midpoints(0.0, threshold)
    above = _midpoints(threshold, 1.0)
    best, least = (1, 1), np.inf
    for bands in range(1, n_perm + 1):
        rows = np.arange(1, n_perm // bands + 1)[:, None]
        wrong = (1 - (1 - below**rows) ** bands).mean(axis=1) * threshold
        missed = ((1 - above**rows) ** bands).mean(axis=1) * (1 - threshold)
        error = wrong * (1 - misses) + missed * misses
        at = int(np.argmin(error))
        if error[at] < least:
            best, least = (bands, at + 1), float(error[at])
    return best


def _midpoints(lo: float, hi: float) -> NDArray[np.float64]:
    points: NDArray[np.float64] = lo + (hi - lo) * (np.arange(_STEPS) + 0.5) / _STEPS
    return points


def as_datasketch(
    signature: NDArray[np.uint32], scheme: str, *, lean: bool = False, seed: int = SEED
) -> Any:  # noqa: ANN401 - the type of a library that need not be installed
    """A signature as `datasketch.MinHash`, or as `datasketch.LeanMinHash`.

    It can be compared and merged with any that datasketch made of the same shingles: its
    `hashfunc` has to return the values that `contam.index.sketches.shingle_values` gives.
    Raises UsageError when datasketch is missing or too old to know both schemes.
    """
    try:
        import datasketch

        made = datasketch.MinHash(
            hashvalues=signature, seed=seed, scheme=_NAMES[scheme], hashfunc=int
        )
    except (ImportError, TypeError) as error:
        raise UsageError(
            f"sketches cannot be handed to datasketch: {error}",
            hint="install contam[minhash], which brings datasketch 2 or newer",
        ) from error
    return datasketch.LeanMinHash(made) if lean else made
