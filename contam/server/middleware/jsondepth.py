"""How deep does a JSON text nest? Told without parsing it, in time linear in its length."""

from __future__ import annotations

from typing import Final

import numpy as np

_NO_STRUCTURE: Final = bytes(set(range(256)) - set(b'[]{}"'))
_BLOCK: Final = 1 << 20
_QUOTE: Final = 0x22


def nests_deeper(text: bytes, depth: int) -> bool:
    """Whether arrays and objects of a JSON text in UTF-8 lie more than `depth` in one another.

    A text that is no JSON gets an answer too; its parser will refuse it.
    """
    if text.count(b"[") + text.count(b"{") <= depth:
        return False
    # Escapes stand in strings only; without them, quotes begin and end strings in turn.
    text = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NO_STRUCTURE)
    now, inside = 0, False
    for start in range(0, len(text), _BLOCK):
        block = np.frombuffer(text[start : start + _BLOCK], np.uint8)
        quotes = block == _QUOTE
        strings = np.logical_xor.accumulate(quotes) ^ inside
        inside = bool(strings[-1])
        opens = (block == ord("[")) | (block == ord("{"))
        steps = np.where(opens, np.int8(1), np.int8(-1))
        steps[strings | quotes] = 0
        depths = now + np.cumsum(steps, dtype=np.int64)
        if int(depths.max()) > depth:
            return True
        now = int(depths[-1])
    return False
