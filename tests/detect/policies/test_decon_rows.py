"""The rows of a benchmark as decon indexes them: which it takes, and how rare their grams are."""

import math

import numpy as np
import pytest

from contam.benchmark.items import BenchItem
from contam.detect.policies.decon import DECON_DEFAULT
from contam.detect.policies.decon_rows import answers_of, read_rows
from contam.detect.policies.decon_tokens import PieceTokens

WORDS = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in ("lan", "mor", "tis", "ven", "sok")]


def item(question, benchmark="one", **rest):
    return BenchItem(benchmark=benchmark, split="", item_id=question[:9], question=question, **rest)


def rows(items, **parameters):
    changes = {"id": "mine", "parameters": parameters} if parameters else {}
    return read_rows(items, DECON_DEFAULT.with_changes(changes), PieceTokens())


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        ({}, [""]),
        ({"answer": "42"}, ["42"]),
        ({"choices": ("a", "b"), "answer": "b", "answer_index": 1}, ["a", "b"]),
        ({"choices": ("a", "b"), "answer": "B", "answer_index": 1}, ["a", "b"]),
        ({"choices": ("a", "b"), "answer": "because"}, ["a", "b", "because"]),
        ({"choices": ("a", "b"), "answer": "b"}, ["a", "b"]),
    ],
)
def test_an_option_is_a_row_and_so_is_an_answer_that_is_none_of_them(given, answers):
    assert answers_of(item("q", **given), DECON_DEFAULT.parts) == answers


def test_a_row_is_taken_by_its_own_length():
    question = " ".join(WORDS[:18])
    found = rows([item(question, choices=("one", "one two")), item(" ".join(WORDS[30:60]))])
    assert found.taken.tolist() == [False, True, True]
    assert found.findable.tolist() == [True, True]
    assert found.most_tokens.tolist() == [20, 30]


def test_rarity_counts_rows_and_copies_of_a_row_once():
    shared, other = " ".join(WORDS[:25]), " ".join(WORDS[40:70])
    items = [item(shared, choices=("x y", "y z")), item(shared, choices=("x y",)), item(other)]
    found = rows(items)
    assert found.first.tolist() == [0, 2, 3, 4]
    assert np.allclose(found.question.text(0)[1], math.log(3 / 2))
    assert np.allclose(found.question.text(1)[1], math.log(3 / 2))
    assert np.allclose(found.question.text(2)[1], math.log(3 / 1))


def test_rarity_is_counted_within_a_benchmark_or_over_the_run():
    one, two = " ".join(WORDS[:25]), " ".join(WORDS[40:70])
    items = [item(one), item(two), item(one, "two"), item(" ".join(WORDS[70:95]), "two")]
    assert np.allclose(rows(items).question.idf, math.log(2))
    over_all = rows(items, rarity_within="run").question
    assert np.allclose(over_all.text(0)[1], math.log(4 / 2))
    assert np.allclose(over_all.text(1)[1], math.log(4 / 1))
    alone = rows([item(one), item(one, "two"), item(two, "two")])
    assert alone.findable.tolist() == [False, True, True]


def test_no_items_are_fine():
    assert rows([]).first.tolist() == [0]
