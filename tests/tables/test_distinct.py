"""Different values are those that a set has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.tables.distinct import distinct


@pytest.mark.parametrize("kind", [np.uint64, np.int64, np.uint32])
@given(values=st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 5)))
def test_different_values_come_once_and_ascend(kind, values):
    given_values = np.array(values, kind)
    found = distinct(given_values)
    assert found.tolist() == sorted(set(values))
    assert found.dtype == kind
    assert given_values.tolist() == values
