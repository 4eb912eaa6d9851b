"""Recognise what a program or a transcriber wrote between the words of a text.

`text[lo:stop]` is a document or what is left of it; positions are bytes.  The rules are
docs/normaliser.md, rules 8 to 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.kernels._jit import lean_kernel
from contam.kernels.chars import ASIDE_SHIFT, is_blank, is_letter, name_end, name_value
from contam.kernels.tags import digits_end, is_digit, line_starts, tag_name_end

if TYPE_CHECKING:
    from contam.kernels._jit import Uint8s
    from contam.kernels.chars import CharTables

#: Bytes of an address, and of a line that is looked at.
_REACH = 1024
#: Bytes to both sides in which a mark of pieces must be repeated, and an English word stand.
_NEAR = 64
#: Bytes to both sides of a footnote mark that must look like prose.
_PROSE = 24
_LONGEST_NAME = 20
#: The marks of sentences, and those of footnotes.
_SENTENCE = (33, 34, 39, 44, 45, 46, 58, 59, 63, 91, 93, 94)
#: Bytes of the pieces of one word.
_LONGEST_WORD = 32

#: Values of a name between words: a sound in brackets, the level of a log, a word of English.
_SOUND = 1
_LEVEL = 2
_ENGLISH = 3


@lean_kernel
def is_inside(c: int) -> bool:
    """ASCII letters and digits, and all bytes of other characters."""
    return c >= 0x80 or is_letter(c) or is_digit(c)


@lean_kernel
def name_kind(text: Uint8s, lo: int, hi: int, tables: CharTables) -> int:
    """What the name text[lo:hi] is between words, 0 for nothing."""
    return (name_value(text, lo, hi, tables) >> ASIDE_SHIFT) & 3


@lean_kernel
def address_end(text: Uint8s, p: int, stop: int) -> int:
    """Where the address of a Markdown link whose `(` is at p ends, -1 for none."""
    reach = min(stop, p + _REACH)
    q = p + 1
    end = name_end(text, q, reach, False)
    if end + 1 >= reach:
        return -1
    c = int(text[end])
    if end == q:
        begins = c in (35, 46, 47) and (is_letter(int(text[q + 1])) or text[q + 1] in (46, 47))
    else:
        begins = end - q > 1 and c in (47, 58)
    if not begins:
        return -1
    depth = 0
    while q < reach and not is_blank(int(text[q])):
        if text[q] == 40:
            depth += 1
        elif text[q] == 41:
            if depth == 0:
                return q + 1
            depth -= 1
        q += 1
    # A title may follow, and is text.
    return q if q + 1 < reach and text[q] == 32 and text[q + 1] in (34, 39) else -1


@lean_kernel
def is_prose(text: Uint8s, lo: int, hi: int) -> bool:
    """Whether text[lo:hi] holds only words, the marks of sentences, and footnote marks."""
    for q in range(lo, hi):
        c = int(text[q])
        if not (is_inside(c) or is_blank(c) or c in _SENTENCE):
            return False
    return True


@lean_kernel
def is_behind_letter(text: Uint8s, lo: int, p: int) -> bool:
    """Whether a letter stands before p with no white space between."""
    while p > lo and not is_blank(int(text[p - 1])):
        p -= 1
        if is_letter(int(text[p])) or text[p] >= 0x80:
            return True
    return False


@lean_kernel
def footnote_end(text: Uint8s, lo: int, p: int, stop: int) -> int:
    """Where the footnote mark, `[12]` or `[^name]`, whose `[` is at p ends; -1 for none."""
    q = p + 1
    if q < stop and text[q] == 94:
        q += 1
        end = tag_name_end(text, q, stop)
        most = _LONGEST_NAME
    else:
        end = digits_end(text, q, stop)
        most = 3 if q < stop and text[q] != 48 else 0
    if not 1 <= end - q <= most or end == stop or text[end] != 93:
        return -1
    end += 1
    if end < stop and is_inside(int(text[end])) and text[end] < 0x80:
        return -1
    prose = is_prose(text, max(lo, p - _PROSE), p) and is_prose(text, end, min(stop, end + _PROSE))
    return end if prose and is_behind_letter(text, max(lo, p - _NEAR), p) else -1


@lean_kernel
def sound_end(text: Uint8s, p: int, stop: int, tables: CharTables) -> int:
    """Where a sound in brackets, `(pause)` or `[laughter]`, that starts at p ends; -1 for none."""
    end = name_end(text, p + 1, min(stop, p + _LONGEST_NAME), False)
    closing = 41 if text[p] == 40 else 93
    if end == stop or text[end] != closing or name_kind(text, p + 1, end, tables) != _SOUND:
        return -1
    return end + 1


@lean_kernel
def bracket_end(text: Uint8s, lo: int, p: int, stop: int, tables: CharTables) -> int:
    """Where the bracket at p ends with what it holds if that is no text, else p + 1."""
    end = -1
    before = int(text[p - 1]) if p > lo else 32
    if is_blank(before):
        end = sound_end(text, p, stop, tables)
    elif text[p] == 91:
        end = footnote_end(text, lo, p, stop)
    elif before == 93:
        end = address_end(text, p, stop)
    return max(end, p + 1)


@lean_kernel
def is_near_english(text: Uint8s, lo: int, p: int, stop: int, tables: CharTables) -> bool:
    """Whether one of the commonest words of English begins within _NEAR bytes of p."""
    for q in range(max(lo, p - _NEAR), min(stop, p + _NEAR)):
        if (q == lo or is_blank(int(text[q - 1]))) and is_letter(int(text[q])):
            end = name_end(text, q, min(stop, q + 8), False)
            if end == stop or is_blank(int(text[end])):
                if name_kind(text, q, end, tables) == _ENGLISH:
                    return True
    return False


@lean_kernel
def filler_end(text: Uint8s, lo: int, p: int, stop: int, tables: CharTables) -> int:
    """Where the `um` or `uh` of an English speaker that starts at p ends; -1 for none."""
    q = p + 1
    if q == stop or not (text[q] == 104 or text[q] == 109):
        return -1
    q += 1
    if p > lo and not is_blank(int(text[p - 1])):
        return -1
    r = q + 1 if q < stop and text[q] in (33, 44, 46, 63) else q
    if r < stop and not is_blank(int(text[r])):
        return -1
    return q if is_near_english(text, lo, p, stop, tables) else -1


@lean_kernel
def mark_end(text: Uint8s, p: int, stop: int) -> int:
    """Where the mark of a word's first piece, U+0120 or U+2581, at p ends; -1 for none."""
    if p + 1 < stop and text[p] == 0xC4 and text[p + 1] == 0xA0:
        return p + 2
    if p + 2 < stop and text[p] == 0xE2 and text[p + 1] == 0x96 and text[p + 2] == 0x81:
        return p + 3
    return -1


@lean_kernel
def joint_end(text: Uint8s, lo: int, p: int, stop: int) -> int:
    """Where the word goes on whose piece ends at p with ` ##` or `@@ `; -1 where it does not."""
    if (
        p + 3 >= stop
        or p == lo
        or not is_inside(int(text[p - 1]))
        or not is_inside(int(text[p + 3]))
    ):
        return -1
    if text[p] == 32 and text[p + 1] == 35 and text[p + 2] == 35:
        return p + 3
    if text[p] == 64 and text[p + 1] == 64 and text[p + 2] == 32:
        return p + 3
    return -1


@lean_kernel
def repeated_joint_end(text: Uint8s, lo: int, p: int, stop: int) -> int:
    """`joint_end` where another such joint is within _NEAR bytes, else -1."""
    end = joint_end(text, lo, p, stop)
    if end < 0:
        return -1
    for q in range(max(lo, p - _NEAR), min(stop, p + _NEAR)):
        if q != p and text[q] == text[p] and joint_end(text, lo, q, stop) >= 0:
            return end
    return -1


@lean_kernel
def pieces_end(text: Uint8s, lo: int, p: int, stop: int) -> int:
    """Where the pieces of the word end whose mark is at p; p where spaces within it part words.

    Within three marks in a row, what stands between two is a word, and its spaces are nothing.
    """
    q = mark_end(text, p, stop)
    first = q
    if first < 0 or first == stop or not is_inside(int(text[first])):
        return p
    if mark_end(text, first, stop) >= 0:
        return p
    n_spaces = 0
    while q < stop and mark_end(text, q + 1, stop) < 0:
        c = int(text[q])
        if q - first > _LONGEST_WORD or c == 60 or (is_blank(c) and c != 32):
            return p
        if c == 32:
            if q + 1 == stop or is_blank(int(text[q + 1])):
                return p
            n_spaces += 1
        q += 1
    if n_spaces == 0 or q - first > _LONGEST_WORD or (q < stop and text[q] != 32):
        return p
    n_marks = 0
    for r in range(max(lo, p - _NEAR), min(stop, p + _NEAR)):
        n_marks += mark_end(text, r, stop) >= 0
    return q if n_marks > 2 else p


@lean_kernel
def stamp_end(text: Uint8s, p: int, stop: int) -> int:
    """Where the date and time at p, `2024-05-06T07:08:09`, end; -1 for none."""
    if p + 19 > stop:
        return -1
    for i in range(19):
        c = int(text[p + i])
        if i in (4, 7):
            fits = c == 45
        elif i == 10:
            fits = c == 84 or c == 32
        elif i in (13, 16):
            fits = c == 58
        else:
            fits = is_digit(c)
        if not fits:
            return -1
    # A fraction and a zone may follow.
    q = p + 19
    while q < stop and (is_digit(int(text[q])) or text[q] in (43, 44, 45, 46, 58, 90)):
        q += 1
    return q


@lean_kernel
def signs_end(text: Uint8s, p: int, stop: int) -> int:
    """Where the run of what parts the fields of a log's line, from p on, ends."""
    while p < stop and text[p] in (9, 32, 45, 58, 91, 93, 124):
        p += 1
    return p


@lean_kernel
def line_has_stamp(text: Uint8s, p: int, stop: int) -> bool:
    """Whether the line that starts at p begins with date and time."""
    return stamp_end(text, signs_end(text, p, stop), stop) >= 0


@lean_kernel
def is_in_log(text: Uint8s, lo: int, p: int, stop: int) -> bool:
    """Whether the line before that of p, or the one behind it, begins with date and time."""
    q = p
    while q < min(stop, p + _REACH):
        if text[q] == 10:
            if line_has_stamp(text, q + 1, stop):
                return True
            break
        q += 1
    n_lines = 0
    q = p
    while q > max(lo, p - _REACH):
        n_lines += text[q - 1] == 10
        if n_lines == 2:
            break
        q -= 1
    return n_lines > 0 and (n_lines == 2 or q == lo) and line_has_stamp(text, q, stop)


@lean_kernel
def log_prefix_end(text: Uint8s, lo: int, p: int, stop: int, tables: CharTables) -> int:
    """Where the prefix of a log's line whose date is at p ends; -1 for none."""
    end = stamp_end(text, p, stop)
    if end < 0 or not line_starts(text, lo, p - 1 if p > lo and text[p - 1] == 91 else p):
        return -1
    q = signs_end(text, end, stop)
    if q == end or not is_in_log(text, lo, p, stop):
        return -1
    name = name_end(text, q, stop, False)
    if name - q > 1 and text[q + 1] < 97 and name_kind(text, q, name, tables) == _LEVEL:
        if name == stop or not is_inside(int(text[name])):
            return name
    return q if q < stop and (is_letter(int(text[q])) or text[q] >= 0x80) else -1
