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
    pieces: list[str | tuple[int, str]] = []
    for at, piece in enumerate(_NUMBERS.split(text)):
        # By length, then as text: `int` refuses more than 4300 digits, and ids come from strangers.
        number = piece.lstrip("0")
        pieces.append((len(number), number) if at % 2 else piece)
    return tuple(pieces), text
