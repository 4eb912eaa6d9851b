"""UTF-8 text -> token hashes with byte offsets, for the `word` and the `char` unit.

Plain ASCII words are hashed from the folded bytes sixteen at a time; everything else (characters
outside ASCII, escapes, tags, entities, line-break hyphens) goes through `read_slowly`, which
follows docs/normaliser.md rule by rule and comes back when a word is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.bits import SEED, finish_hash, load8, mix_chunk, trailing_zeros
from contam.kernels.chars import (
    ALIKES,
    FIRST_ALIKE,
    JOIN,
    PAGES,
    CharTables,
    decode_utf8,
    is_blank,
    is_letter,
    lookup,
    read_backslash,
    read_break,
    read_entity,
    read_percent,
    read_tag,
)
from contam.kernels.fold import HYPHEN, PLAIN, fold_ascii

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The units a kernel knows.
WORDS = 0
CHARS = 1

_SEPARATOR = 0
_LETTER = 1
_SINGLE = 3
_TRANSPARENT = 4
_EXPANSION = 5
#: What `pass_mark` calls a joining tag: unlike a mark it belongs to no character.
_NOTHING = 7

_HAS_LATIN = 1
_HAS_ALIKE = 2
_HAS_FOREIGN = 4
_HAS_INCONSISTENT = 8
_LAST_IS_LETTER = 16

_WORD_BIT = np.uint64(0x2020202020202020)
_FIVE = np.uint64(5)
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
def read_marked(text: NDArray[np.uint8], p: int, stop: int, tables: CharTables) -> tuple[int, int]:
    """Rules 1 to 4 at a backslash, < & or %; any other ASCII byte is itself."""
    c = text[p]
    if c == 92:
        return read_backslash(text, p, stop, tables)
    if c == 60:
        return read_tag(text, p, stop, tables)
    if c == 38:
        return read_entity(text, p, stop, tables)
    if c == 37:
        return read_percent(text, p, stop)
    return int64(c), p + 1


@lean_kernel
def letter_flags(flags: int, cp: int, folded: int, table: NDArray[np.int32]) -> tuple[int, int]:
    """What one more letter tells of its word, and the Latin letter it looks like (or itself)."""
    flags |= _LAST_IS_LETTER
    if folded < 0x80:
        return flags | _HAS_LATIN, folded
    key = cp - FIRST_ALIKE
    if key < 0 or key >= ALIKES:
        key = folded - FIRST_ALIKE
    if key < 0 or key >= ALIKES:
        return flags | _HAS_FOREIGN, folded
    twin = int64(table[PAGES + key])
    if twin == 0:
        return flags | _HAS_FOREIGN, folded
    if twin & 0x80:
        return flags | _HAS_ALIKE, twin & 0x7F
    return flags | _HAS_ALIKE | _HAS_INCONSISTENT, twin


@lean_kernel
def reads_as_latin(flags: int) -> bool:
    """The look-alike rule: every foreign letter has a Latin twin, and the word is mixed or sure."""
    if not flags & _HAS_ALIKE or flags & _HAS_FOREIGN:
        return False
    return bool(flags & _HAS_LATIN) or not flags & _HAS_INCONSISTENT


@lean_kernel
def read_slowly(
    text: NDArray[np.uint8],
    limits: tuple[int, int, int],
    unit: int,
    hashes: NDArray[np.uint64],
    spans: NDArray[np.int32],
    count: int,
    tables: CharTables,
) -> tuple[int, int]:
    """Read from limits[1] on, rule by rule; WORDS: until a character leaves no word open.

    limits  (start of the document, first byte to read, end of the document); spans are relative
            to the start of the document
    count   tokens written so far
    return  the first byte not read, and the tokens written by now
    """
    lo, p, stop = limits
    table = tables.table
    opened = False
    flags = 0
    start = 0
    end = 0
    h, chunk, filled = SEED, _ZERO, _ZERO
    # The word with its look-alikes replaced; kept from the first of them on.
    h2, chunk2, filled2 = SEED, _ZERO, _ZERO
    while p < stop:
        c = int64(text[p])
        if c >= 0x80:
            code, after = decode_utf8(text, p)
        elif is_letter(c):
            code, after = c, p + 1
        else:
            code, after = read_marked(text, p, stop, tables)
        if opened and flags & _LAST_IS_LETTER and (c == 45 or code == 0x2010 or code == 0xAD):
            line = read_break(text, after, stop, table) if c == 45 or c >= 0x80 else -1
            if line >= 0:
                p = line
                continue
        entry = _TRANSPARENT if code == JOIN else _SEPARATOR
        if code >= 0:
            entry = lookup(code, table)
        at = 0
        left = 1
        if entry & 7 == _EXPANSION:
            at = entry >> 3
            left = int64(table[at])
        while left > 0:
            left -= 1
            if at > 0:
                at += 1
                entry = int64(table[at])
            kind = entry & 7
            if kind == _TRANSPARENT:
                # A mark belongs to the character it stands right behind; a joining tag does not.
                if code >= 0 and opened and end == p - lo:
                    end = after - lo
                elif code >= 0 and not opened and count > 0 and spans[count - 1, 1] == p - lo:
                    spans[count - 1, 1] = np.int32(after - lo)
                continue
            if opened and (kind == _SEPARATOR or kind == _SINGLE or unit == CHARS):
                if reads_as_latin(flags):
                    h, chunk, filled = h2, chunk2, filled2
                hashes[count] = finish(h, chunk, filled)
                spans[count, 0] = np.int32(start)
                spans[count, 1] = np.int32(end)
                count += 1
                opened = False
            if kind == _SEPARATOR:
                continue
            folded = entry >> 3
            if kind == _SINGLE:
                hashes[count] = hash_single(folded)
                spans[count, 0] = np.int32(p - lo)
                spans[count, 1] = np.int32(after - lo)
                count += 1
                continue
            if not opened:
                opened = True
                flags = 0
                start = p - lo
                h, chunk, filled = SEED, _ZERO, _ZERO
            end = after - lo
            if kind == _LETTER and unit == WORDS:
                known = flags & _HAS_ALIKE
                flags, latin = letter_flags(flags, code, folded, table)
                if flags & _HAS_ALIKE and not flags & _HAS_FOREIGN:
                    if not known:
                        h2, chunk2, filled2 = h, chunk, filled
                    h2, chunk2, filled2 = push(h2, chunk2, filled2, latin)
            else:
                flags &= ~_LAST_IS_LETTER
                if flags & _HAS_ALIKE:
                    h2, chunk2, filled2 = push(h2, chunk2, filled2, folded)
            h, chunk, filled = push(h, chunk, filled, folded)
        p = after
        if not opened and unit == WORDS:
            break
    if opened:
        if reads_as_latin(flags):
            h, chunk, filled = h2, chunk2, filled2
        hashes[count] = finish(h, chunk, filled)
        spans[count, 0] = np.int32(start)
        spans[count, 1] = np.int32(end)
        count += 1
    return p, count


@lean_kernel
def pass_mark(text: NDArray[np.uint8], p: int, stop: int, tables: CharTables) -> tuple[int, int]:
    """What stands at a byte that is no plain ASCII: an entry of the table, and where it ends.

    An escape or tag that separates is a SEPARATOR, a joining tag is NOTHING; U+2010 counts as a
    letter here, because it may join a word over a line break.
    """
    if text[p] >= 0x80:
        code, after = decode_utf8(text, p)
        if code == 0x2010:
            return _LETTER, after
    else:
        code, after = read_marked(text, p, stop, tables)
    if code < 0:
        return (_NOTHING if code == JOIN else _SEPARATOR), after
    return lookup(code, tables.table), after


@lean_kernel
def tokenize(
    text: NDArray[np.uint8],
    limits: tuple[int, int],
    unit: int,
    folded: NDArray[np.uint8],
    hashes: NDArray[np.uint64],
    spans: NDArray[np.int32],
    tables: CharTables,
) -> int:
    """Tokens of text[lo:hi]: hash, first byte and byte behind the last, relative to lo.

    text    uint8[n], valid UTF-8, holding one document at limits = (lo, hi)
    unit    WORDS or CHARS
    folded  uint8[>= hi - lo + PADDING], scratch
    hashes  uint64[>= 2 * (hi - lo) + 16], in the unit CHARS 5 * (hi - lo) + 16; written
    spans   int32[as many, 2], written: start and end byte
    return  number of tokens
    """
    lo, hi = limits
    if unit == CHARS:
        return read_slowly(text, (lo, lo, hi), unit, hashes, spans, 0, tables)[1]
    fold_ascii(text, lo, hi, folded)
    n = hi - lo
    count = 0
    p = 0
    while p < n:
        first = load8(folded, p)
        gap = ~first & _WORD_BIT
        if gap & np.uint64(0x20) != _ZERO:
            if folded[p] == PLAIN or folded[p] == HYPHEN:
                p += 1
                continue
            entry, after = pass_mark(text, lo + p, hi, tables)
            kind = entry & 7
            if kind == _SINGLE:
                hashes[count] = hash_single(entry >> 3)
                spans[count, 0] = np.int32(p)
                spans[count, 1] = np.int32(after - lo)
                count += 1
            elif kind == _TRANSPARENT:
                # A mark belongs to the character it stands right behind.
                if count > 0 and spans[count - 1, 1] == p:
                    spans[count - 1, 1] = np.int32(after - lo)
            elif kind != _SEPARATOR and kind != _NOTHING:
                after, count = read_slowly(
                    text, (lo, lo + p, hi), unit, hashes, spans, count, tables
                )
            p = after - lo
            continue
        second = load8(folded, p + 8)
        gap2 = ~second & _WORD_BIT
        value = mix_chunk(SEED, first & (((gap & (~gap + _ONE)) >> _FIVE) - _ONE))
        length = trailing_zeros(gap) >> 3
        if gap == _ZERO:
            more = trailing_zeros(gap2) >> 3
            if more > 0:
                value = mix_chunk(value, second & (((gap2 & (~gap2 + _ONE)) >> _FIVE) - _ONE))
            length += more
            while gap2 == _ZERO:
                second = load8(folded, p + length)
                gap2 = ~second & _WORD_BIT
                more = trailing_zeros(gap2) >> 3
                if more > 0:
                    value = mix_chunk(value, second & (((gap2 & (~gap2 + _ONE)) >> _FIVE) - _ONE))
                length += more
        end = p + length
        mark = folded[end]
        after = end + 1
        if mark != PLAIN and end < n:
            if mark == HYPHEN:
                closed = end + 1 == n or not is_blank(int64(text[lo + end + 1]))
            else:
                entry, after = pass_mark(text, lo + end, hi, tables)
                after -= lo
                closed = entry & 7 == _SEPARATOR
                if entry & 7 == _SINGLE:
                    closed, after = True, end
            if not closed:
                p, count = read_slowly(text, (lo, lo + p, hi), unit, hashes, spans, count, tables)
                p -= lo
                continue
        hashes[count] = finish_hash(value)
        spans[count, 0] = np.int32(p)
        spans[count, 1] = np.int32(end)
        count += 1
        p = after
    return count
