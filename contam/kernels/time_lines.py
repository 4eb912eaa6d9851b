"""Recognise the time lines of subtitles, lyrics and transcripts, which are markup.

`text[lo:stop]` is a document or what is left of it; positions are bytes.  The rules are
docs/normaliser.md, rule 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.kernels._jit import lean_kernel
from contam.kernels.chars import is_blank, is_letter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
def digits_end(text: NDArray[np.uint8], p: int, stop: int) -> int:
    """Where the run of ASCII digits that starts at p ends."""
    while p < stop and is_digit(int(text[p])):
        p += 1
    return p


@lean_kernel
def space_end(text: NDArray[np.uint8], p: int, stop: int) -> int:
    """Where the run of spaces and tabs that starts at p ends."""
    while p < stop and (text[p] == 32 or text[p] == 9):
        p += 1
    return p


@lean_kernel
def time_end(text: NDArray[np.uint8], p: int, stop: int) -> tuple[int, int]:
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
def settings_end(text: NDArray[np.uint8], p: int, stop: int) -> int:
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
def line_starts(text: NDArray[np.uint8], lo: int, p: int) -> bool:
    """Whether only spaces and tabs stand between p and the start of its line."""
    while p > lo and (text[p - 1] == 32 or text[p - 1] == 9):
        p -= 1
    return p == lo or text[p - 1] == 10 or text[p - 1] == 13


@lean_kernel
def cue_end(text: NDArray[np.uint8], lo: int, p: int, stop: int) -> tuple[int, bool]:
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
def number_before(text: NDArray[np.uint8], lo: int, p: int) -> tuple[int, int]:
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
def numbered_cue_end(text: NDArray[np.uint8], lo: int, p: int, stop: int) -> int:
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
