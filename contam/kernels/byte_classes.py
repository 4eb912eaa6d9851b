"""Classify 64 bytes of text at once: word characters, and those that may do more.

Bit i of a mask stands for byte i. The compiler turns the comparisons into the vectors that the
machine has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from contam.kernels._jit import INTERPRETED, int64, lean_kernel
from contam.kernels.chars import is_blank, is_letter

if TYPE_CHECKING:
    from contam.kernels._jit import Uint8s

    Mask = np.uint64
    Masks = tuple[Mask, Mask, Mask, Mask, Mask, Mask, Mask, Mask, Mask]

#: Bytes that are looked at together.
BLOCK = 64
#: What may start an escape, a tag, an entity or a footnote mark.
_TRIGGERS = "\\<&%["
_ONE = np.uint64(1)
_ZERO = np.uint64(0)

if INTERPRETED:

    def mark_block(text: Uint8s, index: int) -> Masks:
        """`mark_some` of the BLOCK bytes from `index` on; the caller guarantees they exist."""
        return mark_some(text, index, index + BLOCK)

else:
    from llvmlite import ir

    _BYTES = ir.VectorType(ir.IntType(8), BLOCK)
    _tuple_of: Any = types.UniTuple  # Numba gives it no types
    _MASKS = _tuple_of(types.uint64, 9)

    def _every(value: int) -> Any:
        return ir.Constant(_BYTES, [value & 0xFF] * BLOCK)

    def _masks(builder: Any, x: Any) -> list[Any]:
        def equal(char: str) -> Any:
            return builder.icmp_unsigned("==", x, _every(ord(char)))

        def among(values: Any, first: str, n: int) -> Any:
            return builder.icmp_unsigned("<", builder.sub(values, _every(ord(first))), _every(n))

        lower = builder.or_(x, _every(0x20))
        word = builder.or_(among(lower, "a", 26), among(x, "0", 10))
        blank = builder.or_(equal(" "), among(x, "\t", 5))
        other = builder.icmp_signed("<", x, _every(0))
        for trigger in _TRIGGERS:
            other = builder.or_(other, equal(trigger))
        filler = builder.icmp_unsigned("==", lower, _every(ord("u")))
        twice = builder.or_(equal("#"), equal("@"))
        masks = (word, equal("-"), blank, equal(":"), equal("("), equal("]"), filler, twice, other)
        return [builder.bitcast(one, ir.IntType(64)) for one in masks]

    @intrinsic
    def mark_block(typingctx: Any, text: Any, index: Any) -> Any:
        """`mark_some` of the BLOCK bytes from `index` on; the caller guarantees they exist."""
        del typingctx, index

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, args[0])
            at = builder.bitcast(builder.gep(view.data, [args[1]]), _BYTES.as_pointer())
            loaded = builder.load(at, typ=_BYTES)
            loaded.align = 1
            return context.make_tuple(builder, signature.return_type, _masks(builder, loaded))

        return _MASKS(text, types.intp), codegen


@lean_kernel
def mark_some(text: Uint8s, lo: int, hi: int) -> Masks:
    """Which of text[lo:hi] are words, hyphens, blanks, colons, `(`, `]`, `u`, `#` or `@`, others.

    They are at most BLOCK. Of a word are ASCII letters and digits. Others may start an escape, a
    tag, an entity, a footnote mark or a character outside ASCII, or are inside one. What is in none
    of the masks only parts words.
    """
    word, hyphen, blank, colon = _ZERO, _ZERO, _ZERO, _ZERO
    bracket, closed, filler, twice, other = _ZERO, _ZERO, _ZERO, _ZERO, _ZERO
    for i in range(hi - lo):
        c = int64(text[lo + i])
        bit = _ONE << np.uint64(i)
        if is_letter(c) or 48 <= c <= 57:
            word |= bit
        elif c == 45:
            hyphen |= bit
        elif is_blank(c):
            blank |= bit
        elif c == 58:
            colon |= bit
        elif c == 35 or c == 64:
            twice |= bit
        elif c >= 0x80 or c == 92 or c == 60 or c == 38 or c == 37 or c == 91:
            other |= bit
        elif c == 40:
            bracket |= bit
        elif c == 93:
            closed |= bit
        if (c | 32) == 117:
            filler |= bit
    return word, hyphen, blank, colon, bracket, closed, filler, twice, other
