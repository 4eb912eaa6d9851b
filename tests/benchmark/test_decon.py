"""decon reference rows, one per option, fold back into items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contam.benchmark.read_files import read_benchmarks
from contam.errors import BenchmarkError

if TYPE_CHECKING:
    from conftest import WriteRows

Row = dict[str, object]


def reference(index: int, answer: str, doc_id: int, **more: object) -> Row:
    return {
        "eval_key": "botany",
        "eval_instance_index": index,
        "split": "test",
        "question": f"Which plant is number {index}?",
        "answer": answer,
        "config": "all",
        "doc_id": doc_id,
        **more,
    }


def options(index: int, right: int | None, first_doc: int) -> list[Row]:
    return [
        reference(
            index, answer, first_doc + place, is_correct=None if right is None else place == right
        )
        for place, answer in enumerate(("moss", "fern", "reed"))
    ]


def test_options_fold_into_one_item(write_jsonl: WriteRows):
    (benchmark,) = read_benchmarks(
        [write_jsonl("r-1.jsonl", [*options(0, 2, 10), *options(1, None, 20)])]
    )
    first, second = benchmark.items
    assert (benchmark.name, first.split, first.item_id, first.line) == (
        "botany",
        "test",
        "all/0",
        1,
    )
    assert (first.choices, first.answer, first.answer_index) == (
        ("moss", "fern", "reed"),
        "reed",
        2,
    )
    assert (second.choices, second.answer, second.answer_index) == (
        ("moss", "fern", "reed"),
        None,
        None,
    )
    assert benchmark.sources[0].n_rows == 6


def test_an_item_may_lie_across_two_files(write_jsonl: WriteRows):
    rows = options(0, 1, 10)
    paths = [write_jsonl("r-1.jsonl", rows[:1]), write_jsonl("r-2.jsonl", rows[1:])]
    (benchmark,) = read_benchmarks(paths)
    assert [item.choices for item in benchmark.items] == [("moss", "fern", "reed")]
    assert len(benchmark.sources) == 2


def test_rationale_beside_options_is_listed(write_jsonl: WriteRows):
    rows = [*options(0, 0, 10), reference(0, "Because moss is first.", 13)]
    (benchmark,) = read_benchmarks([write_jsonl("r.jsonl", rows)])
    (item,) = benchmark.items
    assert (item.choices, item.answer) == (("moss", "fern", "reed"), "moss")
    assert [(skip.line, skip.reason) for skip in benchmark.skipped] == [
        (4, "further answer text of an item that has choices")
    ]


def test_rows_given_twice_are_listed(write_jsonl: WriteRows):
    rows = options(0, 0, 10)
    (benchmark,) = read_benchmarks([write_jsonl("r.jsonl", rows), write_jsonl("s.jsonl", rows)])
    assert benchmark.items[0].choices == ("moss", "fern", "reed")
    assert [skip.reason for skip in benchmark.skipped] == [
        f"repeats doc_id {n}" for n in (10, 11, 12)
    ]


def test_other_questions_under_one_number_stay_apart(write_jsonl: WriteRows):
    rows = [reference(0, "a", 1), reference(0, "b", 2, question="Another subset's question?")]
    (benchmark,) = read_benchmarks([write_jsonl("r.jsonl", rows)])
    first, second = benchmark.items
    assert first.item_id.startswith("all/0-")
    assert second.item_id.startswith("all/0-")
    assert first.item_id != second.item_id


def test_subsets_and_passages_name_items_apart(write_jsonl: WriteRows):
    rows = [
        reference(0, "a", 1, config="x", passage="P."),
        reference(0, "a", 2, config="y", passage=""),
    ]
    (benchmark,) = read_benchmarks([write_jsonl("r.jsonl", rows)])
    assert [(item.item_id, item.passage) for item in benchmark.items] == [
        ("x/0", "P."),
        ("y/0", None),
    ]


def test_empty_question_is_listed_and_wrong_type_refused(write_jsonl: WriteRows):
    path = write_jsonl("r.jsonl", [reference(0, "a", 1), reference(1, "b", 2, question="")])
    (benchmark,) = read_benchmarks([path])
    assert [(skip.line, skip.reason) for skip in benchmark.skipped] == [(2, "empty question")]
    path = write_jsonl("r.jsonl", [reference(0, "a", 1, is_correct="yes")])
    with pytest.raises(BenchmarkError, match=r"r\.jsonl:1: is_correct is 'yes'"):
        read_benchmarks([path])
