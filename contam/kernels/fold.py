"""One vectorised pass: ASCII letters to lower case, everything that ends a word to a marker.

Markers have bit 5 clear and word bytes have it set, so the end of a word is one AND away.  Eight
bytes are folded in a 64-bit word, which the compiler widens to the vectors the machine has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import lean_kernel
from contam.kernels.bits import load8, store8

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Marker of an ordinary separator.
PLAIN = 0
#: Marker of a byte that may start an escape, a tag or an entity: backslash < & %
TRIGGER = 1
#: Marker of the ASCII hyphen, which may join a word over a line break.
HYPHEN = 2
#: Marker of a byte outside ASCII.
WIDE = 0x80
#: Bytes a fold buffer needs behind its text, so that eight-byte accesses stay inside.
PADDING = 24

_EVERY = 0x0101010101010101
_HIGH = np.uint64(0x80 * _EVERY)
_LOW7 = np.uint64(0x7F * _EVERY)
_CASE = np.uint64(0x20 * _EVERY)
_FROM_A = np.uint64((0x80 - ord("a")) * _EVERY)
_PAST_Z = np.uint64((0x7F - ord("z")) * _EVERY)
_FROM_0 = np.uint64((0x80 - ord("0")) * _EVERY)
_PAST_9 = np.uint64((0x7F - ord("9")) * _EVERY)
_BACKSLASH = np.uint64(ord("\\") * _EVERY)
_LESS = np.uint64(ord("<") * _EVERY)
_AMPERSAND = np.uint64(ord("&") * _EVERY)
_PERCENT = np.uint64(ord("%") * _EVERY)
_DASH = np.uint64(ord("-") * _EVERY)
_ONE = np.uint64(1)
_SIX = np.uint64(6)
_SEVEN = np.uint64(7)


@lean_kernel
def fold_eight(x: np.uint64) -> np.uint64:
    """Fold eight bytes at once; each byte is treated alone."""
    wide = x & _HIGH
    narrow = x & _LOW7
    ascii_only = _HIGH & ~x
    lower = narrow | _CASE
    letter = ((lower + _FROM_A) ^ (lower + _PAST_Z)) & ascii_only
    digit = ((narrow + _FROM_0) ^ (narrow + _PAST_9)) & ascii_only
    letters = (letter - (letter >> _SEVEN)) | letter
    digits = (digit - (digit >> _SEVEN)) | digit
    other = ((narrow ^ _BACKSLASH) + _LOW7) & ((narrow ^ _LESS) + _LOW7)
    other &= ((narrow ^ _AMPERSAND) + _LOW7) & ((narrow ^ _PERCENT) + _LOW7)
    trigger = (~other & ascii_only) >> _SEVEN
    hyphen = (~((narrow ^ _DASH) + _LOW7) & ascii_only) >> _SIX
    return (lower & letters) | (narrow & digits) | wide | trigger | hyphen


@lean_kernel
def fold_ascii(text: NDArray[np.uint8], lo: int, hi: int, out: NDArray[np.uint8]) -> None:
    """Write the folded form of text[lo:hi] to out[0 : hi - lo], and PLAIN behind it.

    text   uint8[n], UTF-8
    out    uint8[>= hi - lo + PADDING], overwritten; at least 16 bytes behind the text are PLAIN
    cost   one pass without branches
    """
    whole = (hi - lo) >> 3
    for i in range(whole):
        store8(out, i << 3, fold_eight(load8(text, lo + (i << 3))))
    done = whole << 3
    if done < hi - lo:
        last = np.uint64(0)
        for j in range(hi - lo - done):
            last |= np.uint64(text[lo + done + j]) << np.uint64(8 * j)
        store8(out, done, fold_eight(last))
        done += 8
    store8(out, done, np.uint64(0))
    store8(out, done + 8, np.uint64(0))
