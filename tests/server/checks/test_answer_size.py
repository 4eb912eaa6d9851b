"""How large an answer may be: one that would be larger is refused, and none is cut."""

from __future__ import annotations

import json

import orjson
import pytest

from contam.config import Settings
from contam.server.checks.answers import answer_of
from contam.server.checks.asking import items_of
from contam.server.checks.evidence import EvidenceReader
from contam.server.indexes.registry import IndexRegistry
from contam.server.problems.failures import RequestError
from contam.server.schemas.check import CheckRequest
from tests.server.running import serving

MOST = 30_000
LINES = {"Accept": "application/x-ndjson"}


@pytest.fixture(scope="module")
def small_answers(small_index, tmp_path_factory):
    """A client of a service that gives small answers."""
    flags = ("--max-answer-bytes", str(MOST))
    data = tmp_path_factory.mktemp("small-answers")
    with serving(small_index, data=data, flags=flags) as running, running.client() as client:
        yield client


@pytest.mark.slow
def test_an_answer_beyond_the_limit_is_refused_and_lines_give_all_of_it(
    small_answers, client, fixture_items
):
    asked = {"items": fixture_items, "policies": ["contam", "tulu3-50"]}
    whole = client.post("/v1/check", json=asked).content
    assert len(whole) > MOST
    reply = small_answers.post("/v1/check", json=asked)
    assert (reply.status_code, reply.json()["code"]) == (413, "answer-too-large")
    assert "application/x-ndjson" in reply.json()["hint"]
    lines = small_answers.post("/v1/check", json=asked, headers=LINES).content.splitlines()
    assert max(map(len, lines)) <= MOST
    *verdicts, rest = map(json.loads, lines)
    assert {"verdicts": verdicts, **rest} == json.loads(whole)


@pytest.mark.slow
def test_a_line_beyond_the_limit_is_refused_before_the_first_is_sent(
    small_answers, client, fixture_items
):
    asked = {"items": fixture_items[:3], "options": {"context": 20_000}}
    lines = client.post("/v1/check", json=asked, headers=LINES).content.splitlines()
    assert max(map(len, lines)) > MOST
    reply = small_answers.post("/v1/check", json=asked, headers=LINES)
    assert (reply.status_code, reply.json()["code"]) == (413, "answer-too-large")


def test_an_answer_of_just_the_limit_is_given(small_index, fixture_items, client):
    asked = {"items": fixture_items[:2]}
    reply = client.post("/v1/check", json=asked)
    n = len(reply.content)
    registry = IndexRegistry.open(Settings(index=(str(small_index),)))
    with registry.snapshot() as snapshot:
        request = CheckRequest.model_validate_json(json.dumps(asked))
        result = snapshot.reader.check(items_of(request), policies=["contam"])
        answer = answer_of(result, snapshot, request.options)
        assert json.loads(answer.as_json(n)) == reply.json()
        with pytest.raises(RequestError, match="more than"):
            answer.as_json(n - 1)


@pytest.mark.parametrize("context", [0, 40])
def test_what_evidence_may_take_is_known_before_it_is_made(small_index, fixture_items, context):
    asked = {"items": fixture_items, "options": {"context": context}}
    request = CheckRequest.model_validate_json(json.dumps(asked))
    registry = IndexRegistry.open(Settings(index=(str(small_index),)))
    with registry.snapshot() as snapshot:
        result = snapshot.reader.check(items_of(request), policies=["contam"])
        evidence = EvidenceReader(result, snapshot, request.options)
        made = list(evidence.by_item())
        assert made == [evidence.of(at) for at in range(len(made))]
        sizes = [len(orjson.dumps(rows)) if rows else 0 for rows in made]
        most = list(evidence.most_bytes())
        assert all(size <= bound for size, bound in zip(sizes, most, strict=True))
