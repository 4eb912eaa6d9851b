"""Hash single words and take the fast paths for most of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.between import joint_end
from contam.kernels.bits import SEED, finish_hash, mix_chunk
from contam.kernels.chars import (
    ALIKES,
    FIRST_ALIKE,
    PAGES,
    decode_utf8,
    is_blank,
    is_letter,
    lookup,
)

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Uint8s, Uint64s

#: Kinds of an entry of the character table (docs/normaliser.md).
SEPARATOR = 0
LETTER = 1
DIGIT = 2
SINGLE = 3
TRANSPARENT = 4
EXPANSION = 5

#: What is known of the word being read.
HAS_LATIN = 1
HAS_ALIKE = 2
HAS_FOREIGN = 4
HAS_INCONSISTENT = 8
LAST_IS_LETTER = 16

#: Two characters that may join the halves of a word over a line break.
HYPHEN_POINT = 0x2010
SOFT_HYPHEN = 0xAD
#: The space without width: it parts two words that would run together, and else it is nothing.
THIN_SPACE = 0x200B
#: What tokenizers write before the first piece of a word.
FIRST_PIECES = (0x120, 0x2581)

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_EIGHT = np.uint64(8)


@lean_kernel
def utf8_bytes(cp: int) -> tuple[np.uint64, np.uint64]:
    """The UTF-8 bytes of a code point, first byte lowest, and how many there are."""
    c = np.uint64(cp)
    low = np.uint64(0x80) | (c & np.uint64(0x3F))
    if cp < 0x80:
        return c, _ONE
    if cp < 0x800:
        return np.uint64(0xC0) | (c >> np.uint64(6)) | (low << _EIGHT), np.uint64(2)
    middle = np.uint64(0x80) | ((c >> np.uint64(6)) & np.uint64(0x3F))
    if cp < 0x10000:
        first = np.uint64(0xE0) | (c >> np.uint64(12))
        return first | (middle << _EIGHT) | (low << np.uint64(16)), np.uint64(3)
    first = np.uint64(0xF0) | (c >> np.uint64(18))
    second = np.uint64(0x80) | ((c >> np.uint64(12)) & np.uint64(0x3F))
    tail = (middle << np.uint64(16)) | (low << np.uint64(24))
    return first | (second << _EIGHT) | tail, np.uint64(4)


@lean_kernel
def push(
    value: np.uint64, chunk: np.uint64, filled: np.uint64, cp: int
) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Append the UTF-8 bytes of a code point to a running hash: state, open chunk, bytes in it."""
    packed, n = utf8_bytes(cp)
    chunk |= packed << (filled * _EIGHT)
    filled += n
    if filled >= _EIGHT:
        value = mix_chunk(value, chunk)
        filled -= _EIGHT
        chunk = packed >> ((n - filled) * _EIGHT) if filled > _ZERO else _ZERO
    return value, chunk, filled


@lean_kernel
def finish(value: np.uint64, chunk: np.uint64, filled: np.uint64) -> np.uint64:
    """Hash of all that was pushed."""
    if filled > _ZERO:
        value = mix_chunk(value, chunk)
    return finish_hash(value)


@lean_kernel
def hash_single(folded: int) -> np.uint64:
    """Hash of a token of one character."""
    packed, _ = utf8_bytes(folded)
    return finish_hash(mix_chunk(SEED, packed))


@lean_kernel
def letter_flags(flags: int, cp: int, folded: int, table: Int32s) -> tuple[int, int]:
    """What one more letter tells of its word, and the Latin letter it looks like (or itself)."""
    flags |= LAST_IS_LETTER
    if folded < 0x80:
        return flags | HAS_LATIN, folded
    key = cp - FIRST_ALIKE
    if key < 0 or key >= ALIKES:
        key = folded - FIRST_ALIKE
    if key < 0 or key >= ALIKES:
        return flags | HAS_FOREIGN, folded
    twin = int64(table[PAGES + key])
    if twin == 0:
        return flags | HAS_FOREIGN, folded
    if twin & 0x80:
        return flags | HAS_ALIKE, twin & 0x7F
    return flags | HAS_ALIKE | HAS_INCONSISTENT, twin


@lean_kernel
def reads_as_latin(flags: int) -> bool:
    """The look-alike rule: every foreign letter has a Latin twin, and the word is mixed or sure."""
    if not flags & HAS_ALIKE or flags & HAS_FOREIGN:
        return False
    return bool(flags & HAS_LATIN) or not flags & HAS_INCONSISTENT


@lean_kernel
def read_singles(
    text: Uint8s,
    limits: tuple[int, int, int],
    hashes: Uint64s,
    spans: Int32s,
    count: int,
    table: Int32s,
) -> tuple[int, int]:
    """Characters outside ASCII that are tokens of their own, and what only parts them.

    limits  (start of the document, first byte to read, end of the document)
    count   tokens written so far
    return  the first byte not read, and the tokens written by now
    """
    lo, p, hi = limits
    while p < hi and text[p] >= 0x80:
        code, after = decode_utf8(text, p)
        entry = lookup(code, table)
        kind = entry & 7
        if kind == SINGLE:
            hashes[count] = hash_single(entry >> 3)
            spans[count, 0] = np.int32(p - lo)
            spans[count, 1] = np.int32(after - lo)
            count += 1
        elif kind != SEPARATOR or code == HYPHEN_POINT:
            break
        p = after
    return p, count


@lean_kernel
def read_quickly(
    text: Uint8s,
    limits: tuple[int, int, int],
    hashes: Uint64s,
    spans: Int32s,
    count: int,
    table: Int32s,
) -> int:
    """One word that is written in letters, digits and marks alone, as token number `count`.

    limits  (start of the document, first byte of the word, end of the document)
    return  the byte behind the word; -1 where only `read_slowly` can say what it is: where
            markup, an escape or a line break may go on with it, or where it may read as Latin
    """
    lo, start, hi = limits
    p = start
    flags = 0
    h, chunk, filled = SEED, _ZERO, _ZERO
    while p < hi:
        c = int64(text[p])
        if c < 0x80:
            if is_letter(c):
                flags |= HAS_LATIN
                h, chunk, filled = push(h, chunk, filled, c | 32)
                p += 1
                continue
            if 48 <= c <= 57:
                h, chunk, filled = push(h, chunk, filled, c)
                p += 1
                continue
            if c == 92 or c == 60 or c == 38 or c == 37:
                return -1
            if c == 45 and p + 1 < hi and is_blank(int64(text[p + 1])):
                return -1
            if (c == 32 or c == 64) and joint_end(text, lo, p, hi) >= 0:
                return -1
            break
        code, after = decode_utf8(text, p)
        if code in (HYPHEN_POINT, SOFT_HYPHEN, THIN_SPACE) or code in FIRST_PIECES:
            return -1
        entry = lookup(code, table)
        kind = entry & 7
        if kind == SEPARATOR or kind == SINGLE:
            break
        at = 0
        left = 0 if kind == TRANSPARENT else 1
        if kind == EXPANSION:
            at = (entry >> 3) + 1
            left = int64(table[at - 1])
        while left > 0:
            left -= 1
            if at > 0:
                entry = int64(table[at])
                at += 1
                kind = entry & 7
                if kind != LETTER and kind != DIGIT:
                    return -1
            if kind == LETTER and not flags & HAS_FOREIGN:
                flags, _ = letter_flags(flags, code, entry >> 3, table)
            h, chunk, filled = push(h, chunk, filled, entry >> 3)
        p = after
    if reads_as_latin(flags):
        return -1
    hashes[count] = finish(h, chunk, filled)
    spans[count, 0] = np.int32(start - lo)
    spans[count, 1] = np.int32(p - lo)
    return p
