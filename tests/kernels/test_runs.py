"""Runs: every maximal run once, at its first token; longest_at; their order."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.detect.match import grams as gram_tables
from contam.detect.match import token_view as views
from contam.detect.match.collect import as_halves, no_runs
from contam.kernels.gram_table import find_hits, hash_grams
from contam.kernels.runs import find_runs, find_runs_by_few, note_longest, order_runs
from contam.text.tokenizer import tokenize_bytes
from tests.kernels.support import (
    UNITS,
    brute_longest_at,
    few,
    is_reported,
    make_item,
    part_runs,
    view_of,
    worlds,
)
from tests.matrix import sampled


def hits_of(view: views.SearchView, document: str) -> tuple:
    """A document as `find_runs` takes it: its tokens, and its hits."""
    found = tokenize_bytes(document.encode(), unit=UNITS[view.unit])
    words, n = found.hashes, len(found)
    grams = np.empty(n + 1, np.uint64)
    at, gram = np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
    size = view.spec.seed - view.spec.stride + 1
    count = hash_grams(words, 0, n, size, grams)
    return (words, n), (at, gram, find_hits(grams, count, size, view.gram_table, at, gram, (0, 0)))


def runs_of(view: views.SearchView, document: str) -> np.ndarray:
    """What the kernels find in one document: int32[n, 4] of part, item token, document token, length."""
    doc, hits = hits_of(view, document)
    last_run = np.full(4 * view.items.n_items, -7, np.int32)
    used, text_scratch = -1, 1
    while used < 0:
        runs = np.full((text_scratch, 4), -7, np.int32)
        seed, min_run, stride = view.spec.seed, view.spec.min_run, view.spec.stride
        if stride == 1:
            used, _ = find_runs(doc, hits, seed, min_run, view.gram_table, last_run, runs, 1 << 40)
        else:
            lengths = (seed, min_run, stride)
            used, _ = find_runs_by_few(doc, hits, lengths, view.gram_table, last_run, runs, 1 << 40)
        text_scratch += 3
    return runs[:used]


def check_runs(view: views.SearchView, items: list, document: str, *, all_from: int) -> None:
    """Found runs are maximal, real and told once; every real run of `all_from` tokens is found."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for part, i, d, n in runs_of(view, document).tolist():
        found.setdefault(part, []).append((i, d, n))
    for (item, kind), real in part_runs(view, items, document).items():
        told = found.pop(4 * item + kind, [])
        assert len(set(told)) == len(told), f"told twice: {sorted(told)}"
        assert set(told) <= set(real)
        length = int(view.items.n_tokens[item, kind])
        least = view.spec.seed if length < view.spec.min_run else all_from
        for run in real:
            assert run[2] < least or is_reported(run, told)
    assert not found


@given(worlds())
@few
def test_without_common_grams_every_run_of_a_seed_is_found(world):
    items, documents = world
    view = view_of(items)
    for document in documents:
        check_runs(view, items, document, all_from=view.spec.seed)


@pytest.mark.parametrize(("seed", "min_run"), [(2, 2), (2, 4), (3, 8), (5, 5)])
@given(world=worlds(words=("red", "fox"), most=14))
@few
def test_any_seed_and_min_run_find_the_same_runs(seed, min_run, world):
    items, documents = world
    view = view_of(items, seed=seed, min_run=min_run)
    for document in documents:
        check_runs(view, items, document, all_from=seed)


def common_lane(items: list, owners: int = 1, **lengths: int) -> views.SearchView:
    """A view in which a gram of more than `owners` items is common."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram_tables, "COMMON_OWNERS", owners)
        return view_of(items, **lengths)


@pytest.mark.parametrize("owners", [0, 1])
@given(world=worlds(words=("red", "fox", "runs", "12"), most=16))
@few
def test_common_grams_never_cost_a_run_of_min_run_or_of_a_short_part(owners, world):
    items, documents = world
    view = common_lane(items, owners, seed=3, min_run=6)
    for document in documents:
        check_runs(view, items, document, all_from=6)


@pytest.mark.parametrize(
    ("lengths", "owners"),
    sampled(5, itertools.product([(3, 6, 2), (5, 8, 3), (4, 4, 4), (5, 9, 4)], [0, 1, 16])),
)
@given(world=worlds(words=("red", "fox", "runs", "12"), most=20))
@few
def test_a_few_grams_of_each_part_find_the_same_runs_as_all(lengths, owners, world):
    seed, min_run, stride = lengths
    items, documents = world
    every = common_lane(items, owners, seed=seed, min_run=min_run)
    some = common_lane(items, owners, seed=seed, min_run=min_run, stride=stride)
    for document in documents:
        check_runs(some, items, document, all_from=min_run)
        told = [runs_of(view, document).tolist() for view in (every, some)]
        # Of a text that repeats itself it may be another run that stands for the occurrence.
        for these, those in (told, told[::-1]):
            for part, *run in these:
                assert is_reported(tuple(run), [tuple(r) for p, *r in those if p == part])


@given(worlds(words=("red", "fox", "runs", "12"), most=16))
@example(([], []))
@few
def test_longest_at_is_exact_from_min_run_on_and_never_too_much(world):
    items, documents = world
    view = common_lane(items, 1, seed=3, min_run=6)
    longest_at = no_runs(view)
    for document in documents:
        runs = runs_of(view, document)
        note_longest(runs, len(runs), view.gram_table.part_start, as_halves(longest_at))
    for told, real in zip(
        longest_at.tolist(), brute_longest_at(view, items, documents), strict=True
    ):
        assert told <= real
        assert told == real or real < 6


@pytest.mark.parametrize("longest", [65_535, 65_536, 70_000])
def test_runs_of_any_length_are_noted_whole(longest):
    view = view_of([make_item(0, question="a b c d e f")])
    items = replace(view.items, token_hash=np.zeros(longest + 2, np.uint64))
    view = replace(view, longest=longest, items=items)
    longest_at = no_runs(view)
    runs = np.array([(0, 1, 0, 40_000), (0, 2, 0, longest), (0, 0, 9, 3)], np.int32)
    note_longest(runs, len(runs), np.array([0, longest + 2]), as_halves(longest_at))
    assert longest_at.tolist() == [3, 40_000, *range(longest, 0, -1)]


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), max_size=80))
def test_runs_are_ordered_by_part_then_document_then_item_position(rows):
    runs = np.array(rows, np.int32).reshape(-1, 4)
    into, order_scratch = np.full(len(rows), -7), np.full(len(rows), -7)
    order_runs(runs, len(rows), into, order_scratch)
    order = into.tolist()
    assert order == sorted(range(len(rows)), key=lambda r: (rows[r][0], rows[r][2], rows[r][1]))


def test_one_word_a_thousand_times_is_found_in_linear_space():
    items = [make_item(0, question="spam " * 12)]
    view = view_of(items)
    runs = runs_of(view, "spam " * 1000)
    check_runs(view, items, "spam " * 60, all_from=5)
    assert len(runs) < 200


@given(
    st.lists(st.sampled_from(["red ", "red fox ", "red fox runs ", "12 "]), min_size=1, max_size=3),
    st.lists(st.sampled_from(["red ", "red fox ", "red fox runs ", "12 "]), min_size=1, max_size=3),
    st.integers(1, 40),
)
@example(["red "], ["red "], 40)
def test_places_passed_over_at_once_are_those_that_begin_no_run(item, document, times):
    text = "".join(one * times for one in item)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram_tables, "COMMON_PLACES", 3)
        view = view_of([make_item(0, question=text), make_item(1, question="fox " + text)])
    one_by_one = replace(
        view,
        gram_table=view.gram_table._replace(place_skip=np.ones_like(view.gram_table.place_skip)),
    )
    for repeated in ("".join(one * times for one in document), text, text + text):
        assert (runs_of(view, repeated) == runs_of(one_by_one, repeated)).all()


def test_work_beyond_its_steps_is_given_up_and_says_so():
    view = view_of([make_item(0, question="red fox " * 400)])
    doc, hits = hits_of(view, "red fox " * 400)
    last_run, runs = np.zeros(4, np.int32), np.empty((1 << 12, 4), np.int32)
    given = (doc, hits, view.spec.seed, view.spec.min_run, view.gram_table, last_run, runs)
    n, left = find_runs(*given, 1 << 40)
    spent = (1 << 40) - left
    assert find_runs(*given, spent) == (n, 0)
    assert find_runs(*given, spent - 1)[1] < 0


def test_the_places_of_a_text_that_repeats_itself_are_not_all_looked_at():
    text = "one red fox sees two more " * 60
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram_tables, "COMMON_PLACES", 3)
        view = view_of([make_item(0, question=text)])
    doc, hits = hits_of(view, text)
    last_run, runs = np.zeros(4, np.int32), np.empty((1 << 10, 4), np.int32)
    n, left = find_runs(doc, hits, 5, 8, view.gram_table, last_run, runs, 1 << 40)
    compared = int(runs[:n, 3].sum())
    # At each of 356 grams 60 places; what is left is to compare and write the runs.
    assert (1 << 40) - left < compared + 8 * n + 3 * len(hits[0])
