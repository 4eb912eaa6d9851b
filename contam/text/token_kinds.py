"""Collect hashes of single characters and of numbers."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.kernels.hash_set import are_entered, enter_hashes
from contam.text.text_tables import FoldKind, load_tables
from contam.text.token_hash import hash_code_points, token_hash
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


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
