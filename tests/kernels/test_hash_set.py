"""Which hashes are in a set: the table of kernels against Python's own."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import hash_set
from tests.kernels.support import U64, u64s

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
