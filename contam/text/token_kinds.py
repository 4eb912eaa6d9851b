"""Compute the frozen 64-bit token hash outside hot loops, of single characters and numbers too."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.kernels.hash_set import are_entered, enter_hashes
from contam.text.text_tables import FoldKind, load_tables
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    packed = np.select(limits, [code, two, three], four)
    mixed = (packed ^ np.uint64(_SEED)) * np.uint64(_STEP)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(_LAST)
    mixed ^= mixed >> np.uint64(29)
    mixed[mixed == 0] = 1
    return mixed


_FIRST_OUTSIDE_ASCII = 0x80
_SHORT = [chr(code).encode() for code in (*range(ord("a"), ord("z") + 1), *range(48, 58))]


class CharacterTokens(NamedTuple):
    """Tables of the hashes of tokens (see `token_table`), by what they are made of.

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


@cache
def character_tokens() -> CharacterTokens:
    """The hashes, from the frozen tables (a few milliseconds, once per process)."""
    pairs = [token_hash(a + b) for a in _SHORT for b in _SHORT]
    letters = np.concatenate([_payloads(FoldKind.LETTER), _payloads(FoldKind.DIGIT)])
    others = hash_code_points(letters[letters >= _FIRST_OUTSIDE_ASCII])
    return CharacterTokens(
        short=token_table(np.array([token_hash(word) for word in _SHORT], np.uint64)),
        pair=token_table(np.concatenate([np.array(pairs, np.uint64), others])),
        single=token_table(hash_code_points(_payloads(FoldKind.SINGLE))),
    )


def marked_table(
    *kinds: NDArray[np.uint64],
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """A table of the hashes of several kinds, and for each of its places a mark for `marks_of`.

    kinds  tables of hashes;  a mark has the bit 2**i for each kind i that the hash is of
    """
    table = token_table(np.unique(np.concatenate([kind[kind > 0] for kind in kinds])))
    marks = np.zeros(len(table), np.uint8)
    for number, kind in enumerate(kinds):
        marks |= are_entered(table, kind).astype(np.uint8) << np.uint8(number)
    return table, marks


def token_table(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A table in which `are_entered` of `contam.kernels.hash_set` finds these hashes."""
    # At most an eighth of it is taken: most look-ups end at the first place.
    table = np.zeros(1 << (8 * len(hashes)).bit_length(), np.uint64)
    enter_hashes(hashes, table)
    table.setflags(write=False)
    return table


#: Texts that are searched for numbers together.
_AT_ONCE: Final = 1 << 12
#: Of other scripts every character may be a word.
# The look behind comes second: an expression that begins with digits is searched for far sooner.
_NUMBER: Final = re.compile(r"[0-9](?<![0-9A-Za-z].)[0-9A-Za-z]*")


def number_hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Token hashes of every word of the texts that begins with an ASCII digit."""
    written: set[str] = set()
    left = iter(texts)
    # No word goes over a line: one search in many texts is faster than many searches.
    while some := list(islice(left, _AT_ONCE)):
        written.update(_NUMBER.findall("\n".join(some)))
    return tokenize_bytes(" ".join(sorted(written)).encode()).hashes
