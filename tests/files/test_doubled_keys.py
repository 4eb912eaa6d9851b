from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.files.doubled_keys import doubled_key, may_repeat

NAMES = st.sampled_from(["a", "b", "\u00e4", 'q"', "b\\", ""])
#: Objects are lists of pairs in a tuple, so that a name may come twice.
TREES = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(alphabet='{}[]":,\\a\u00e4', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(st.tuples(NAMES, inner), max_size=4).map(tuple)
    ),
    max_leaves=12,
)


def written(tree, blank, *, ascii_only):
    if isinstance(tree, tuple):
        pairs = [
            json.dumps(name, ensure_ascii=ascii_only)
            + f"{blank}:{blank}"
            + written(one, blank, ascii_only=ascii_only)
            for name, one in tree
        ]
        return "{" + f"{blank},".join(pairs) + blank + "}"
    if isinstance(tree, list):
        return "[" + ",".join(written(one, blank, ascii_only=ascii_only) for one in tree) + "]"
    return json.dumps(tree, ensure_ascii=ascii_only)


def doubled_places(tree, at=()):
    """Every place of the tree whose name stands twice beside it."""
    if isinstance(tree, tuple):
        names = [name for name, _ in tree]
        own = {(*at, name) for name in names if names.count(name) > 1}
        return own.union(*(doubled_places(one, (*at, name)) for name, one in tree))
    if isinstance(tree, list):
        return set().union(*(doubled_places(one, (*at, n)) for n, one in enumerate(tree)))
    return set()


@given(TREES, st.sampled_from(["", " ", "\n\t"]), st.booleans())
def test_a_name_that_stands_twice_in_one_object_is_found_wherever_it_is(tree, blank, ascii_only):
    text = written(tree, blank, ascii_only=ascii_only).encode()
    found = doubled_key(text)
    places = doubled_places(tree)
    assert found in places if places else found is None
    assert may_repeat(text, json.loads(text)) or not places


@given(st.binary() | st.text('{}[]":,a1 \\', max_size=30).map(str.encode))
def test_what_is_no_json_is_said_to_be_none(text):
    try:
        found = doubled_key(text)
    except ValueError:
        with pytest.raises(ValueError):
            json.loads(text.decode())
    else:
        value = json.loads(text.decode())
        assert found is None or isinstance(value, dict | list)


def test_names_that_are_spelt_differently_and_are_the_same_are_found():
    assert doubled_key(b'[0, {"a": 1, "\\u0061": 2}]') == (1, "a")


def test_few_texts_without_a_doubled_name_need_the_long_look():
    for record in (
        {"text": 'a "text" in quotes:\nand more', "meta": {"text": 1}, "n": [1, {"a": []}]},
        [],
        "text",
    ):
        for gaps in ((", ", ": "), (",", ":"), (" ,\n", " :\t")):
            assert not may_repeat(json.dumps(record, separators=gaps).encode(), record)
