"""Tell which words of a text may be several that are run together, or bits of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from contam.kernels._jit import INTERPRETED, int64, lean_kernel
from contam.kernels.bits import LOWER, count_ones, load8, next_bytes, trailing_zeros
from contam.kernels.chars import is_blank, is_letter
from contam.kernels.gram_filter import passes_filter
from contam.kernels.gram_table import GRAM_BASE, GRAM_SPREAD

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Uint8s, Uint64s
    from contam.kernels.run_together import Document

#: Words that are looked at together.
BLOCK = 16
#: Letters above which a word is long.
LONG = 10
#: Letters of its head, by which most long words are told from several.
HEAD = 11
#: So many single letters are in this block and the one before where one is looked at.
_SEVERAL = 2
#: A word of so many letters is several, whatever its capitals.
SURE = 25

_MASK = np.uint64(0xFFFF)
_SIXTEEN = np.uint64(16)
_TOP_BITS = np.uint64(0x8080808080808080)
#: Makes the first of eight bytes a small letter if it is one; lifts small letters over the top bit.
_CAPITAL = np.uint64(0x20)
_SMALL = np.uint64(0x1F1F1F1F1F1F1F1F)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)

if INTERPRETED:

    def kinds_of(spans: Int32s, first: int) -> np.uint64:
        """Which of 16 words are long, and which of one byte between two others: 16 bits each.

        The caller guarantees that there are words before and behind.
        """
        kinds = 0
        for k in range(BLOCK):
            at = first + k
            length = int(spans[at, 1] - spans[at, 0])
            before, behind = spans[at, 0] - spans[at - 1, 1], spans[at + 1, 0] - spans[at, 1]
            kinds |= int(length > LONG) << k
            kinds |= int(before == 1 and behind == 1 and length == 1) << (BLOCK + k)
        return np.uint64(kinds)

else:
    from llvmlite import ir

    _I64 = ir.IntType(64)
    _I32 = ir.IntType(32)
    _LANES = ir.VectorType(_I32, BLOCK)
    _PAIRS = ir.VectorType(_I32, 2 * BLOCK)

    def _every(value: int) -> Any:
        return ir.Constant(_LANES, [value] * BLOCK)

    @intrinsic
    def kinds_of(typingctx: Any, spans: Any, first: Any) -> Any:
        """Which of 16 words are long, and which of one byte between two others: 16 bits each.

        The caller guarantees that there are words before and behind.
        """
        del typingctx, first

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            place = builder.mul(args[1], _I64(2))

            def side(shift: int, lane: int) -> Any:
                """Every second number from `shift` numbers behind the first word's on."""
                begin = builder.gep(data, [builder.add(place, _I64(shift))])
                pairs = builder.load(builder.bitcast(begin, _PAIRS.as_pointer()), typ=_PAIRS)
                pairs.align = 4
                chosen = ir.Constant(_LANES, [2 * at + lane for at in range(BLOCK)])
                return builder.shuffle_vector(pairs, pairs, chosen)

            def bits(found: Any) -> Any:
                return builder.zext(builder.bitcast(found, ir.IntType(BLOCK)), _I64)

            start, end = side(0, 0), side(0, 1)
            length = builder.sub(end, start)
            parted = builder.or_(builder.sub(start, side(-1, 0)), builder.sub(side(1, 1), end))
            alone = builder.icmp_signed("==", builder.or_(parted, length), _every(1))
            long = builder.icmp_signed(">", length, _every(LONG))
            return builder.or_(bits(long), builder.shl(bits(alone), _I64(BLOCK)))

        return types.uint64(spans, types.intp), codegen


@lean_kernel
def is_bit(text: Uint8s, at: int) -> bool:
    """Whether text[at] is a letter between two blanks that is no word in some language."""
    c = int64(text[at]) | 32
    if not (is_letter(c) and is_blank(int64(text[at - 1])) and is_blank(int64(text[at + 1]))):
        return False
    return c != 97 and c != 101 and c != 105 and c != 111 and c != 121


@lean_kernel
def is_border(text: Uint8s, at: int, limits: tuple[int, int]) -> bool:
    """Whether a blank or a sign of punctuation stands there, or the document's edge."""
    if at < limits[0] or at >= limits[1]:
        return True
    c = int64(text[at])
    return is_blank(c) or c == 33 or c == 44 or c == 46 or c == 58 or c == 59 or c == 63


@lean_kernel
def count_letters(text: Uint8s, begin: int, end: int) -> int:
    """Characters of text[begin:end]."""
    count = end - begin
    for at in range(begin, end, 8):
        chunk = next_bytes(text, at, end - at)
        count -= count_ones(chunk & ~(chunk << _ONE) & _TOP_BITS)
    return count


@lean_kernel
def hash_head(first: np.uint64, second: np.uint64) -> np.uint64:
    """Spread hash of HEAD letters: the first eight bytes, and the last eight of them."""
    mixed = (first * GRAM_BASE + second) * GRAM_SPREAD
    return mixed ^ (mixed >> np.uint64(32))


@lean_kernel
def is_long(text: Uint8s, begin: int, end: int, limits: tuple[int, int]) -> bool:
    """Whether text[begin:end], of more than LONG bytes, may be several words that ran together."""
    n = end - begin
    if n >= SURE:
        if count_letters(text, begin, end) < SURE:
            return False
        digits = 0
        for at in range(begin, end):
            digits += int64(48 <= text[at] <= 57)
        return 8 * digits <= n
    if not (is_border(text, begin - 1, limits) and is_border(text, end, limits)):
        return False
    # Small letters of ASCII alone, but for the first, which may be a capital.
    capital = _CAPITAL
    for at in range(begin, end, 8):
        chunk = next_bytes(text, at, end - at) | capital
        capital = _ZERO
        inside = _TOP_BITS if end - at >= 8 else _TOP_BITS >> np.uint64(64 - 8 * (end - at))
        if chunk & inside != _ZERO or (chunk + _SMALL) & inside != inside:
            return False
    return True


@lean_kernel
def begins_several(text: Uint8s, at: int, heads: Uint64s) -> bool:
    """Whether the HEAD letters from text[at] on may be those with which several words begin.

    heads  a filter of those; empty where all may be
    """
    if heads.shape[0] == 0:
        return True
    return passes_filter(
        hash_head(load8(text, at) | LOWER, load8(text, at + HEAD - 8) | LOWER), heads
    )


@lean_kernel
def edge_kinds(spans: Int32s, first: int, n: int) -> np.uint64:
    """What `kinds_of` says of the first or last block of n words."""
    kinds = _ZERO
    for k in range(first, min(first + BLOCK, n)):
        length = spans[k, 1] - spans[k, 0]
        is_alone = length == 1 and 0 < k < n - 1
        if is_alone and spans[k, 0] - spans[k - 1, 1] == 1 and spans[k + 1, 0] - spans[k, 1] == 1:
            kinds |= _ONE << np.uint64(k - first + BLOCK)
        elif length > LONG:
            kinds |= _ONE << np.uint64(k - first)
    return kinds


@lean_kernel
def find_suspects(doc: Document, heads: Uint64s, suspects: Int32s) -> int:
    """Words of a document that may begin torn ones; how many.

    They are long ones, and those before single letters that are no words, where several are near.

    heads     see `begins_several`
    suspects  int32[>= 2 * n], written: their numbers, some twice
    """
    text, spans, n, lo = doc.text, doc.spans, doc.n, doc.begin
    limits = (lo, doc.end)
    count = 0
    before = _ZERO
    for first in range(0, n, BLOCK):
        if first > 0 and first + BLOCK < n:
            kinds = kinds_of(spans, first)
        else:
            kinds = edge_kinds(spans, first, n)
        left = kinds & _MASK
        while left != _ZERO:
            k = first + trailing_zeros(left)
            left &= left - _ONE
            begin, end = lo + int64(spans[k, 0]), lo + int64(spans[k, 1])
            # Of a very long word any letter may begin the first of several.
            may_be = end - begin >= SURE or begins_several(text, begin, heads)
            if may_be and is_long(text, begin, end, limits):
                suspects[count] = k
                count += 1
        lone = kinds >> _SIXTEEN
        if lone != _ZERO and count_ones(lone) + count_ones(before) >= _SEVERAL:
            left = lone
            while left != _ZERO:
                k = first + trailing_zeros(left)
                left &= left - _ONE
                if is_bit(text, lo + int64(spans[k, 0])):
                    suspects[count] = k - 1
                    count += 1
        before = lone
    return count
