"""Sixty-four bytes at once: every mask says of every byte what the twin says of it alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels import byte_classes
from contam.kernels._jit import kernel
from tests.kernels.support import frozen
from tests.twins.bits import byte_classes as said_of

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
