"""Tokenise text in the units `word` and `char` with the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from contam.kernels.chars import (
    ALIKES,
    ASIDE_SHIFT,
    ATTRIBUTE_SHIFT,
    ENTITY_SHIFT,
    LATEX_SKIP,
    LATEX_WORD,
    PAGES,
    TAG_SHIFT,
    CharTables,
)
from contam.kernels.tokens import CHARS, WORDS, tokenize
from contam.text.text_tables import NAMES, load_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXPANSION = 5


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one text.

    hashes  uint64[n], never 0
    spans   int32[n, 2], first byte of each token in the UTF-8 text and the byte behind its last
    """

    hashes: NDArray[np.uint64]
    spans: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.hashes)


def _shift_expansions(entries: NDArray[np.int32], by: int) -> NDArray[np.int32]:
    moved = entries.copy()
    moved[(entries & 7) == _EXPANSION] += by << 3
    return moved


@cache
def char_tables() -> CharTables:
    """The frozen tables packed as the kernels take them."""
    t = load_tables()
    first_entry = PAGES + ALIKES
    first_expansion = first_entry + len(t.entry)
    table = np.concatenate(
        [
            t.page.astype(np.int32) * 256 + first_entry,
            t.confusable.astype(np.int32),
            _shift_expansions(t.entry, first_expansion),
            t.expansion,
        ]
    ).astype(np.int32)
    known: dict[int, int] = {}
    # Of the first two lists every value is 1.
    latex = LATEX_SKIP >> 1, LATEX_WORD >> 1
    shifts = (*latex, TAG_SHIFT, ATTRIBUTE_SHIFT, ASIDE_SHIFT, ENTITY_SHIFT)
    for name, shift in zip(NAMES, shifts, strict=True):
        for key, value in zip(*(array.tolist() for array in t.names[name]), strict=True):
            known[key] = known.get(key, 0) | (value << shift)
    slots = 1 << (4 * len(known)).bit_length()
    name_key = np.zeros(slots, np.uint64)
    name_value = np.zeros(slots, np.int32)
    for key, value in sorted(known.items()):
        at = key & (slots - 1)
        while name_key[at]:
            at = (at + 1) & (slots - 1)
        name_key[at], name_value[at] = key, value
    for array in (table, name_key, name_value):
        array.setflags(write=False)
    return CharTables(table=table, name_key=name_key, name_value=name_value)


def tokenize_bytes(text: bytes, *, unit: int = WORDS) -> Tokens:
    """Tokens of one UTF-8 text, in the unit WORDS or CHARS of the kernels."""
    n = len(text)
    capacity = (5 if unit == CHARS else 2) * n + 16
    hashes = np.empty(capacity, np.uint64)
    spans = np.empty((capacity, 2), np.int32)
    data = np.frombuffer(text, np.uint8)
    count = tokenize(data, (0, n), unit, hashes, spans, char_tables())
    return Tokens(hashes[:count].copy(), spans[:count].copy())
