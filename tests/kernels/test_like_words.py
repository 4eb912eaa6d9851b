"""Words of a question beside those of a text, in order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels.like_words import align_like_words
from tests.twins import like_words as twin

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
