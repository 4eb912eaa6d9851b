"""The vectorised folding pass: every byte alone gives what the twin says, and nothing overflows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels.fold import PADDING, fold_ascii, fold_eight
from tests.kernels.support import frozen
from tests.twins.bits import fold_byte

GUARD = 0xA5


def folded(data: bytes, lo: int, hi: int) -> bytes:
    """The folded bytes and what the kernel left behind them, guard bytes proving the border."""
    room = np.full(hi - lo + PADDING + 8, GUARD, np.uint8)
    text = frozen(np.frombuffer(data, np.uint8), np.uint8)
    fold_ascii(text, lo, hi, room[: hi - lo + PADDING])
    assert room[hi - lo + PADDING :].tobytes() == bytes([GUARD]) * 8
    return room[: hi - lo + 16].tobytes()


def test_every_byte_is_folded_alone_whatever_stands_beside_it():
    for neighbour in (0x00, 0x7F, 0x80, 0xFF):
        for byte in range(256):
            word = bytes([neighbour, byte] * 4)
            value = int(fold_eight(np.uint64(int.from_bytes(word, "little"))))
            assert value.to_bytes(8, "little") == bytes(fold_byte(b) for b in word)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65])
def test_text_of_any_length_is_followed_by_sixteen_plain_bytes(length):
    data = bytes(range(200, 256)) + b"Az09-\\<&%@[`{/:" * 8
    for lo in (0, 1, 5):
        want = bytes(fold_byte(b) for b in data[lo : lo + length])
        assert folded(data, lo, lo + length) == want + bytes(16)


@given(st.binary(max_size=40), st.data())
def test_any_bytes_fold_as_the_twin_says(data, more):
    lo = more.draw(st.integers(0, len(data)))
    hi = more.draw(st.integers(lo, len(data)))
    assert folded(data, lo, hi) == bytes(fold_byte(b) for b in data[lo:hi]) + bytes(16)
