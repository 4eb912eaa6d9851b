"""Load, store and mix 64-bit words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from contam.kernels._jit import INTERPRETED, int64, lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.kernels._jit import Uint8s

SEED = np.uint64(0x9E3779B97F4A7C15)
MUL_CHUNK = np.uint64(0xD6E8FEB86659FD93)
MUL_END = np.uint64(0xFF51AFD7ED558CCD)
#: Makes eight ASCII letters small ones, and leaves digits as they are.
LOWER = np.uint64(0x2020202020202020)
_ONE = np.uint64(1)
#: The place of a bit within its byte, of its number in all.
_IN_BYTE = 7

if INTERPRETED:

    def load8(array: Uint8s, index: int) -> np.uint64:
        """Eight bytes from `index` on, little endian; the caller guarantees they exist."""
        return np.uint64(int.from_bytes(array[index : index + 8].tobytes(), "little"))

    def store8(array: Uint8s, index: int, value: np.uint64) -> None:
        """Write eight bytes from `index` on, little endian; the caller guarantees they exist."""
        array[index : index + 8] = np.frombuffer(int(value).to_bytes(8, "little"), np.uint8)

    def trailing_zeros(value: np.uint64) -> int:
        """Number of zero bits below the lowest set bit; 64 for zero."""
        number = int(value)
        return 64 if number == 0 else (number & -number).bit_length() - 1

    def count_ones(value: np.uint64) -> int:
        """Number of bits that are set."""
        return int(value).bit_count()

    def prefetch(array: NDArray[Any], index: int) -> None:
        """Have the machine fetch an element that will be asked for soon; changes nothing."""

else:
    from llvmlite import ir

    _I64 = ir.IntType(64)

    def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.bitcast(builder.gep(view.data, [args[1]]), _I64.as_pointer())

    @intrinsic
    def load8(typingctx: Any, array: Any, index: Any) -> Any:
        """Eight bytes from `index` on, little endian; the caller guarantees they exist."""
        del typingctx, index

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            loaded = builder.load(_address(context, builder, signature, args), typ=_I64)
            loaded.align = 1
            return loaded

        return types.uint64(array, types.intp), codegen

    @intrinsic
    def store8(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        """Write eight bytes from `index` on, little endian; the caller guarantees they exist."""
        del typingctx, index, value

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _address(context, builder, signature, args)
            builder.store(args[2], place).align = 1
            return context.get_dummy_value()

        return types.void(array, types.intp, types.uint64), codegen

    @intrinsic
    def trailing_zeros(typingctx: Any, value: Any) -> Any:
        """Number of zero bits below the lowest set bit; 64 for zero."""
        del typingctx, value

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            del context, signature
            return builder.cttz(args[0], ir.IntType(1)(0))

        return types.int64(types.uint64), codegen

    @intrinsic
    def count_ones(typingctx: Any, value: Any) -> Any:
        """Number of bits that are set."""
        del typingctx, value

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            del context, signature
            return builder.ctpop(args[0])

        return types.int64(types.uint64), codegen

    @intrinsic
    def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
        """Have the machine fetch an element that will be asked for soon; changes nothing."""
        del typingctx, index

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, args[0])
            pointer = ir.IntType(8).as_pointer()
            at = builder.bitcast(builder.gep(view.data, [args[1]]), pointer)
            hint = ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3])
            function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], hint)
            # To be read, kept in the nearest cache, data.
            how = [ir.Constant(ir.IntType(32), number) for number in (0, 3, 1)]
            builder.call(function, [at, *how])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen


@lean_kernel
def mix_chunk(state: np.uint64, chunk: np.uint64) -> np.uint64:
    """Fold up to eight bytes of a token into its running hash."""
    mixed = (state ^ chunk) * MUL_CHUNK
    return mixed ^ (mixed >> np.uint64(32))


@lean_kernel
def finish_hash(state: np.uint64) -> np.uint64:
    """Last step of a token hash; never 0, which marks an empty slot elsewhere."""
    mixed = state * MUL_END
    mixed = mixed ^ (mixed >> np.uint64(29))
    if mixed == np.uint64(0):
        return np.uint64(1)
    return mixed


@lean_kernel
def next_bytes(text: Uint8s, p: int, n: int) -> np.uint64:
    """The bytes from p on, little endian: eight, or the n that are left and zeros."""
    if p + 8 <= text.shape[0]:
        chunk = load8(text, p)
        return chunk if n >= 8 else chunk & ((_ONE << np.uint64(8 * n)) - _ONE)
    chunk = np.uint64(0)
    for i in range(min(n, 8)):
        chunk |= np.uint64(text[p + i]) << np.uint64(8 * i)
    return chunk


@lean_kernel
def lower_bytes(text: Uint8s, p: int, n: int) -> np.uint64:
    """The next bytes of an ASCII word in lower case, eight or the n that are left of it, n > 0."""
    return next_bytes(text, p, n) | (LOWER if n >= 8 else LOWER >> np.uint64(64 - 8 * n))


@lean_kernel
def bit_of(bits: Uint8s, at: int) -> int:
    """One of the bits that lie eight to a byte, the lowest first."""
    return (int64(bits[at >> 3]) >> (at & _IN_BYTE)) & 1
