"""Items that are not whole, or share their question with most others: never clean without a word."""

import json

import pytest

import contam
from contam.benchmark.item_table import ItemTable
from contam.benchmark.items import BenchItem
from contam.client.answers import item_row
from contam.server.schemas import Item

WHY = "its column notes is unread; --map question=question+notes reads it"
QUESTION = "Why did the miller of Oster Bay refuse to grind barley on any rainy Thursday at noon?"


def test_the_reason_goes_to_the_service_and_through_a_table():
    item = BenchItem(benchmark="b", split="", item_id="1", question=QUESTION, incomplete=WHY)
    assert list(ItemTable.of([item])) == [item]
    sent = json.loads(json.dumps(item_row(item)))
    assert Item.model_validate(sent).read == item


TASK = "Solve the following grade school word problem and give a number."
PROBLEM = "A ferry with {} red lanterns and nine brass bells sails at dawn past the old lighthouse."


def items(n_same, n_other, beside="context"):
    same = [{"instruction": TASK, beside: PROBLEM.format(n)} for n in range(n_same)]
    other = [{"instruction": PROBLEM.format(n), beside: ""} for n in range(100, 100 + n_other)]
    return same + other


@pytest.mark.parametrize(("n_same", "n_other"), [(5, 0), (6, 5), (12, 0)])
def test_items_with_one_question_are_noted_with_their_field(n_same, n_other):
    corpus = [{"text": PROBLEM.format(n)} for n in range(n_same)]
    (note,) = contam.scan(corpus, items(n_same, n_other)).run["notes"]
    assert f"{n_same} of {n_same + n_other} items have the same question (instruction)" in note
    assert "--map question=" in note


@pytest.mark.parametrize(("n_same", "n_other"), [(4, 0), (5, 5), (0, 12)])
def test_a_question_that_some_items_share_is_no_doubt(n_same, n_other):
    assert contam.scan([{"text": TASK}], items(n_same, n_other)).run["notes"] == []


@pytest.mark.parametrize("beside", ["context", "input"])
def test_the_map_that_the_note_names_finds_them(beside):
    corpus = [{"text": PROBLEM.format(n)} for n in range(6)]
    # What no name says is a passage is read so without being told.
    mapping = {"question": f"instruction+{beside}"} if beside == "context" else None
    result = contam.scan(corpus, items(6, 0, beside), mapping=mapping)
    assert all(verdict.label in {"contaminated", "suspect"} for verdict in result)
    assert result.run["notes"] == []
