"""A filter lets through the grams whose two bits are set, wherever among others they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels import gram_filter
from contam.kernels._jit import kernel
from tests.kernels.support import U64, u64s

GUARD = 7


@kernel
def marks_at(grams, first, words):
    return gram_filter.mark_eight(grams, first, words)


def passes(gram: int, words: list[int]) -> bool:
    """Bits 12 and up of a gram tell its word, the six from 52 on and the highest six its bits."""
    word = words[(gram >> 12) % len(words)]
    return bool(word >> (gram >> 52 & 63) & word >> (gram >> 58) & 1)


#: Words of which about every other, every fourth or every bit is set, or none.
some_words = st.sampled_from((0, 2**64 - 1)) | U64 | st.tuples(U64, U64).map(lambda w: w[0] & w[1])
filters = st.sampled_from((1, 2, 8)).flatmap(lambda n: st.lists(some_words, min_size=n, max_size=n))


@given(st.integers(0, 2**32), st.integers(0, 300), filters, st.integers(0, 3))
def test_a_filter_lets_through_what_the_twin_says(seed, count, words, known):
    asked = np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)
    where = np.full(known + count + 1, GUARD, np.int32)
    at = gram_filter.filter_grams(asked, count, u64s(words), known, where)
    wanted = [i for i, gram in enumerate(asked.tolist()) if passes(gram, words)]
    assert where[known:at].tolist() == wanted
    assert where[:known].tolist() == [GUARD] * known
    assert where[-1] == GUARD


@given(st.lists(U64, min_size=8, max_size=20), filters, st.data())
def test_eight_grams_are_marked_as_each_alone(grams, words, more):
    first = more.draw(st.integers(0, len(grams) - 8))
    marked = marks_at(u64s(grams), first, u64s(words))
    assert [bool(marked >> i & 1) for i in range(8)] == [
        passes(gram, words) for gram in grams[first : first + 8]
    ]
