"""Make MinHash signatures of texts, for use with `datasketch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.index.minhash.arrays import SCHEME_CODES
from contam.index.minhash.bands import permutations
from contam.kernels.minhash import hash_shingles, sign_texts
from contam.text.tokenizer import char_tables, tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


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
