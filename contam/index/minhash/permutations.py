"""Draw the permutations of MinHash with `datasketch`, and sign texts with them."""

from __future__ import annotations

import zlib
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import ConfigError, Public, Statement
from contam.kernels.minhash import AFFINE32, MERSENNE61, hash_shingles, sign_texts
from contam.text.tokenizer import char_tables, tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datasketch import LeanMinHash, MinHash
    from numpy.typing import NDArray


SEED: Final = 1
"""The default seed of datasketch's permutations."""

SCHEME_CODES: Final = {"affine32": AFFINE32, "mersenne61": MERSENNE61}

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
    `hashfunc` has to return the values that `shingle_values` gives.
    """
    from datasketch import LeanMinHash, MinHash

    made = MinHash(hashvalues=signature, seed=seed, scheme=_NAMES[scheme], hashfunc=int)
    return LeanMinHash(made) if lean else made


def shingle_values(text: str, shingle: int = 3) -> NDArray[np.uint32]:
    """The value of every shingle of a text's words, in order: what datasketch takes as hashes.

    A text of fewer words is one shingle; one without words has none.
    """
    tokens = tokenize_bytes(text.encode()).hashes
    out = np.empty(len(tokens), np.uint32)
    return out[: hash_shingles(tokens, 0, len(tokens), shingle, out)]


def sign(
    texts: Sequence[str], *, n_perm: int = 128, scheme: str = "affine32", shingle: int = 3
) -> NDArray[np.uint32]:
    """MinHash signatures of texts, uint32[texts, n_perm]; raises ConfigError.

    They are those of `datasketch` (seed 1) whose `hashfunc` returns `shingle_values`.
    """
    raw = [text.encode() for text in texts]
    offsets = np.zeros(len(raw) + 1, np.int64)
    np.cumsum([len(text) for text in raw], out=offsets[1:])
    data = np.frombuffer(b"".join(raw) or b"\0", np.uint8)
    return sign_batch(data, offsets, n_perm=n_perm, scheme=scheme, shingle=shingle)


def sign_batch(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], *, n_perm: int, scheme: str, shingle: int
) -> NDArray[np.uint32]:
    """`sign` for concatenated texts in UTF-8: data[offsets[i] : offsets[i + 1]]."""
    factor, shift = permutations(n_perm, scheme)
    longest = int(np.diff(offsets).max(initial=0))
    capacity = 2 * longest + 16
    out = np.empty((len(offsets) - 1, n_perm), np.uint32)
    sign_texts(
        data,
        offsets,
        shingle,
        SCHEME_CODES[scheme],
        factor,
        shift,
        np.empty(capacity, np.uint64),
        np.empty((capacity, 2), np.int32),
        np.empty(capacity, np.uint32),
        char_tables(),
        out,
    )
    return out
