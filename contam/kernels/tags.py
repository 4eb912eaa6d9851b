"""Recognise tags, and the time lines of subtitles, lyrics and transcripts.

`text[lo:stop]` is a document or what is left of it; positions are bytes. Readers answer as those of
contam.kernels.chars do; the rules are docs/normaliser.md, rules 2 and 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.kernels._jit import lean_kernel
from contam.kernels.chars import (
    ATTRIBUTE_SHIFT,
    JOIN,
    SKIP,
    TAG_SHIFT,
    TEXT,
    has_mark,
    is_blank,
    is_letter,
    name_value,
)

if TYPE_CHECKING:
    from contam.kernels._jit import Uint8s
    from contam.kernels.chars import CharTables


#: What a time shows beside minutes and seconds.
FRACTION = 1
HOURS = 2

_MOST_NUMBER = 6
_LONGEST_SETTING = 24


@lean_kernel
def is_digit(c: int) -> bool:
    """ASCII digit."""
    return 48 <= c <= 57


@lean_kernel
def digits_end(text: Uint8s, p: int, stop: int) -> int:
    """Where the run of ASCII digits that starts at p ends."""
    while p < stop and is_digit(int(text[p])):
        p += 1
    return p


@lean_kernel
def space_end(text: Uint8s, p: int, stop: int) -> int:
    """Where the run of spaces and tabs that starts at p ends."""
    while p < stop and (text[p] == 32 or text[p] == 9):
        p += 1
    return p


@lean_kernel
def time_end(text: Uint8s, p: int, stop: int) -> tuple[int, int]:
    """Where the time at p ends (-1: there is none), and what it shows: FRACTION, HOURS."""
    q = digits_end(text, p, stop)
    if not 1 <= q - p <= 3:
        return -1, 0
    shown = -HOURS
    while shown < HOURS and q + 2 < stop and text[q] == 58:
        if digits_end(text, q + 1, stop) != q + 3:
            return -1, 0
        q += 3
        shown += HOURS
    if shown < 0:
        return -1, 0
    if q + 1 < stop and (text[q] == 46 or text[q] == 44) and is_digit(int(text[q + 1])):
        end = digits_end(text, q + 1, stop)
        if end - q > 4:
            return -1, 0
        q = end
        shown |= FRACTION
    if q < stop and (text[q] == 58 or is_letter(int(text[q])) or is_digit(int(text[q]))):
        return -1, 0
    return q, shown


@lean_kernel
def settings_end(text: Uint8s, p: int, stop: int) -> int:
    """Where the settings of a cue (` align:start X1:40`) that may follow at p end."""
    while True:
        first = space_end(text, p, stop)
        q = first
        while q < stop and (is_letter(int(text[q])) or is_digit(int(text[q]))):
            q += 1
        # Two names hold a digit; the others are align, line, position, region, size, vertical.
        named = q - first == 2 and (int(text[first]) | 33) == 121 and is_digit(int(text[q - 1]))
        if 4 <= q - first <= 8:
            c = int(text[first])
            named = c in (97, 108, 112, 114, 115, 118)
        if first == p or not named or q + 1 >= stop or text[q] != 58 or is_blank(int(text[q + 1])):
            return p
        while q < stop and not is_blank(int(text[q])) and text[q] < 0x80:
            q += 1
        if q - first > _LONGEST_SETTING or (q < stop and text[q] >= 0x80):
            return p
        p = q


@lean_kernel
def line_starts(text: Uint8s, lo: int, p: int) -> bool:
    """Whether only spaces and tabs stand between p and the start of its line."""
    while p > lo and (text[p - 1] == 32 or text[p - 1] == 9):
        p -= 1
    return p == lo or text[p - 1] == 10 or text[p - 1] == 13


@lean_kernel
def cue_end(text: Uint8s, lo: int, p: int, stop: int) -> tuple[int, bool]:
    """Where the time line whose first time is at p ends, -1 for none; whether it has an arrow."""
    before = int(text[p - 1]) if p > lo else 32
    if not (is_blank(before) or before in (91, 62, 34, 39)):
        return -1, False
    end, shown = time_end(text, p, stop)
    if end < 0:
        return -1, False
    q = space_end(text, end, stop)
    if q + 2 < stop and text[q] == 45 and text[q + 1] == 45:
        q += 2
        if text[q] == 62:
            q += 1
        elif q + 3 < stop and text[q] == 38 and text[q + 1] == 103 and text[q + 2] == 116:
            if text[q + 3] != 59:
                return -1, False
            q += 4
        else:
            return -1, False
        last, _ = time_end(text, space_end(text, q, stop), stop)
        if last < 0:
            return -1, False
        return settings_end(text, last, stop), True
    if end < stop and text[end] == 44 and shown & FRACTION:
        last, also = time_end(text, end + 1, stop)
        return (last if also & FRACTION else -1), False
    if (
        before == 91
        and end < stop
        and text[end] == 93
        and (shown > 0 or line_starts(text, lo, p - 1))
    ):
        return end, False
    return -1, False


@lean_kernel
def number_before(text: Uint8s, lo: int, p: int) -> tuple[int, int]:
    """The number of the cue whose arrow line starts at p: its first byte, -1 for none, and end.

    Alone on the line before, or behind white space on the same line.
    """
    q = p
    while q > lo and (text[q - 1] == 32 or text[q - 1] == 9):
        q -= 1
    broken = False
    if q > lo and text[q - 1] == 10:
        broken = True
        q -= 1
    if q > lo and text[q - 1] == 13:
        broken = True
        q -= 1
    while q > lo and (text[q - 1] == 32 or text[q - 1] == 9):
        q -= 1
    first = q
    while first > lo and is_digit(int(text[first - 1])):
        first -= 1
    if q == p or not 1 <= q - first <= _MOST_NUMBER:
        return -1, q
    if first > lo and not is_blank(int(text[first - 1])):
        return -1, q
    if broken and not line_starts(text, lo, first):
        return -1, q
    return first, q


@lean_kernel
def numbered_cue_end(text: Uint8s, lo: int, p: int, stop: int) -> int:
    """Where the time line that begins at p, with its number or without, ends; -1 for none."""
    end, _ = cue_end(text, lo, p, stop)
    if end >= 0:
        return end
    q = digits_end(text, p, stop)
    if q - p > _MOST_NUMBER:
        return -1
    while q < stop and is_blank(int(text[q])):
        q += 1
    if number_before(text, lo, q)[0] != p:
        return -1
    end, arrow = cue_end(text, lo, q, stop)
    return end if arrow else -1


_REACH = 1024
#: So many words in a row without an equals sign inside a tag, or in a value, are text.
_MOST_WORDS = 3
#: Bytes of one such word.
_LONGEST_WORD = 40
#: The mark with which `>` is another character.
_STROKE = (0x338, 0x338)

#: Values of a tag's name: it separates, joins, or belongs to a cue.
_JOINS = 2
_CUE = 3
#: Values of an attribute's name: what it says is text, or is none.
_SAYS_TEXT = 1
_SAYS_NONE = 2

#: What stands at a place inside a tag.
_NOTHING = 0
_LAST = 1
_WORD = 2
_PAIR = 3
_TEXT_PAIR = 4


@lean_kernel
def tag_name_end(text: Uint8s, p: int, stop: int) -> int:
    """Where the run of ASCII letters, digits and hyphens that starts at p ends."""
    while p < stop and (is_letter(int(text[p])) or is_digit(int(text[p])) or text[p] == 45):
        p += 1
    return p


@lean_kernel
def holds_text(text: Uint8s, p: int, stop: int) -> bool:
    """Whether a value is more than MOST_WORDS words, not ASCII, or holds a long word."""
    words = 0
    first = p
    for q in range(p, stop):
        if text[q] >= 0x80:
            return True
        if is_blank(int(text[q])):
            first = q + 1
            continue
        words += q == first
        if words > _MOST_WORDS or q - first >= _LONGEST_WORD:
            return True
    return False


@lean_kernel
def next_attribute(
    text: Uint8s, p: int, stop: int, tables: CharTables
) -> tuple[int, int, int, int]:
    """What stands at p inside a tag, the bytes of its value, and where reading goes on."""
    while p < stop and is_blank(int(text[p])):
        p += 1
    if p < stop and text[p] == 62:
        return _LAST, p, p, p + 1
    if p + 1 < stop and text[p] == 47 and text[p + 1] == 62:
        return _LAST, p, p, p + 2
    end = p
    while end < stop and not is_blank(int(text[end])) and text[end] not in (60, 61, 62):
        if text[end] >= 0x80:
            return _NOTHING, p, p, p
        end += 1
    if end == stop or text[end] == 60 or end - p > _LONGEST_WORD:
        return _NOTHING, p, p, p
    q = end
    while q < stop and is_blank(int(text[q])):
        q += 1
    if q == stop or text[q] != 61:
        return _WORD, p, end, end
    q += 1
    while q < stop and is_blank(int(text[q])):
        q += 1
    if q == stop:
        return _NOTHING, p, p, p
    quote = text[q]
    first = q
    if quote == 34 or quote == 39:
        first = q + 1
        q = first
        while q < stop and text[q] != quote:
            q += 1
        last = q
        q += 1
        if q >= stop or not (is_blank(int(text[q])) or text[q] == 62 or text[q] == 47):
            return _NOTHING, p, p, p
    else:
        while q < stop and not is_blank(int(text[q])) and text[q] != 60 and text[q] != 62:
            if text[q] >= 0x80:
                return _NOTHING, p, p, p
            q += 1
        last = q
    says = (name_value(text, p, end, tables) >> ATTRIBUTE_SHIFT) & 3
    is_text = says == _SAYS_TEXT and last > first
    is_text = is_text or (says != _SAYS_NONE and holds_text(text, first, last))
    return (_TEXT_PAIR if is_text else _PAIR), first, last, q


@lean_kernel
def next_text(text: Uint8s, p: int, stop: int, tables: CharTables) -> tuple[int, int, int]:
    """The next value that is text from p on inside a tag that ends at `stop`, and what follows.

    (stop, stop, stop) where there is none.
    """
    while p < stop:
        kind, first, last, p = next_attribute(text, p, stop, tables)
        if kind == _TEXT_PAIR:
            return first, last, p
    return stop, stop, stop


@lean_kernel
def attributes_start(text: Uint8s, p: int, stop: int) -> int:
    """Where the attributes of the tag at p begin: at its first white space."""
    while p < stop and not is_blank(int(text[p])):
        p += 1
    return p


@lean_kernel
def find_cue_tag(text: Uint8s, p: int, stop: int) -> int:
    """Where a cue's tag ends whose name ends at p, -1 where it is none.

    Classes and a speaker may follow the name: `.loud Ann>`.
    """
    reach = min(stop, p + _LONGEST_WORD + 1)
    if p < reach and not (text[p] == 46 or text[p] == 62 or is_blank(int(text[p]))):
        return -1
    while p < reach and text[p] != 62:
        if text[p] == 60 or text[p] == 10:
            return -1
        p += 1
    return p + 1 if p < reach else -1


@lean_kernel
def find_stamp(text: Uint8s, p: int, stop: int) -> int:
    """Where a time that is a tag, `<00:01.500>` or `<|1.50|>`, ends; -1 for none at p."""
    q = p + 1
    if q < stop and text[q] == 124:
        first = q + 1
        q = digits_end(text, first, stop)
        if q == first or q - first > 5 or q == stop or text[q] != 46:
            return -1
        first = q + 1
        q = digits_end(text, first, stop)
        if q == first or q - first > 3 or q + 1 >= stop or text[q] != 124 or text[q + 1] != 62:
            return -1
        return q + 2
    q, _ = time_end(text, q, stop)
    return q + 1 if 0 <= q < stop and text[q] == 62 else -1


@lean_kernel
def find_tag(text: Uint8s, p: int, stop: int, tables: CharTables) -> tuple[int, int]:
    """What the tag at p is and where it ends; (SKIP, p + 1) where there is none."""
    reach = min(stop, p + _REACH)
    q = find_stamp(text, p, reach)
    if q >= 0:
        return SKIP, q
    q = p + 1
    if q < reach and text[q] == 47:
        q += 1
    end = tag_name_end(text, q, reach)
    if q < end < reach and text[end] == 58:
        q = end + 1
        end = tag_name_end(text, q, reach)
    tag = (name_value(text, q, end, tables) >> TAG_SHIFT) & 3 if end > q else 0
    if tag == 0:
        return SKIP, p + 1
    if tag == _CUE:
        q = find_cue_tag(text, end, reach)
        return SKIP, (q if q >= 0 else p + 1)
    code = JOIN if tag == _JOINS else SKIP
    pairs = 0
    words = 0
    q = end
    while q < reach:
        kind, _first, _last, q = next_attribute(text, q, reach, tables)
        if kind == _LAST and (pairs > 0 or words == 0):
            return code, q
        # The name ends at white space, at `>` or at `/>`.
        if kind == _NOTHING or kind == _LAST or not is_blank(int(text[end])):
            break
        if kind == _WORD:
            words += 1
            if words > _MOST_WORDS:
                break
            continue
        words = 0
        pairs += 1
        if kind == _TEXT_PAIR:
            code = TEXT
    return SKIP, p + 1


@lean_kernel
def read_tag(text: Uint8s, p: int, stop: int, tables: CharTables) -> tuple[int, int]:
    """Rule 2: a tag with a known name is a separator; TEXT where some of its values are text."""
    code, end = find_tag(text, p, stop, tables)
    if end > p + 1 and has_mark(text, end, stop, _STROKE, tables.table):
        return SKIP, p + 1
    return code, end
