"""Make a table of pairs: which documents of a segment hold which keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contam.index.pairs import words_of
from contam.kernels.pairs import (
    DOCUMENT_BITS,
    MARK,
    cap_pairs,
    drop_repeated,
    mark_ones,
    pack_pairs,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


def make_table(
    pairs: NDArray[np.uint64],
    key_bits: int,
    n_documents: int,
    cap: int,
    known: NDArray[np.uint64] | None = None,
) -> dict[str, NDArray[Any]]:
    """The arrays of a table of these pairs, which are sorted and moved on the way.

    pairs  uint64[n], see contam.kernels.pairs;  key_bits  of their keys
    cap    documents kept of a key; known  keys of which some are left out already, ascending
    """
    pairs.sort()
    pairs = pairs[: drop_repeated(pairs)]
    known = np.empty(0, np.uint64) if known is None else known
    n_pairs, n_keys, capped = cap_pairs(pairs, cap, known)
    pairs = pairs[:n_pairs]
    head_bits = min(key_bits, max(0, n_keys.bit_length() - 1))
    rest, width = key_bits - head_bits, max(1, (n_documents - 1).bit_length())
    n_heads = 1 << head_bits
    heads = _words(n_keys + n_heads)
    rests, ends, documents = _words(n_keys * rest), _words(n_pairs), _words(n_pairs * width)
    pack_pairs(pairs, (rest, width), heads, rests, ends, documents)
    last = int(pairs[-1] >> np.uint64(DOCUMENT_BITS + rest)) if n_pairs else 0
    # Behind the last key, an end for its head and each that follows.
    _set_ones(heads, n_keys + last, n_keys + n_heads)
    head_marks, end_marks = (np.empty(-(-n // MARK), np.int64) for n in (n_heads, n_keys))
    mark_ones(heads, head_marks)
    mark_ones(ends, end_marks)
    return {
        "sizes": np.array([n_pairs, n_keys, rest, width], np.int64),
        "heads": heads,
        "head_marks": head_marks,
        "rests": rests,
        "ends": ends,
        "end_marks": end_marks,
        "documents": documents,
        "capped": np.union1d(known, capped).astype(np.uint64),
    }


def _words(n_bits: int) -> NDArray[np.uint64]:
    return np.zeros(words_of(n_bits), np.uint64)


def _set_ones(words: NDArray[np.uint64], first: int, stop: int) -> None:
    raw = words.view(np.uint8)
    bits = np.unpackbits(raw[first // 8 : -(-stop // 8)], bitorder="little")
    bits[first % 8 : first % 8 + stop - first] = 1
    raw[first // 8 : -(-stop // 8)] = np.packbits(bits, bitorder="little")
