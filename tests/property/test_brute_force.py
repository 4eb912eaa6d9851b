"""The matcher against one that compares everything with everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.detect.match import grams
from contam.detect.plan import CHAR_MIN_RUN, CHAR_SEED, CHAR_STRIDE
from tests.kernels.support import (
    batch,
    brute_longest_at,
    check_world,
    few,
    match,
    view_of,
    worlds,
)
from tests.kernels.support import make_item as item


@given(worlds(most=40, documents=4))
@few
def test_every_run_of_eight_words_is_evidence_with_its_offsets(world):
    items, documents = world
    check_world(view_of(items), items, documents)


@given(worlds(words=("red", "fox", "runs"), most=30, documents=2))
@few
def test_texts_of_three_words_repeat_everywhere(world):
    items, documents = world
    check_world(view_of(items), items, documents)


@given(worlds(words=("red", "fox", "runs", "12", "中"), most=24), st.integers(0, 2))
@few
def test_grams_that_every_item_shares_cost_no_run_of_eight(world, owners):
    items, documents = world
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grams, "COMMON_OWNERS", owners)
        view = view_of(items)
    check_world(view, items, documents)


@given(worlds(most=24, documents=2))
@few
def test_every_run_of_many_letters_is_evidence_in_the_unit_of_characters(world):
    items, documents = world
    check_world(view_of(items, unit="char", seed=24, min_run=50), items, documents)
    strided = view_of(items, unit="char", seed=CHAR_SEED, min_run=CHAR_MIN_RUN, stride=CHAR_STRIDE)
    check_world(strided, items, documents)


@given(worlds(documents=4), st.integers(0, 4))
@few
def test_longest_at_is_the_maximum_over_all_documents_in_any_grouping(world, cut):
    items, documents = world
    view = view_of(items)
    first, second = match(view, documents[:cut]), match(view, documents[cut:], first_row=cut)
    whole = match(view, documents)
    second.merge(first)
    assert np.array_equal(second.longest_at, whole.longest_at)
    real = brute_longest_at(view, items, documents)
    assert all(a == b or b < 8 for a, b in zip(whole.longest_at.tolist(), real, strict=True))
    assert second.n_tokens == whole.n_tokens


def test_a_template_of_many_items_still_gives_every_run_of_eight():
    frame = "which of the following statements about {} is the correct one to make"
    items = [item(n, question=frame.format(f"topic{n}")) for n in range(30)]
    documents = [frame.format("topic7"), frame.format("nothing"), "statements about topic9 is the"]
    check_world(view_of(items), items, documents)


def test_a_batch_of_empty_documents_is_nothing():
    view = view_of([item(0, question="one two three four five six seven eight")])
    assert batch(["", ""]).n_docs == 2
    assert len(match(view, ["", ""]).evidence()[0]) == 0
