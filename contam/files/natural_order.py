"""Sort names the way people count: part-2 before part-10."""

from __future__ import annotations

import re
from typing import Final

_NUMBERS: Final = re.compile("([0-9]+)")
#: What a key has in place of the end, before a number, and for a null character. They sort in this
#: order, and before all else: a name before those that it begins, numbers before letters.
_END, _NUMBER, _NULL = "\0\0", "\0\1", "\0\2"
_MOST_DIGITS: Final = 0x10FFFF


def natural_key(text: str) -> str:
    """A sort key under which numbers within texts count as numbers; equal only for equal texts.

    One text, since comparing texts takes a third of the time of comparing tuples.
    """
    pieces = _NUMBERS.split(text.replace("\0", _NULL) if "\0" in text else text)
    for at in range(1, len(pieces), 2):
        # By length, then as text: `int` refuses more than 4300 digits, and ids come from strangers.
        number = pieces[at].lstrip("0")
        pieces[at] = f"{_NUMBER}{chr(min(len(number), _MOST_DIGITS))}{number}"
    return f"{''.join(pieces)}{_END}{text}"
