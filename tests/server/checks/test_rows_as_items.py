"""A check takes rows of benchmark files as they are, and reads them as a query reads the files."""

from __future__ import annotations

import json

import pytest

import contam
from contam.client import Client
from contam.errors import UsageError

POLICIES = ["contam", "gpt3-test"]
QUESTION = "Which of these seven lanterns on the old quay was the last one that anybody lit?"
#: Rows as published benchmarks have them, with fields that are no part of an item.
ROWS = {
    "mmlu": {"question": QUESTION, "subject": "harbour_law", "choices": ["red", "blue"], "answer": 1},
    "arc": {
        "question": QUESTION, "answerKey": "B",
        "choices": {"text": ["red", "blue"], "label": ["A", "B"]},
    },
    "medqa": {
        "question": QUESTION, "options": {"A": "red", "B": "blue"}, "answer_idx": "B",
        "meta_info": {"step": [1, {"of": None}]},
    },
    "race": {"article": "An article of some length.", "question": QUESTION, "options": ["red", "blue"], "answer": "A"},
    "squad": {"context": "A paragraph of some length.", "question": QUESTION, "answers": {"text": ["red"], "answer_start": [3]}},
    "turns": {"question": [{"role": "user", "content": QUESTION}], "tags": []},
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(fixture_items):
    """Copied items in the shape of each benchmark, and plain ones with more fields."""
    shaped = []
    for number, (name, row) in enumerate(ROWS.items()):
        text = fixture_items[number]["question"]
        question = [{"role": "user", "content": text}] if name == "turns" else text
        shaped.append({**row, "id": number, "benchmark": name, "question": question})
    return shaped + [{**item, "subject": "mills", "metadata": {"n": 1}} for item in fixture_items]


@pytest.fixture(scope="module")
def queried(rows, small_index, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for row in rows:
        with (folder / f"{row['benchmark']}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
    result = contam.query(small_index, folder, policies=POLICIES, workers=1)
    assert {"contaminated", "clean"} <= {verdict.label for verdict in result}
    return as_set(verdict.to_dict() for verdict in result)


def as_set(verdicts):
    return sorted(verdicts, key=repr)


def test_rows_are_judged_as_a_query_judges_their_file(client, rows, queried):
    reply = client.post("/v1/check", json={"items": rows, "policies": POLICIES})
    assert reply.status_code == 200, reply.text
    verdicts = reply.json()["verdicts"]
    for verdict in verdicts:
        del verdict["evidence"]
    assert as_set(verdicts) == queried


def test_the_client_takes_rows_and_a_job_judges_them_alike(service, rows, queried):
    with Client(service.url) as client:
        assert as_set(v.to_dict() for v in client.check(rows, policies=POLICIES)) == queried
        job = client.wait(client.submit(rows, policies=POLICIES))
        assert as_set(v.to_dict() for v in client.results(job)) == queried
        by_name = {"brook_math": [row for row in rows if row["benchmark"] == "brook_math"]}
        assert {v.benchmark for v in client.check(by_name)} == {"brook_math"}


def test_the_client_names_the_item_and_field_that_is_wrong(service):
    good = {"id": 1, "question": QUESTION}
    with Client(service.url) as client:
        for bad, told in (
            ({"id": 2, "question": QUESTION, "options": 5}, "item 2, field 'options': the choices"),
            ({"id": 2, "question": None}, "item 2, field 'question': the question is empty"),
            ({"id": 2, "subject": "law"}, "item 2: no field for the question"),
        ):
            with pytest.raises(UsageError, match=told):
                client.check([good, bad])
        with pytest.raises(UsageError, match="item 1 is of type str"):
            client.submit("abc")


def test_a_rescoring_takes_the_rows_that_were_asked(client, rows):
    items = [row for row in rows if row["benchmark"] == "brook_math"]
    answer = client.post("/v1/check", json={"items": items}).json()
    scores = [
        {"id": item["id"], "score": number % 2, "model": "m", "benchmark": "brook_math"}
        for number, item in enumerate(items)
    ]
    asked = {
        "inline": {"verdicts": answer["verdicts"], "coverage": answer["coverage"], "items": items},
        "scores": scores,
        "options": {"least": 5, "permutations": 99},
    }
    with Client(str(client.base_url)) as waiting:
        reply = client.post("/v1/rescore", json=asked)
        if reply.status_code == 202:
            waiting.wait(reply.json()["id"])
            reply = client.get(f"/v1/rescore/{reply.json()['id']}")
    (row,) = [row for row in reply.json()["tables"]["scores"] if row["subset"] == "all"]
    assert row["n"] == len(items)


def test_further_fields_are_bounded_like_the_rest_of_a_request(client):
    item = {"id": 1, "question": QUESTION}
    deep = 1
    for _ in range(40):
        deep = [deep]
    refused = client.post("/v1/check", json={"items": [{**item, "metadata": deep}]})
    assert (refused.status_code, refused.json()["code"]) == (400, "too-deep")
    large = client.post("/v1/check", json={"items": [{**item, "metadata": "x" * (9 << 20)}]})
    assert (large.status_code, large.json()["code"]) == (413, "too-large")
    # What is searched for counts, whatever its field is called.
    long = client.post("/v1/check", json={"items": [{**item, "context": "word " * 50_000}]})
    assert (long.status_code, long.json()["code"]) == (413, "too-large")
    assert "item 0 has 25" in long.json()["detail"]
    twice = '{"items": [{"id": 1, "question": "Which?", "metadata": {"a": 1, "a": 2}}]}'
    headers = {"content-type": "application/json"}
    doubled = client.post("/v1/check", content=twice, headers=headers)
    assert (doubled.status_code, doubled.json()["code"]) == (422, "doubled-field")
