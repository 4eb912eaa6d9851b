"""Small kernels: sets of hashes, the filter of grams, and words in their order."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import gram_filter, hash_set
from contam.kernels._jit import kernel
from contam.kernels.rare_words import align_like_words
from tests.kernels.support import U64, u64s
from tests.twins import like_words as twin

#: Hashes that begin at the last places of a small table, so that they go on at its first.
CROWDED = [1 << 40 | 7, 2 << 40 | 7, 3 << 40 | 7, 4 << 40 | 6, 5 << 40 | 7]


@given(st.lists(U64.filter(bool), max_size=30), st.lists(U64, max_size=30), st.booleans())
@example(CROWDED, [7, *CROWDED, 0], True)
@example([], [0, 1, 2**64 - 1], False)
def test_hashes_are_found_where_python_finds_them(known, asked, close):
    table = np.zeros(8 if close and len(known) < 8 else 64, np.uint64)
    hash_set.enter_hashes(u64s(known), table)
    found = hash_set.are_entered(u64s([*asked, *known]), table)
    assert found.tolist() == [one in set(known) for one in [*asked, *known]]
    assert sorted(table[table > 0].tolist()) == sorted(set(known))


@given(st.dictionaries(U64.filter(bool), st.integers(1, 255), max_size=30), st.lists(U64))
@example(dict.fromkeys(CROWDED, 3), [7, *CROWDED, 0])
def test_marks_are_those_of_the_hash(known, asked):
    table = np.zeros(64, np.uint64)
    hash_set.enter_hashes(u64s([*known]), table)
    marks = np.array([known.get(one, 0) for one in table.tolist()], np.uint8)
    found = hash_set.marks_of(u64s([*asked, *known]), table, marks)
    assert found.tolist() == [known.get(one, 0) for one in [*asked, *known]]


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


gains = st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda shape: st.lists(
        st.lists(st.sampled_from([0, 0, 1, 3, 7]), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@given(gains, st.integers(0, 3))
def test_no_choice_of_pairs_gains_more(gain, skip):
    found = np.empty(len(gain), np.int32)
    most = align_like_words(np.array(gain, np.int32), skip, found)
    assert most == twin.most_gained(gain, skip)
    pairs = [(i, j) for i, j in enumerate(found.tolist()) if j >= 0]
    theirs = [j for _, j in pairs]
    assert theirs == sorted(set(theirs))
    between = theirs[-1] - theirs[0] + 1 - len(theirs) if theirs else 0
    assert all(gain[i][j] > 0 for i, j in pairs)
    assert sum(gain[i][j] for i, j in pairs) - skip * between == most
