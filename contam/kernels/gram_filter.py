"""Ask of eight grams at once whether a filter may know them.

A filter is an array of words, as many as a power of two. A gram has a word of it, and two bits
there: with both set it may have been entered, else it was not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from contam.kernels._jit import INTERPRETED, int64, lean_kernel
from contam.kernels.bits import count_ones, trailing_zeros

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Uint64s

#: Where the number of a gram's word begins in its hash, and where those of the two bits do.
WORD_SHIFT = np.uint64(12)
BITS_SHIFT = np.uint64(52)

_AT_ONCE = 8
_BLOCK = 64
#: Grams that pass are written in so many at once: how many there are is a coin toss.
_WRITTEN = 4
_SIX_BITS = np.uint64(63)
_SIX = np.uint64(6)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@lean_kernel
def bits_of(gram: np.uint64) -> np.uint64:
    """The two bits of a gram in its word; one, where both are the same."""
    high = gram >> BITS_SHIFT
    return (_ONE << (high & _SIX_BITS)) | (_ONE << (high >> _SIX))


@lean_kernel
def passes_filter(gram: np.uint64, words: Uint64s) -> bool:
    """Whether both bits of a gram are set."""
    mask = np.uint64(words.shape[0] - 1)
    bits = bits_of(gram)
    return bool(words[(gram >> WORD_SHIFT) & mask] & bits == bits)


if INTERPRETED:

    def mark_eight(grams: Uint64s, first: int, words: Uint64s) -> int:
        """Which of grams[first : first + 8], all of them there, pass a filter: one bit each."""
        return sum(1 << i for i in range(_AT_ONCE) if passes_filter(grams[first + i], words))

else:
    from llvmlite import ir

    _I64 = ir.IntType(64)
    _EIGHT = ir.VectorType(_I64, _AT_ONCE)

    def _every(value: int) -> Any:
        return ir.Constant(_EIGHT, [int(value)] * _AT_ONCE)

    @intrinsic
    def mark_eight(typingctx: Any, grams: Any, first: Any, words: Any) -> Any:
        """Which of grams[first : first + 8], all of them there, pass a filter: one bit each."""
        del typingctx, first

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def view(number: int) -> Any:
                return context.make_array(signature.args[number])(context, builder, args[number])

            place = builder.bitcast(builder.gep(view(0).data, [args[1]]), _EIGHT.as_pointer())
            asked = builder.load(place, typ=_EIGHT)
            asked.align = 8
            filter_words = view(2)
            last = builder.sub(builder.extract_value(filter_words.shape, 0), _I64(1))
            number = builder.lshr(asked, _every(int(WORD_SHIFT)))
            found = ir.Constant(_EIGHT, ir.Undefined)
            for lane in range(_AT_ONCE):
                index = ir.IntType(32)(lane)
                at = builder.and_(builder.extract_element(number, index), last)
                word = builder.load(builder.gep(filter_words.data, [at]), typ=_I64)
                found = builder.insert_element(found, word, index)
            high = builder.lshr(asked, _every(int(BITS_SHIFT)))
            one = builder.lshr(found, builder.and_(high, _every(int(_SIX_BITS))))
            other = builder.lshr(found, builder.lshr(high, _every(int(_SIX))))
            both = builder.and_(builder.and_(one, other), _every(1))
            passed = builder.icmp_unsigned("!=", both, _every(0))
            return builder.zext(builder.bitcast(passed, ir.IntType(_AT_ONCE)), _I64)

        return types.int64(grams, types.intp, words), codegen


@lean_kernel
def filter_grams(grams: Uint64s, count: int, words: Uint64s, known: int, where: Int32s) -> int:
    """Write to where[known:] which of grams[:count] pass a filter.

    where   int32[>= known + count], written
    return  the index behind the last that was written
    """
    at = known
    first = 0
    # What is written at once stays within `where`: no more grams passed than were looked at.
    while first + _BLOCK + _WRITTEN <= count:
        bits = _ZERO
        for eight in range(0, _BLOCK, _AT_ONCE):
            bits |= np.uint64(mark_eight(grams, first + eight, words)) << np.uint64(eight)
        end = at + count_ones(bits)
        while at < end:
            for _ in range(_WRITTEN):
                where[at] = first + trailing_zeros(bits)
                at += 1
                bits &= bits - _ONE
        at = end
        first += _BLOCK
    for i in range(first, count):
        where[at] = i
        at += int64(passes_filter(grams[i], words))
    return at
