"""Tokenise UTF-8 text into hashes with byte offsets, for the units `word` and `char`.

Plain ASCII words are found 64 bytes at a time and hashed together. What may be more than a border
between words (characters outside ASCII, escapes, tags, entities, line-break hyphens) is looked at
where it stands; what `read_quickly` cannot read goes through `read_slowly`, which follows
docs/normaliser.md rule by rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.between import (
    bracket_end,
    filler_end,
    is_inside,
    log_prefix_end,
    pieces_end,
    repeated_joint_end,
)
from contam.kernels.bits import SEED, count_ones, trailing_zeros
from contam.kernels.byte_classes import BLOCK, mark_block, mark_some
from contam.kernels.chars import (
    JOIN,
    SKIP,
    TEXT,
    CharTables,
    decode_utf8,
    is_blank,
    is_letter,
    lookup,
    read_backslash,
    read_break,
    read_entity,
    read_percent,
)
from contam.kernels.tags import (
    attributes_start,
    cue_end,
    is_digit,
    next_text,
    number_before,
    numbered_cue_end,
    read_tag,
)
from contam.kernels.word_hashes import UNHASHED, hash_words
from contam.kernels.words import (
    EXPANSION,
    FIRST_PIECES,
    HAS_ALIKE,
    HAS_FOREIGN,
    HYPHEN_POINT,
    LAST_IS_LETTER,
    LETTER,
    SEPARATOR,
    SINGLE,
    SOFT_HYPHEN,
    THIN_SPACE,
    TRANSPARENT,
    finish,
    hash_single,
    letter_flags,
    push,
    read_quickly,
    read_singles,
    reads_as_latin,
)

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Uint8s, Uint64s

#: The units a kernel knows.
WORDS = 0
CHARS = 1

#: What is no kind of an entry: a joining tag, which unlike a mark belongs to no character, a tag
#: that holds text, and a time line or the prefix of a log's line.
_NOTHING = 7
_HOLDS_TEXT = 8
_TIME_LINE = 9
#: Bytes around a thin space that are looked at; a longer word is several.
_AROUND = 64
_LONGEST_WORD = 20
#: Bytes of a date before its time.
_DATE = 11

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_EVERY_BIT = np.uint64(2**64 - 1)
_LAST_BIT = np.uint64(1 << 63)
#: Ends of words that are written at once, needed or not: how many there are is a coin toss.
_AT_ONCE = 4


@lean_kernel
def read_marked(text: Uint8s, limits: tuple[int, int, int], tables: CharTables) -> tuple[int, int]:
    """Rules 1 to 4 and 8 at a backslash, < & % or bracket; any other ASCII byte is itself.

    limits  (start of the document, the byte, end of the document)
    """
    lo, p, stop = limits
    c = text[p]
    if c == 92:
        return read_backslash(text, p, stop, tables)
    if c == 60:
        return read_tag(text, p, stop, tables)
    if c == 38:
        return read_entity(text, p, stop, tables)
    if c == 37:
        return read_percent(text, p, stop, tables.table)
    if c == 40 or c == 91:
        return SKIP, bracket_end(text, lo, p, stop, tables)
    return int64(c), p + 1


@lean_kernel
def is_run_together(text: Uint8s, lo: int, p: int, stop: int) -> bool:
    """Whether what stands around the thin space at p without a border would be too long a word."""
    count = 0
    q = p
    while q > max(lo, p - _AROUND) and is_inside(int(text[q - 1])):
        q -= 1
    end = p
    while end < min(stop, p + _AROUND) and is_inside(int(text[end])):
        end += 1
    for at in range(q, end):
        count += (text[at] & 0xC0) != 0x80
        if at + 2 < end and text[at] == 0xE2 and text[at + 1] == 0x80 and text[at + 2] == 0x8B:
            count -= 1
    return count > _LONGEST_WORD


@lean_kernel
def read_slowly(
    text: Uint8s,
    limits: tuple[int, int, int],
    unit: int,
    hashes: Uint64s,
    spans: Int32s,
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
    # Where the pieces of a word end whose mark was read.
    pieces = lo
    while p < stop:
        c = int64(text[p])
        code, after = c, p + 1
        passed = -1
        if c >= 0x80:
            code, after = decode_utf8(text, p)
            if code in FIRST_PIECES:
                pieces = pieces_end(text, lo, p, stop)
        elif is_letter(c):
            if (c | 32) == 117 and not opened:
                passed = filler_end(text, lo, p, stop, tables)
        elif is_digit(c):
            passed = numbered_cue_end(text, lo, p, stop)
            if passed < 0:
                passed = log_prefix_end(text, lo, p, stop, tables)
        elif c == 32 or c == 64:
            if c == 32 and p < pieces:
                code = JOIN
            elif opened:
                joint = repeated_joint_end(text, lo, p, stop)
                if joint >= 0:
                    code, after = JOIN, joint
        else:
            code, after = read_marked(text, (lo, p, stop), tables)
            if code == TEXT:
                if not opened:
                    break
                # It ends the word, and is read next.
                code, after = SKIP, p
        if passed >= 0:
            code, after = SKIP, passed
        if (
            opened
            and flags & LAST_IS_LETTER
            and (c == 45 or code == HYPHEN_POINT or code == SOFT_HYPHEN)
        ):
            line = read_break(text, after, stop, table) if c == 45 or c >= 0x80 else -1
            if line >= 0:
                if code == SOFT_HYPHEN and end == p - lo:
                    end = after - lo
                p = line
                continue
        entry = TRANSPARENT if code == JOIN else SEPARATOR
        if code >= 0:
            entry = lookup(code, table)
        if code == THIN_SPACE and c >= 0x80 and is_run_together(text, lo, p, stop):
            entry = SEPARATOR
        at = 0
        left = 1
        if entry & 7 == EXPANSION:
            at = entry >> 3
            left = int64(table[at])
        while left > 0:
            left -= 1
            if at > 0:
                at += 1
                entry = int64(table[at])
            kind = entry & 7
            if kind == TRANSPARENT:
                # A mark belongs to the character it stands right behind; a joining tag does not.
                if code >= 0 and opened and end == p - lo:
                    end = after - lo
                elif code >= 0 and not opened and count > 0 and spans[count - 1, 1] == p - lo:
                    spans[count - 1, 1] = np.int32(after - lo)
                continue
            if opened and (kind == SEPARATOR or kind == SINGLE or unit == CHARS):
                if reads_as_latin(flags):
                    h, chunk, filled = h2, chunk2, filled2
                hashes[count] = finish(h, chunk, filled)
                spans[count, 0] = np.int32(start)
                spans[count, 1] = np.int32(end)
                count += 1
                opened = False
            if kind == SEPARATOR:
                continue
            folded = entry >> 3
            if kind == SINGLE:
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
            if kind == LETTER and unit == WORDS:
                known = flags & HAS_ALIKE
                flags, latin = letter_flags(flags, code, folded, table)
                if flags & HAS_ALIKE and not flags & HAS_FOREIGN:
                    if not known:
                        h2, chunk2, filled2 = h, chunk, filled
                    h2, chunk2, filled2 = push(h2, chunk2, filled2, latin)
            else:
                flags = flags | LAST_IS_LETTER if kind == LETTER else flags & ~LAST_IS_LETTER
                if flags & HAS_ALIKE:
                    h2, chunk2, filled2 = push(h2, chunk2, filled2, folded)
            h, chunk, filled = push(h, chunk, filled, folded)
        p = after
        if not opened and unit == WORDS and p >= pieces:
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
def pass_mark(text: Uint8s, limits: tuple[int, int, int], tables: CharTables) -> tuple[int, int]:
    """What stands at a byte that is no plain ASCII: an entry of the table, and where it ends.

    limits  (start of the document, the byte, end of the document)

    An escape or tag that separates is a SEPARATOR, a joining tag is NOTHING; U+2010, U+200B and the
    mark of a word in pieces count as letters here, because they may join a word or part two.
    """
    lo, p, stop = limits
    if text[p] >= 0x80:
        code, after = decode_utf8(text, p)
        if code == HYPHEN_POINT or code == THIN_SPACE:
            return LETTER, after
        if code in FIRST_PIECES and pieces_end(text, lo, p, stop) > p:
            return LETTER, after
    else:
        code, after = read_marked(text, limits, tables)
    if code == TEXT:
        return _HOLDS_TEXT, p
    if code < 0:
        return (_NOTHING if code == JOIN else SEPARATOR), after
    return lookup(code, tables.table), after


@lean_kernel
def put_starts(spans: Int32s, row: int, place: int, bits: np.uint64) -> int:
    """Write `place` + i to spans[row:, 0] for each bit i that is set; the row behind the last.

    Up to _AT_ONCE - 1 rows behind that are overwritten with anything.
    """
    end = row + count_ones(bits)
    while row < end:
        for _ in range(_AT_ONCE):
            spans[row, 0] = np.int32(place + trailing_zeros(bits))
            row += 1
            bits &= bits - _ONE
    return end


@lean_kernel
def put_ends(spans: Int32s, hashes: Uint64s, row: int, place: int, bits: np.uint64) -> int:
    """As `put_starts`, to spans[row:, 1]; the words that end there are UNHASHED."""
    end = row + count_ones(bits)
    while row < end:
        for _ in range(_AT_ONCE):
            spans[row, 1] = np.int32(place + trailing_zeros(bits))
            hashes[row] = UNHASHED
            row += 1
            bits &= bits - _ONE
    return end


@lean_kernel
def tokenize(
    text: Uint8s,
    limits: tuple[int, int],
    unit: int,
    hashes: Uint64s,
    spans: Int32s,
    tables: CharTables,
) -> int:
    """Tokens of text[lo:hi]: hash, first byte and byte behind the last, relative to lo.

    text    uint8[n], valid UTF-8, holding one document at limits = (lo, hi)
    unit    WORDS or CHARS
    hashes  uint64[>= 2 * (hi - lo) + 16], in the unit CHARS 5 * (hi - lo) + 16; written
    spans   int32[as many, 2], written: start and end byte
    return  number of tokens
    """
    lo, hi = limits
    count = 0
    p = lo
    # While the value of an attribute is read, where it ends, and the tag that it stands in.
    end, tag_end, following = hi, -1, lo
    while True:
        if unit == CHARS:
            p, count = read_slowly(text, (lo, p, end), unit, hashes, spans, count, tables)
        else:
            p, count = read_words(text, (lo, p, end), hashes, spans, count, tables)
        if p >= end and tag_end < 0:
            break
        if p < end and tag_end >= 0:
            # A tag within a value is text.
            p += 1
            continue
        if p < end:
            _, tag_end = read_tag(text, p, hi, tables)
            following = attributes_start(text, p, tag_end)
        p, end, following = next_text(text, following, tag_end, tables)
        if p == tag_end:
            end, tag_end = hi, -1
    if unit == WORDS:
        hash_words(text, lo, spans, count, hashes)
    return count


@lean_kernel
def read_words(
    text: Uint8s,
    limits: tuple[int, int, int],
    hashes: Uint64s,
    spans: Int32s,
    count: int,
    tables: CharTables,
) -> tuple[int, int]:
    """The words from limits[1] on, up to a tag that holds text; plain ones are left UNHASHED.

    limits  (start of the document, first byte to read, end of what is read)
    count   tokens written so far
    return  the first byte not read, and the tokens written by now
    """
    lo, base, hi = limits
    table = tables.table
    # Tokens that are begun, and ended: at most one is begun and not ended.
    begun = count
    while base < hi:
        if base + BLOCK <= text.shape[0]:
            word, hyphen, blank, colon, bracket, closed, filler, twice, other = mark_block(
                text, base
            )
            if hi - base < BLOCK:
                inside = (_ONE << np.uint64(hi - base)) - _ONE
                word, hyphen, other = word & inside, hyphen & inside, other & inside
                colon, bracket, filler = colon & inside, bracket & inside, filler & inside
                blank, twice = blank & inside, twice & inside
        else:
            word, hyphen, blank, colon, bracket, closed, filler, twice, other = mark_some(
                text, base, hi
            )
        place = base - lo
        following = base + BLOCK
        carry = np.uint64(begun - count)
        behind = (word << _ONE) | carry
        # A hyphen may join what stands before it only where white space follows it.
        other |= hyphen & behind & ((blank >> _ONE) | _LAST_BIT)
        # A colon may stand in a time only where it parts two words.
        other |= colon & behind & ((word >> _ONE) | _LAST_BIT)
        # The address of a link stands behind `](`.
        other |= bracket & (
            (closed << _ONE) | (_ONE if base > lo and text[base - 1] == 93 else _ZERO)
        )
        # A sound is a word alone in brackets: adding a bit to a run of bits sets the one behind it.
        bracket &= (blank << _ONE) | _ONE
        ends = word + ((bracket << _ONE) & word)
        if (ends & ~word & ~blank) | (bracket & _LAST_BIT) != _ZERO or ends < word:
            other |= bracket
        # `um` is a word of two letters.
        other |= filler & ~behind & ((word & ~(word >> _ONE)) >> _ONE | _LAST_BIT)
        # Pieces of a word are joined by `@@ `, or by ` ##`.
        twice &= (twice >> _ONE) | _LAST_BIT
        in_next = _LAST_BIT if following < hi and text[following] == 35 else _ZERO
        other |= behind & (twice | (blank & ((twice >> _ONE) | in_next)))
        while other != _ZERO:
            at = base + trailing_zeros(other)
            before = (other & (~other + _ONE)) - _ONE
            opened = bool(((word << _ONE) | carry) & (before + _ONE) != _ZERO)
            c = int64(text[at])
            if c == 45 and not (opened and at + 1 < hi and is_blank(int64(text[at + 1]))):
                other &= other - _ONE
                continue
            entry, after = TRANSPARENT, at + 1
            if c == 58:
                time = at
                while time > lo and is_digit(int64(text[time - 1])) and at - time < 4:
                    time -= 1
                entry, after = _TIME_LINE, -1
                if opened and time < at:
                    after, arrow = cue_end(text, lo, time, hi)
                    if after < 0 and time >= lo + _DATE:
                        time -= _DATE
                        after = log_prefix_end(text, lo, time, hi, tables)
            elif c == 32 or c == 35 or c == 64:
                after = repeated_joint_end(text, lo, at, hi) if opened else -1
            elif (c | 32) == 117:
                entry, after = SEPARATOR, filler_end(text, lo, at, hi, tables)
            elif c != 45:
                entry, after = pass_mark(text, (lo, at, hi), tables)
            if after < 0:
                other &= other - _ONE
                continue
            kind = entry & 7 if entry != _HOLDS_TEXT and entry != _TIME_LINE else entry
            passed = not opened and (kind == TRANSPARENT or kind == _NOTHING)
            if kind == SEPARATOR or passed:
                # A mark belongs to the character it stands right behind.
                if kind == TRANSPARENT and count > 0 and spans[count - 1, 1] == at - lo:
                    spans[count - 1, 1] = np.int32(after - lo)
            else:
                if kind == _TIME_LINE:
                    # What was read of the word that begins it is dropped.
                    opened = False
                    if time < base:
                        word &= ~before
                        begun, carry = count, _ZERO
                    else:
                        word &= ~before | ((_ONE << np.uint64(time - base)) - _ONE)
                behind = (word << _ONE) | carry
                begun = put_starts(spans, begun, place, word & ~behind & before)
                count = put_ends(spans, hashes, count, place, behind & ~word & before)
                carry = _ZERO
                if opened and kind == _HOLDS_TEXT:
                    spans[count, 1] = np.int32(at - lo)
                    hashes[count] = UNHASHED
                    return at, count + 1
                if kind == _HOLDS_TEXT:
                    return at, count
                if opened and kind == SINGLE:
                    spans[count, 1] = np.int32(at - lo)
                    hashes[count] = UNHASHED
                    count += 1
                if kind == _TIME_LINE:
                    begin = number_before(text, lo, time)[0] if arrow else -1
                    begin = (begin if begin >= 0 else time) - lo
                    while count > 0 and spans[count - 1, 0] >= begin:
                        count -= 1
                elif kind != SINGLE:
                    first = lo + int64(spans[count, 0]) if opened else at
                    after = read_quickly(text, (lo, first, hi), hashes, spans, count, table)
                    count += 1
                    if after < 0:
                        after, count = read_slowly(
                            text, (lo, first, hi), WORDS, hashes, spans, count - 1, tables
                        )
                elif c >= 0x80:
                    after, count = read_singles(text, (lo, at, hi), hashes, spans, count, table)
                else:
                    hashes[count] = hash_single(entry >> 3)
                    spans[count, 0] = np.int32(at - lo)
                    spans[count, 1] = np.int32(after - lo)
                    count += 1
                begun = count
                before = _ZERO
            # What stands before is left to do, or nothing; what was read is not looked at again.
            if after - base >= BLOCK:
                word &= before
                following = after
                break
            unread = _EVERY_BIT << np.uint64(after - base)
            word &= unread | before
            other &= unread
        behind = (word << _ONE) | carry
        begun = put_starts(spans, begun, place, word & ~behind)
        count = put_ends(spans, hashes, count, place, behind & ~word)
        base = following
    if begun > count:
        spans[count, 1] = np.int32(hi - lo)
        hashes[count] = UNHASHED
        count += 1
    return base, count
