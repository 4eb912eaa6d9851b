"""Single words of memory: kernels against exact integer arithmetic, on both sides of 2**63."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels import bits
from contam.kernels._jit import kernel
from tests.kernels.support import U64, U64_EDGES, frozen
from tests.twins import bits as twin


@kernel
def read_word(array, index):
    return bits.load8(array, index)


@kernel
def write_word(array, index, value):
    bits.store8(array, index, value)


@kernel
def zeros_below(value):
    return bits.trailing_zeros(value)


@given(U64, U64)
def test_mixing_is_arithmetic_modulo_two_to_the_64(state, chunk):
    mixed = bits.mix_chunk(np.uint64(state), np.uint64(chunk))
    assert int(mixed) == twin.mix_chunk(state, chunk)


@given(U64)
def test_a_finished_hash_is_never_zero(state):
    assert int(bits.finish_hash(np.uint64(state))) == twin.finish_hash(state) > 0


@pytest.mark.parametrize("value", [*U64_EDGES, 2**63 + 2**40, 12])
def test_zeros_are_counted_from_the_lowest_bit(value):
    assert zeros_below(np.uint64(value)) == twin.trailing_zeros(value)


@given(st.binary(min_size=8, max_size=20), st.data())
def test_a_word_is_read_from_any_byte_little_endian(data, more):
    at = more.draw(st.integers(0, len(data) - 8))
    array = frozen(np.frombuffer(data, np.uint8), np.uint8)
    assert int(read_word(array, at)) == int.from_bytes(data[at : at + 8], "little")


@given(st.integers(0, 12), U64)
def test_a_word_is_written_to_any_byte_and_nowhere_else(at, value):
    array = np.full(20, 0xA5, np.uint8)
    write_word(array, at, np.uint64(value))
    rest = bytes([0xA5])
    assert array.tobytes() == rest * at + value.to_bytes(8, "little") + rest * (12 - at)
