"""Hash words of ASCII letters and digits, eight of them at once.

The hashes of eight words take the same few multiplications, which the machine's vectors do side by
side. Words of more than LONGEST bytes are hashed one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from contam.kernels._jit import INTERPRETED, int64, lean_kernel
from contam.kernels.bits import (
    LOWER,
    MUL_CHUNK,
    MUL_END,
    SEED,
    finish_hash,
    lower_bytes,
    mix_chunk,
)

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Uint8s, Uint64s

#: Words that are hashed at once, and the longest that can be.
AT_ONCE = 8
LONGEST = 16
#: What no hash is: the word is still to be hashed.
UNHASHED = np.uint64(0)

_HALF = LONGEST // 2

if INTERPRETED:

    def hash_eight(text: Uint8s, lo: int, spans: Int32s, first: int, hashes: Uint64s) -> int:
        """Hash the unhashed among the words `first` : `first` + AT_ONCE; those that are too long.

        The caller guarantees that LONGEST bytes of text follow the start of each.
        return  bit i where word `first` + i is still unhashed, because it is longer than LONGEST
        """
        left = 0
        for k in range(first, first + AT_ONCE):
            if hashes[k] != UNHASHED:
                continue
            n = int(spans[k, 1] - spans[k, 0])
            if n > LONGEST:
                left |= 1 << (k - first)
            else:
                hashes[k] = hash_word(text, lo + int(spans[k, 0]), n)
        return left

else:
    from llvmlite import ir

    _I64 = ir.IntType(64)
    _EIGHT = ir.VectorType(_I64, AT_ONCE)
    _PAIRS = ir.VectorType(ir.IntType(32), 2 * AT_ONCE)

    def _every(value: int) -> Any:
        return ir.Constant(_EIGHT, [value] * AT_ONCE)

    def _mixed(builder: Any, state: Any, factor: int, shift: int) -> Any:
        product = builder.mul(state, _every(factor))
        return builder.xor(product, builder.lshr(product, _every(shift)))

    def _hashes(builder: Any, parts: tuple[Any, Any], length: Any) -> Any:
        first, second = (builder.or_(part, _every(int(LOWER))) for part in parts)
        bits = builder.and_(builder.mul(length, _every(-8)), _every(63))
        inside = builder.lshr(_every(-1), bits)
        is_less = builder.icmp_signed("<", length, _every(_HALF))
        first = builder.select(is_less, builder.and_(first, inside), first)
        short = _mixed(builder, builder.xor(first, _every(int(SEED))), int(MUL_CHUNK), 32)
        second = builder.xor(builder.and_(second, inside), short)
        long = _mixed(builder, second, int(MUL_CHUNK), 32)
        fits = builder.icmp_signed("<=", length, _every(_HALF))
        mixed = _mixed(builder, builder.select(fits, short, long), int(MUL_END), 29)
        return builder.select(builder.icmp_unsigned("==", mixed, _every(0)), _every(1), mixed)

    @intrinsic
    def hash_eight(typingctx: Any, text: Any, lo: Any, spans: Any, first: Any, hashes: Any) -> Any:
        """Hash the unhashed among the words `first` : `first` + AT_ONCE; those that are too long.

        The caller guarantees that LONGEST bytes of text follow the start of each.
        return  bit i where word `first` + i is still unhashed, because it is longer than LONGEST
        """
        del typingctx, lo, first

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def pointer(number: int, index: Any, kind: Any) -> Any:
                view = context.make_array(signature.args[number])(context, builder, args[number])
                return builder.bitcast(builder.gep(view.data, [index]), kind.as_pointer())

            def side(number: int) -> Any:
                lanes = [ir.IntType(32)(2 * lane + number) for lane in range(AT_ONCE)]
                chosen = ir.Constant(ir.VectorType(ir.IntType(32), AT_ONCE), lanes)
                return builder.sext(builder.shuffle_vector(pairs, pairs, chosen), _EIGHT)

            def eight_bytes(begin: Any, further: int) -> Any:
                found = ir.Constant(_EIGHT, ir.Undefined)
                for lane in range(AT_ONCE):
                    at = builder.extract_element(begin, ir.IntType(32)(lane))
                    at = builder.add(builder.add(at, args[1]), _I64(further))
                    loaded = builder.load(pointer(0, at, _I64), typ=_I64)
                    loaded.align = 1
                    found = builder.insert_element(found, loaded, ir.IntType(32)(lane))
                return found

            pairs = builder.load(pointer(2, builder.mul(args[3], _I64(2)), _PAIRS), typ=_PAIRS)
            pairs.align = 4
            begin, end = side(0), side(1)
            length = builder.sub(end, begin)
            parts = eight_bytes(begin, 0), eight_bytes(begin, _HALF)
            hashed = _hashes(builder, parts, length)
            place = pointer(4, args[3], _EIGHT)
            before = builder.load(place, typ=_EIGHT)
            before.align = 8
            missing = builder.icmp_unsigned("==", before, _every(int(UNHASHED)))
            too_long = builder.icmp_signed(">", length, _every(LONGEST))
            left = builder.and_(missing, too_long)
            now = builder.and_(missing, builder.not_(too_long))
            builder.store(builder.select(now, hashed, before), place).align = 8
            return builder.zext(builder.bitcast(left, ir.IntType(AT_ONCE)), _I64)

        return types.int64(text, types.intp, spans, types.intp, hashes), codegen


@lean_kernel
def hash_word(text: Uint8s, p: int, n: int) -> np.uint64:
    """Hash of the word text[p : p + n]."""
    value = SEED
    at = 0
    while at < n:
        value = mix_chunk(value, lower_bytes(text, p + at, n - at))
        at += 8
    return finish_hash(value)


@lean_kernel
def hash_words(text: Uint8s, lo: int, spans: Int32s, count: int, hashes: Uint64s) -> None:
    """Hashes of the first `count` tokens, where they are UNHASHED: ASCII letters and digits.

    lo  where the document begins in `text`, to which the spans are relative
    """
    k = 0
    while k < count:
        # Tokens follow each other: where the last of eight has its bytes, all have.
        last = k + AT_ONCE - 1
        if last < count and lo + int64(spans[last, 0]) + LONGEST <= text.shape[0]:
            left = hash_eight(text, lo, spans, k, hashes)
            k += AT_ONCE
            if left == 0:
                continue
            k -= AT_ONCE
        end = min(k + AT_ONCE, count)
        while k < end:
            if hashes[k] == UNHASHED:
                begin = int64(spans[k, 0])
                hashes[k] = hash_word(text, lo + begin, int64(spans[k, 1]) - begin)
            k += 1
