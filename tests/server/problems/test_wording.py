"""What does not fit in a request is told by its place, in words for people, and never quoted."""

from __future__ import annotations

import json

import pytest
from fastapi.exceptions import RequestValidationError

from contam.config import Settings
from contam.server.checks.asking import parse
from contam.server.jobs.intake.requests import parse_job
from contam.server.problems.wording import describe_errors

ONE = {"id": "a", "question": "b"}
CHECK = "index, policies, items, text, grams, options"
JOB_OPTIONS = "allow_missing, max_evidence, keep_text, name, split, mapping"
TAGS = frozenset(("check", "rescore"))


def lines(read, asked):
    with pytest.raises(RequestValidationError) as refused:
        read(json.dumps(asked).encode(), Settings())
    return {
        error["place"]: error["message"] for error in describe_errors(refused.value.errors(), TAGS)
    }


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ({"items": [{"id": 1}]}, {"items.0.question": "it is missing"}),
        ({"items": [{**ONE, "id": 1.5}]}, {"items.0.id": "a text or a whole number is expected"}),
        ({"items": 3}, {"items": "a list is expected"}),
        ({"items": []}, {"items": "a list of 1 or more is expected"}),
        ({"items": [3]}, {"items.0": "an object is expected"}),
        ({"items": [ONE, {**ONE, "question": " "}]}, {"items.1.question": "the question is empty"}),
        ({"items": [{**ONE, "options": 5}]}, {"items.0.options": "the choices are the number 5, expected a list of texts"}),
        ({"items": [{**ONE, "Answer Choices": ["x", None]}]}, {"items.0.answer_choices": "a choice is null, expected a text"}),
        ({"items": [{**ONE, "option_a": "x", "option_b": []}]}, {"items.0.option_a": "the choice is an empty list, expected a text"}),
        ({"items": [{**ONE, "choices": {"zanzibar": {}}}]}, {"items.0.choices": "the choice is a record, expected a text"}),
        ({"items": [{**ONE, "options": "['x', 'y']"}]}, {"items.0.options": "the choices are one text, expected a list"}),
        ({"items": [{**ONE, "choices": ["x"], "label": 7}]}, {"items.0.label": "answer 7 is none of 1 choices"}),
        ({"items": [{**ONE, "choices": ["x"], "gold_index": "zanzibar"}]}, {"items.0.gold_index": "the answer index is '...', expected a whole number"}),
        ({"items": [{**ONE, "answer_index": True}]}, {"items.0.answer_index": "a whole number or a text is expected"}),
        ({"text": "b", "max_evidence": 1}, {"?": f"there is no such field (did you mean 'options.max_evidence'?); there are: {CHECK}"}),
        ({"items": [{**ONE, "id": "a" * 600}]}, {"items.0.id": "a text of at most 512 characters is expected"}),
        ({"items": [ONE], "index": 3}, {"index": "a text or a list is expected"}),
        ({"items": [ONE], "index": [""]}, {"index.0": "a text of 1 or more characters is expected"}),
        ({"items": [ONE], "index": []}, {"index": "a list of 1 or more is expected"}),
        ({"items": [ONE], "options": {"evidence": 1}}, {"options.evidence": "true or false is expected"}),
        ({"items": [ONE], "options": {"context": 1.5}}, {"options.context": "a whole number is expected"}),
        ({"items": [ONE], "text": "b"}, {"": "give one of items, text and grams"}),
        (3, {"": "an object is expected"}),
        (
            {"grams": {"unit": "w", "normaliser": "n", "gram": 5,
                       "items": [{"id": "1", "parts": {"zanzibar": {"keys": "", "bits": ""}}}]}},
            {"grams.items.0.parts.?": "'passage', 'question', 'choices' or 'answer' is expected"},
        ),
    ],
)  # fmt: skip
def test_a_check_that_does_not_fit_is_told_what_was_expected_where(asked, known):
    assert lines(parse, asked) == known


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ({}, {"kind": "it is missing"}),
        ({"kind": "check", "options": {"keeptext": True}}, {"options.?": f"there is no such field (did you mean 'keep_text'?); there are: {JOB_OPTIONS}"}),
        ({"kind": "rescore", "inline": {"verdicts": [{}], "coverage": {}, "rows": []}}, {"inline.?": "there is no such field; there are: verdicts, coverage, items"}),
        ({"kind": "zanzibar"}, {"kind": "'check', 'rescore' is expected"}),
        ({"kind": "check", "index": {}}, {"index": "a text or a list is expected"}),
        ({"kind": "check", "options": {"mapping": {"zanzibar": 3}}}, {"options.mapping.?": "a text is expected"}),
        ({"kind": "rescore", "options": {"seed": -1}}, {"options.seed": "a number of 0 or more is expected"}),
    ],
)  # fmt: skip
def test_a_job_that_does_not_fit_is_told_what_was_expected_where(asked, known):
    assert lines(parse_job, asked) == known


def test_what_has_no_words_of_ours_is_not_told_in_others():
    odd = {"type": "zanzibar", "loc": ("query", "limit"), "msg": "zanzibar", "input": "zanzibar"}
    assert describe_errors([odd]) == [
        {"place": "query.limit", "message": "the value is none that is taken", "kind": "zanzibar"}
    ]
