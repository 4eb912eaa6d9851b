"""The user's own mapping wins over usual names, and slips in it are errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from contam.benchmark.mapping import parse_mapping
from contam.benchmark.read_files import read_benchmarks
from contam.errors import BenchmarkError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conftest import WriteRows

    from contam.benchmark.items import BenchItem

ROW: dict[str, object] = {
    "name": "n1",
    "meta": {"ask": "Where to?", "gold": {"text": "home"}},
    "body": "Mo left.",
    "question": "not this one",
    "w": "moss",
    "x": "home",
    "dotted.name": "D",
}


def mapped(write_jsonl: WriteRows, mapping: Mapping[str, str]) -> BenchItem:
    (benchmark,) = read_benchmarks([write_jsonl("m.jsonl", [ROW])], mapping=mapping)
    return benchmark.items[0]


@pytest.mark.parametrize("text", ["question", "question=a,question=b"])
def test_unreadable_pairs_are_usage_errors(text: str):
    with pytest.raises(UsageError):
        parse_mapping([text])


def test_dotted_paths_reach_into_records(write_jsonl: WriteRows):
    item = mapped(write_jsonl, {"question": "meta.ask", "answer": "meta.gold.text", "id": "name"})
    assert (item.question, item.answer, item.item_id) == ("Where to?", "home", "n1")


def test_fields_are_joined_or_listed(write_jsonl: WriteRows):
    item = mapped(write_jsonl, {"question": "body+meta.ask", "choices": "w+x", "answer": "x"})
    assert item.question == "Mo left.\nWhere to?"
    assert (item.choices, item.answer_index) == (("moss", "home"), 1)


def test_a_part_can_be_mapped_to_nothing(write_jsonl: WriteRows):
    row = {"id": "7", "question": "Q?", "passage": "P.", "answer": "a"}
    path = write_jsonl("m.jsonl", [row])
    (benchmark,) = read_benchmarks([path], mapping={"passage": "", "answer": "", "id": ""})
    (item,) = benchmark.items
    assert (item.passage, item.answer) == (None, None)
    assert item.item_id != "7"


def test_a_mapped_field_serves_no_second_part(write_jsonl: WriteRows):
    path = write_jsonl("m.jsonl", [{"context": "Why?", "answer": "a"}])
    (benchmark,) = read_benchmarks([path], mapping={"question": "context"})
    assert benchmark.items[0].passage is None


@pytest.mark.parametrize("mapping", [{"headline": "x"}, {"question": ""}, {"id": "a+b"}])
def test_wrong_targets_are_usage_errors(write_jsonl: WriteRows, mapping: dict[str, str]):
    with pytest.raises(UsageError):
        mapped(write_jsonl, mapping)


@pytest.mark.parametrize(
    "mapping", [{"question": "prompt"}, {"answer": "soluton"}, {"answer": "metta.gold"}]
)
def test_a_mapped_field_that_is_not_there_is_an_error(
    write_jsonl: WriteRows, mapping: dict[str, str]
):
    with pytest.raises(BenchmarkError, match="no field") as caught:
        mapped(write_jsonl, mapping)
    assert "m.jsonl" in str(caught.value)


ROWS = [{"enquiry": f"Who keeps the {k} keys of the {k} mills?", "a": "x"} for k in range(5)]
KEYED = {f"row {at}": row for at, row in enumerate(ROWS)}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "whole",
    [{"version": 1, "data": ROWS}, {"version": 1, "kept": ROWS}, KEYED,
     {"enquiry": "about them all", "data": ROWS}],
)  # fmt: skip
def test_rows_inside_an_object_are_found_by_the_field_that_is_named(
    tmp_path: Path, whole: object, indent: int | None
):
    path = tmp_path / "quiz.json"
    path.write_text(json.dumps(whole, indent=indent))
    (found,) = read_benchmarks([path], mapping={"question": "enquiry"})
    assert [item.question for item in found.items] == [row["enquiry"] for row in ROWS]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("beside", [{"data": ["a", "b"]}, {"shots": ROWS}, {"rows": [{"b": 1}]}])
def test_an_object_with_the_field_that_is_named_is_an_item(
    tmp_path: Path, beside: dict[str, object], indent: int | None
):
    path = tmp_path / "quiz.json"
    path.write_text(json.dumps({"enquiry": "Who keeps the keys?", **beside}, indent=indent))
    (found,) = read_benchmarks([path], mapping={"question": "enquiry"}, ignore=[*beside])
    assert [item.question for item in found.items] == ["Who keeps the keys?"]
