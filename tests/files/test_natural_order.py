"""Names in the order in which people count."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from contam.files.natural_order import natural_key

NAMES = st.text(alphabet="\0\1\2\3019ab²\ue000\U0010ffff", max_size=8) | st.text()


def by_pieces(name: str) -> tuple[list[object], str]:
    """Text and number take turns: keys meet text with text, and number with number."""
    pieces: list[object] = [*re.split("([0-9]+)", name)]
    pieces[1::2] = [int(str(number)) for number in pieces[1::2]]
    return pieces, name


@given(st.lists(NAMES))
def test_texts_compare_as_texts_and_numbers_as_numbers(names: list[str]):
    assert sorted(names, key=natural_key) == sorted(names, key=by_pieces)


def test_a_number_may_be_longer_than_any_that_python_reads():
    names = ["n" + "9" * 5000, "n1" + "0" * 5000, "n2"]
    assert sorted(names, key=natural_key) == ["n2", *names[:2]]


@given(NAMES, NAMES)
def test_only_equal_names_have_equal_keys(one: str, other: str):
    assert (natural_key(one) == natural_key(other)) == (one == other)
