"""Decode UTF-8 and what hides characters: escapes, entities, line-break hyphens.

Every reader looks at `text[p:stop]` and answers (code, next): code >= 0 is a code point, SKIP a
separator, JOIN nothing at all, TEXT a tag that holds text.  The rules are docs/normaliser.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.bits import SEED, finish_hash, lower_bytes, mix_chunk

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Uint8s, Uint64s

SKIP = -1
JOIN = -2
TEXT = -3

#: Marks with which an ASCII letter becomes another one.
_ACCENTS = (0x300, 0x36F)

#: Layout of CharTables.table.
PAGES = 0x1100
ALIKES = 0x1C90
FIRST_ALIKE = 0x370

#: Bits of CharTables.name_value.
LATEX_SKIP = 1
LATEX_WORD = 2
TAG_SHIFT = 2
ATTRIBUTE_SHIFT = 4
ASIDE_SHIFT = 6
ENTITY_SHIFT = 8


class CharTables(NamedTuple):
    """The frozen character and name tables, packed so that the hot loop carries one array.

    table       int32[...]: PAGES page starts (code point >> 8 -> index of its 256 entries in this
                same array), ALIKES look-alike letters from U+0370 on, then entries and expansions;
                an entry is kind + 8 * payload, an expansion's payload is the index of its count
    name_key    uint64[2**b], open-addressing table of the hashes of lower-cased names, 0 for none
    name_value  int32[2**b]: bit 0 LaTeX spacing, bit 1 LaTeX word, bits 2-3 tag (1 separates,
                2 joins, 3 belongs to a cue), bits 4-5 attribute (1 says text, 2 none), bits 6-7
                what stands between words (1 a sound, 2 the level of a log, 3 a word of English),
                the rest the code point of the entity of that name
    All read-only, C order.
    """

    table: Int32s
    name_key: Uint64s
    name_value: Int32s


@lean_kernel
def is_blank(c: int) -> bool:
    """ASCII white space: tab, line feed, vertical tab, form feed, carriage return, space."""
    return c == 32 or 9 <= c <= 13


@lean_kernel
def is_letter(c: int) -> bool:
    """ASCII letter."""
    return 97 <= (c | 32) <= 122


@lean_kernel
def hex_value(c: int) -> int:
    """0..15, or -1."""
    if 48 <= c <= 57:
        return c - 48
    if 97 <= (c | 32) <= 102:
        return (c | 32) - 87
    return -1


@lean_kernel
def valid_or_skip(cp: int) -> int:
    """The code point itself, SKIP for zero, surrogates and numbers past Unicode."""
    if cp <= 0 or cp > 0x10FFFF or 0xD800 <= cp <= 0xDFFF:
        return SKIP
    return cp


@lean_kernel
def decode_utf8(text: Uint8s, p: int) -> tuple[int, int]:
    """Code point at p of valid UTF-8, and where the next one starts."""
    c = int(text[p])
    if c < 0x80:
        return c, p + 1
    if c < 0xE0:
        return ((c & 0x1F) << 6) | (int(text[p + 1]) & 0x3F), p + 2
    if c < 0xF0:
        middle = (int(text[p + 1]) & 0x3F) << 6
        return ((c & 0x0F) << 12) | middle | (int(text[p + 2]) & 0x3F), p + 3
    upper = ((int(text[p + 1]) & 0x3F) << 12) | ((int(text[p + 2]) & 0x3F) << 6)
    return ((c & 0x07) << 18) | upper | (int(text[p + 3]) & 0x3F), p + 4


@lean_kernel
def lookup(cp: int, table: Int32s) -> int:
    """Packed entry of a code point."""
    return int(table[int(table[cp >> 8]) + (cp & 0xFF)])


@lean_kernel
def has_mark(text: Uint8s, p: int, stop: int, marks: tuple[int, int], table: Int32s) -> bool:
    """Whether one of these marks (first, last) is among what is transparent from p on.

    Composed with it, an ASCII character before p is another character, and not ASCII.
    """
    while p < stop and text[p] >= 0x80:
        cp, p = decode_utf8(text, p)
        if marks[0] <= cp <= marks[1]:
            return True
        if lookup(cp, table) & 7 != 4:
            return False
    return False


@lean_kernel
def hex_number(text: Uint8s, p: int, n: int, stop: int, table: Int32s) -> int:
    """The n hex digits at p as a number, or -1 where there are fewer or the last has an accent."""
    if p + n > stop:
        return -1
    value = 0
    for i in range(p, p + n):
        digit = hex_value(int(text[i]))
        if digit < 0:
            return -1
        value = value * 16 + digit
    if is_letter(int(text[p + n - 1])) and has_mark(text, p + n, stop, _ACCENTS, table):
        return -1
    return value


@lean_kernel
def name_end(text: Uint8s, p: int, stop: int, digits: bool) -> int:
    """Where the run of ASCII letters (and digits, if asked) that starts at p ends."""
    while p < stop:
        c = int(text[p])
        if not (is_letter(c) or (digits and 48 <= c <= 57)):
            break
        p += 1
    return p


@lean_kernel
def name_hash(text: Uint8s, lo: int, hi: int) -> np.uint64:
    """Token hash of text[lo:hi] in lower case (ASCII letters and digits)."""
    state = SEED
    at = lo
    while at < hi:
        state = mix_chunk(state, lower_bytes(text, at, hi - at))
        at += 8
    return finish_hash(state)


@lean_kernel
def name_value(text: Uint8s, lo: int, hi: int, tables: CharTables) -> int:
    """What the name text[lo:hi] is known as (bits of CharTables.name_value), 0 for unknown."""
    name = name_hash(text, lo, hi)
    keys = tables.name_key
    mask = np.uint64(keys.shape[0] - 1)
    slot = name & mask
    while keys[slot] != np.uint64(0):
        if keys[slot] == name:
            return int64(tables.name_value[slot])
        slot = (slot + np.uint64(1)) & mask
    return 0


@lean_kernel
def read_backslash(text: Uint8s, p: int, stop: int, tables: CharTables) -> tuple[int, int]:
    r"""Rule 1: \uXXXX, \UXXXXXXXX, \xXX, LaTeX spacing, \n \t \r as letters, else a separator."""
    q = p
    while q < stop and text[q] == 92:
        q += 1
    if q == stop:
        return SKIP, q
    c = int(text[q])
    if c == 117:
        unit = hex_number(text, q + 1, 4, stop, tables.table)
        if unit >= 0:
            if 0xD800 <= unit <= 0xDBFF:
                r = q + 5
                while r < stop and text[r] == 92:
                    r += 1
                if q + 5 < r < stop and text[r] == 117:
                    low = hex_number(text, r + 1, 4, stop, tables.table)
                    if 0xDC00 <= low <= 0xDFFF:
                        return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00), r + 5
            return valid_or_skip(unit), q + 5
    if c == 85:
        wide = hex_number(text, q + 1, 8, stop, tables.table)
        if wide >= 0:
            return valid_or_skip(wide), q + 9
    if c == 120:
        byte = hex_number(text, q + 1, 2, stop, tables.table)
        if byte >= 0:
            return valid_or_skip(byte), q + 3
    end = name_end(text, q, stop, False)
    if end > q and has_mark(text, end, stop, _ACCENTS, tables.table):
        end -= 1
    if end > q:
        known = name_value(text, q, end, tables)
        if known & LATEX_SKIP:
            return SKIP, end
        if (c | 32) in (110, 114, 116) and not known & LATEX_WORD:
            return SKIP, q + 1
    return SKIP, q


@lean_kernel
def read_entity(text: Uint8s, p: int, stop: int, tables: CharTables) -> tuple[int, int]:
    """Rule 3: &name; &#1234; &#x12AB; also behind any number of amp;."""
    j = p + 1
    while j + 4 <= stop and (int(text[j]) | 32) == 97 and (int(text[j + 1]) | 32) == 109:
        if (int(text[j + 2]) | 32) != 112 or text[j + 3] != 59:
            break
        j += 4
    if j < stop and text[j] == 35:
        q = j + 1
        cp = 0
        base = 10
        most = 7
        if q < stop and (int(text[q]) | 32) == 120:
            q += 1
            base = 16
            most = 6
        first = q
        while q < stop and q - first < most:
            digit = hex_value(int(text[q]))
            if digit < 0 or digit >= base:
                break
            cp = cp * base + digit
            q += 1
        if q > first and q < stop and text[q] == 59:
            return valid_or_skip(cp), q + 1
        return SKIP, j
    end = name_end(text, j, min(stop, j + 9), True)
    if 2 <= end - j <= 8 and end < stop and text[end] == 59 and is_letter(int(text[j])):
        cp = name_value(text, j, end, tables) >> ENTITY_SHIFT
        if cp > 0:
            return cp, end + 1
    return SKIP, j


@lean_kernel
def read_percent(text: Uint8s, p: int, stop: int, table: Int32s) -> tuple[int, int]:
    """Rule 4: %41, or a whole UTF-8 sequence such as %E5%B7%B2; else the sign is a separator."""
    first = hex_number(text, p + 1, 2, stop, table)
    if first < 0:
        return SKIP, p + 1
    if first < 0x80:
        return (first if first > 0 else SKIP), p + 3
    if first < 0xC2 or first > 0xF4:
        return SKIP, p + 1
    more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
    cp = first & (0x3F >> more)
    q = p + 3
    for _ in range(more):
        if q >= stop or text[q] != 37:
            return SKIP, p + 1
        byte = hex_number(text, q + 1, 2, stop, table)
        if byte < 0x80 or byte > 0xBF:
            return SKIP, p + 1
        cp = (cp << 6) | (byte & 0x3F)
        q += 3
    least = 0x80 if more == 1 else 0x800 if more == 2 else 0x10000
    if cp < least or valid_or_skip(cp) == SKIP:
        return SKIP, p + 1
    return cp, q


@lean_kernel
def read_break(text: Uint8s, p: int, stop: int, table: Int32s) -> int:
    """Rule 5: where the next line's letter starts behind a hyphen that ended at p, or -1."""
    q = p
    while q < stop and (text[q] == 32 or text[q] == 9):
        q += 1
    if q < stop and text[q] == 13:
        q += 1
        if q < stop and text[q] == 10:
            q += 1
    elif q < stop and text[q] == 10:
        q += 1
    else:
        return -1
    while q < stop and (text[q] == 32 or text[q] == 9):
        q += 1
    if q == stop:
        return -1
    cp, _ = decode_utf8(text, q)
    entry = lookup(cp, table)
    if entry & 7 == 5:
        entry = int(table[(entry >> 3) + 1])
    return q if entry & 7 == 1 else -1
