"""Collect hashes of single characters and of numbers."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.text.text_tables import FoldKind, load_tables
from contam.text.token_hash import hash_code_points, token_hash
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


_FIRST_BITS = 20
_MANY = 1 << 12
_FIRST_OUTSIDE_ASCII = 0x80
_SHORT = [chr(code).encode() for code in (*range(ord("a"), ord("z") + 1), *range(48, 58))]


class CharacterTokens(NamedTuple):
    """Sorted hashes (uint64) of tokens by what they are made of.

    short   one ASCII letter or digit
    pair    two of these, or one other letter or number
    single  one character of a script written without spaces
    """

    short: NDArray[np.uint64]
    pair: NDArray[np.uint64]
    single: NDArray[np.uint64]


def _payloads(kind: FoldKind) -> NDArray[np.int64]:
    tables = load_tables()
    entries = np.concatenate([tables.entry, tables.expansion])
    return np.unique(entries[(entries & 7) == kind] >> 3).astype(np.int64)


def _frozen(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    found = np.unique(hashes)
    found.setflags(write=False)
    return found


@cache
def character_tokens() -> CharacterTokens:
    """The hashes, from the frozen tables (a few milliseconds, once per process)."""
    pairs = [token_hash(a + b) for a in _SHORT for b in _SHORT]
    letters = np.concatenate([_payloads(FoldKind.LETTER), _payloads(FoldKind.DIGIT)])
    others = hash_code_points(letters[letters >= _FIRST_OUTSIDE_ASCII])
    return CharacterTokens(
        short=_frozen(np.array([token_hash(word) for word in _SHORT], np.uint64)),
        pair=_frozen(np.concatenate([np.array(pairs, np.uint64), others])),
        single=_frozen(hash_code_points(_payloads(FoldKind.SINGLE))),
    )


def is_among(hashes: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which hashes are in a sorted array of them."""
    if len(hashes) < _MANY:
        return _found(hashes, known)
    # Most are in no list: their first bits show it, without a search in a long array for each. A
    # short list needs few of them, and a small table stays in the cache.
    shift = np.uint64(64 - min(_FIRST_BITS, (len(known) << 4).bit_length()))
    begins = np.zeros(1 << (64 - int(shift)), np.bool_)
    begins[known >> shift] = True
    maybe = np.flatnonzero(begins[hashes >> shift])
    among = np.zeros(len(hashes), np.bool_)
    among[maybe] = _found(hashes[maybe], known)
    return among


def _found(hashes: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    if not len(known):
        return np.zeros(len(hashes), np.bool_)
    at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == hashes
    return found


#: Of other scripts every character may be a word.
_NUMBER: Final = re.compile(r"(?<![0-9A-Za-z])[0-9][0-9A-Za-z]*")


def number_hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Sorted token hashes of every word of the texts that begins with an ASCII digit."""
    written: set[str] = set()
    for text in texts:
        written.update(_NUMBER.findall(text))
    hashes = np.unique(tokenize_bytes(" ".join(sorted(written)).encode()).hashes)
    hashes.setflags(write=False)
    return hashes
