"""Single words of memory, and sixty-four bytes at once: kernels against exact arithmetic."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels import bits, byte_classes
from contam.kernels._jit import kernel
from tests.kernels.support import U64, frozen
from tests.twins import bits as twin
from tests.twins.bits import byte_classes as said_of


@kernel
def read_word(array, index):
    return bits.load8(array, index)


@given(U64, U64)
def test_mixing_is_arithmetic_modulo_two_to_the_64(state, chunk):
    mixed = bits.mix_chunk(np.uint64(state), np.uint64(chunk))
    assert int(mixed) == twin.mix_chunk(state, chunk)


@given(U64)
def test_a_finished_hash_is_never_zero(state):
    assert int(bits.finish_hash(np.uint64(state))) == twin.finish_hash(state) > 0


@given(st.binary(min_size=8, max_size=20), st.data())
def test_a_word_is_read_from_any_byte_little_endian(data, more):
    at = more.draw(st.integers(0, len(data) - 8))
    array = frozen(np.frombuffer(data, np.uint8), np.uint8)
    assert int(read_word(array, at)) == int.from_bytes(data[at : at + 8], "little")


CLASSES = ("word", "hyphen", "blank", "colon", "bracket", "closed", "filler", "twice", "other")


@kernel
def masks_at(text, index):
    return byte_classes.mark_block(text, index)


def said(data: bytes) -> tuple[int, ...]:
    """The masks, one bit a byte."""
    return tuple(
        sum(1 << i for i, byte in enumerate(data) if name in said_of(byte)) for name in CLASSES
    )


def test_every_byte_is_marked_for_what_it_is():
    every = bytes(range(256)) * 2
    text = frozen(np.frombuffer(every, np.uint8), np.uint8)
    for at in range(0, 256, 32):
        block = every[at : at + byte_classes.BLOCK]
        assert tuple(map(int, masks_at(text, at))) == said(block)
        assert tuple(map(int, byte_classes.mark_some(text, at, at + len(block)))) == said(block)


@given(st.binary(max_size=90), st.data())
def test_any_bytes_are_marked_as_the_twin_says(data, more):
    text = frozen(np.frombuffer(data, np.uint8), np.uint8)
    lo = more.draw(st.integers(0, len(data)))
    hi = more.draw(st.integers(lo, min(len(data), lo + byte_classes.BLOCK)))
    assert tuple(map(int, byte_classes.mark_some(text, lo, hi))) == said(data[lo:hi])
    if lo + byte_classes.BLOCK <= len(data):
        block = data[lo : lo + byte_classes.BLOCK]
        assert tuple(map(int, masks_at(text, lo))) == said(block)
