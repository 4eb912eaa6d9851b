"""How far the rare words of a question reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contam.detect.model import Uint64s


def reach(tokens: Uint64s, rare: Uint64s) -> int:
    """The tokens of the shortest stretch in which all of these words stand, 0 where none does.

    tokens  uint64[n], hashes of the words of a text;  rare  hashes of different words
    """
    places = np.flatnonzero(np.isin(tokens, rare))
    words = tokens[places].tolist()
    # The last place of each word so far, in the order of these places.
    last: dict[int, int] = {}
    shortest = len(tokens) + 1
    for word, place in zip(words, places.tolist(), strict=True):
        last.pop(word, None)
        last[word] = place
        if len(last) == len(rare):
            shortest = min(shortest, place + 1 - next(iter(last.values())))
    return 0 if shortest > len(tokens) else shortest
