"""A record read alone is the item that a file with that row gives, or is refused as the file is."""

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.benchmark.fields import RowError
from contam.benchmark.read_files import read_benchmarks
from contam.benchmark.rows import USUAL_NAMES, read_item
from contam.errors import BenchmarkError

WORDS = st.sampled_from(["a", "B", "2", "(A) red", "B. blue", " red ", "", "-1", "--5", "9" * 5000])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 4) | st.floats(allow_infinity=False) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["text", "label", "A", "B", "stem", "choices", "role", "content"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
RECORDS = st.dictionaries(
    st.sampled_from(sorted({*USUAL_NAMES, "subject", "Options", "metadata", "distractor_1"})),
    VALUES,
    max_size=6,
)


def of_a_file(record, folder):
    path = folder / "items.json"
    path.write_text(json.dumps([record]), encoding="utf-8")
    (benchmark,) = read_benchmarks([path], mapping=None)
    (item,) = benchmark.items
    return replace(item, source="", line=0)


@given(RECORDS)
@example({"id": "1", "question": "Which?", "choices": ["x", "y"], "answer_index": "--5"})
@example({"id": "1", "question": "Which?", "choices": ["x", "y"], "answer": "9" * 5000})
@example({"id": "1", "question": "Which?", "choices": ["x", "y"], "answer_index": "9" * 5000})
def test_a_record_is_what_a_file_with_that_row_gives(tmp_path_factory, record):
    try:
        found = read_item(record, "items")
    except RowError as error:
        if "one text" in str(error):
            return  # a file may have written-out lists
        assert not error.field or error.field in record  # noqa: PT017 - the error is one of two answers
        with pytest.raises(BenchmarkError):
            of_a_file(record, tmp_path_factory.getbasetemp())
    else:
        assert found == of_a_file(record, tmp_path_factory.getbasetemp())


@given(RECORDS)
@example({"question": "Which?", "Options": {"text": "(A) red"}})
@example({"question": "Which?", "A": "(A) red", "B": "(B) blue", "answer": "B"})
@example({"question": "Which?", "answer": "A. red", "distractor_1": "B. blue"})
def test_an_item_that_was_read_is_read_again_as_it_is(record):
    """Clients read a row, and so does the service; that it is not all there is sent along."""
    try:
        found = read_item({**record, "id": "1"}, "items")
    except RowError:
        return
    again = {
        "id": found.item_id, "benchmark": found.benchmark, "split": found.split,
        "passage": found.passage, "question": found.question, "choices": list(found.choices),
        "answer": found.answer, "answer_index": found.answer_index,
    }  # fmt: skip
    assert read_item(again, "other") == replace(found, incomplete="")


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"question": 3}, "question"),
        ({"prompt": ""}, "prompt"),
        ({"question": "Which?", "context": 3}, "context"),
        ({"question": "Which?", "option_a": "x", "option_b": {}}, "option_a"),
        ({"question": "Which?", "choices": ["x"], "gold": 7}, "gold"),
        ({"question": "Which?", "choices": ["x"], "answer_idx": 7}, "answer_idx"),
        ({"question": "Which?", "task_id": True}, "task_id"),
        ({"question": "Which?", "benchmark": []}, "benchmark"),
        ({"subject": "law"}, ""),
    ],
)
def test_what_is_wrong_is_told_with_its_field(record, field):
    with pytest.raises(RowError) as caught:
        read_item(record, "items")
    assert caught.value.field == field


@pytest.mark.slow
def test_many_answers_among_many_choices_are_read_in_one_pass():
    """A quadratic search would take minutes, and this record fits into one request."""
    names = [f"choice {n}" for n in range(100_000)]
    found = read_item({"question": "Which?", "choices": names, "answer": names[::-1]}, "items")
    assert found.answer == "\n".join(names)


BLANKS = " " * 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        f"{BLANKS}!",
        "7" * 1_000_000,
        f"a{BLANKS}!",
        f"({BLANKS}!",
        f"!{BLANKS}!",
        f"(A){BLANKS}!",
        f"A {BLANKS}",
    ],
)
def test_blanks_are_passed_over_in_one_pass(answer):
    """Looked at anew from each of them, they would take hours."""
    for record in (
        {"question": "Which?", "choices": ["x", answer], "answer": answer},
        {"question": "Which?", "choices": ["x", "y"], "answer": answer, "answer_index": 1},
        {"question": "Which?", "choices": ["x", "y"], "answer": answer},
        {"question": answer, "passage": answer},
    ):
        assert read_item(record, "items").question.strip() == record["question"].strip()


def test_a_number_of_thousands_of_digits_is_an_error_of_the_file(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text('{"id": 1, "question": "Which?", "answer": %s}' % ("9" * 5000))
    with pytest.raises(BenchmarkError, match=r"items.jsonl:1: a number is too long"):
        read_benchmarks([path])
