"""What a check answers over HTTP."""

from __future__ import annotations

import json

import contam
from contam.server.schemas.check import CheckAnswer


def test_a_copied_item_is_contaminated_and_the_evidence_quotes_both_sides(client, fixture_items):
    item = fixture_items[0]
    asked = {"index": "small", "items": [item], "options": {"context": 12}}
    reply = client.post("/v1/check", json=asked)
    assert reply.status_code == 200
    answer = reply.json()
    CheckAnswer.model_validate_json(reply.content, strict=True)
    (verdict,) = answer["verdicts"]
    assert (verdict["item_id"], verdict["label"]) == (item["id"], "contaminated")
    first = verdict["evidence"][0]
    assert first["item_text"] == item["question"][first["item_start"] : first["item_end"]]
    assert first["document_text"] == first["item_text"]
    assert len(first["before"]) == len(first["after"]) == 12
    assert answer["index"] == ["small"]
    assert answer["guarantee_tokens"] == 8
    assert answer["coverage"]["complete"] is True
    assert reply.headers["etag"] == f'"{answer["states"][0]}"'


def test_the_service_says_what_a_query_says(client, fixture_items, small_index, bench_fixtures):
    result = contam.query(small_index, bench_fixtures / "items" / "brook_math.jsonl")
    reply = client.post("/v1/check", json={"items": fixture_items})
    verdicts = reply.json()["verdicts"]
    evidence = result.evidence.to_pylist()
    assert len(verdicts) == len(fixture_items)
    for mine, theirs in zip(verdicts, result, strict=True):
        runs = mine.pop("evidence")
        assert mine == theirs.to_dict()
        known = [one for one in evidence if one["item_id"] == theirs.item_id]
        assert len(runs) == len(known)
        for run, other in zip(runs, known, strict=True):
            names = {name: mine[name] for name in ("benchmark", "split", "item_id")}
            assert {name: {**names, **run}[name] for name in other} == other


def test_lines_hold_what_one_answer_holds(client, fixture_items):
    asked = {"items": fixture_items[:5]}
    whole = client.post("/v1/check", json=asked).json()
    reply = client.post("/v1/check", json=asked, headers={"Accept": "application/x-ndjson"})
    assert reply.headers["content-type"] == "application/x-ndjson"
    *verdicts, rest = map(json.loads, reply.text.splitlines())
    assert {"verdicts": verdicts, **rest} == whole
