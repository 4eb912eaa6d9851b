"""Sort names the way people count: part-2 before part-10."""

from __future__ import annotations

import re
from typing import Final

_NUMBERS: Final = re.compile("([0-9]+)")

NaturalKey = tuple[tuple[str | tuple[int, str], ...], str]


def natural_key(text: str) -> NaturalKey:
    """A sort key under which numbers within texts count as numbers; equal only for equal texts.

    Text and number take turns, so that keys meet text with text and number with number.
    """
    pieces: list[str | tuple[int, str]] = [*_NUMBERS.split(text)]
    for at in range(1, len(pieces), 2):
        # By length, then as text: `int` refuses more than 4300 digits, and ids come from strangers.
        number = str(pieces[at]).lstrip("0")
        pieces[at] = len(number), number
    return tuple(pieces), text
