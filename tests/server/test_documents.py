"""The text around a span, for review."""

from __future__ import annotations

import json
import shutil
from urllib.parse import quote

import pytest

from contam.index.build import build
from tests.server.running import serving
from tests.unit.detect.indexes import WORDS, retire


@pytest.fixture(scope="module")
def found(client, fixture_items):
    answer = client.post("/v1/check", json={"items": fixture_items[:1]}).json()
    return answer["verdicts"][0]["evidence"][0]


def test_a_span_of_evidence_can_be_read_with_its_surroundings(client, found):
    span = {"start": found["document_start"], "end": found["document_end"], "context": 30}
    reply = client.get(f"/v1/documents/small/{found['document_id']}", params=span)
    told = reply.json()
    assert told["text"] == found["document_text"]
    assert len(told["before"]) == len(told["after"]) == 30
    for name in ("document_id", "shard", "row", "url", "date", "source"):
        assert told[name] == found[name]
    place = {"shard": found["shard"], "row": found["row"], **span}
    assert client.get("/v1/documents/small/-", params=place).json() == told


def test_without_a_span_the_document_is_shown_from_its_beginning(client, found):
    told = client.get(f"/v1/documents/small/{found['document_id']}").json()
    assert told["text"][found["document_start"] : found["document_end"]] == found["document_text"]
    assert (told["start"], told["end"]) == (0, told["n_characters"])


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("nowhere/doc-0043", 404, "no-index"),
        ("small/no-such-document", 404, "no-document"),
        ("small/part-000.parquet:43", 404, "no-document"),
        ("small/-?shard=part-000.parquet&row=99999", 404, "no-document"),
        ("small/-?shard=..%2F..%2Fetc%2Fpasswd&row=0", 404, "no-document"),
        ("small/doc-0001?shard=part-000.parquet&row=43", 404, "no-document"),
        ("small/doc-0043?shard=part-000.parquet", 422, "invalid"),
        ("small/doc-0043?start=9&end=3", 422, "invalid"),
        ("small/doc-0043?start=-1", 422, "invalid"),
        ("small/doc-0043?start=0&end=20001", 413, "too-large"),
        ("small/doc-0043?context=20001", 413, "too-large"),
    ],
)
def test_what_cannot_be_shown_is_a_problem(client, address, status, code):
    reply = client.get(f"/v1/documents/{address}")
    assert (reply.status_code, reply.json()["code"]) == (status, code)
    assert reply.headers["content-type"] == "application/problem+json"


def test_odd_ids_are_found_and_retired_and_altered_documents_are_not_shown(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    words = "one two three four five six seven eight nine ten"
    ids = ["a/b/c", "twice", "twice", "gone", "?x=1#y", None, "é ü"]
    rows = [{"text": f"{words} {at}", **({"id": one} if one else {})} for at, one in enumerate(ids)]
    shard = corpus / "odd.jsonl"
    shard.write_text("".join(json.dumps(row) + "\n" for row in rows))
    build(corpus, tmp_path / "odd", WORDS, workers=1)
    retire(tmp_path / "odd", [("odd.jsonl", 3)])
    with (
        serving(tmp_path / "odd", data=tmp_path / "data") as service,
        service.client() as client,
    ):

        def show(document_id, **params):
            place = f"/v1/documents/odd/{quote(document_id, safe='')}"
            return client.get(place, params=params)

        for at in (0, 4, 6):
            assert show(ids[at]).json()["text"] == rows[at]["text"]
        assert client.get("/v1/documents/odd/a/b/c").json()["row"] == 0
        assert show("odd.jsonl:5").json()["text"] == rows[5]["text"]
        assert (show("twice").status_code, show("twice").json()["code"]) == (409, "ambiguous")
        assert show("twice", shard="odd.jsonl", row=2).json()["text"] == rows[2]["text"]
        assert show("gone").status_code == 404
        assert show("-", shard="odd.jsonl", row=3).status_code == 404
        other = tmp_path / "other.jsonl"
        shutil.copy(shard, other)
        other.write_bytes(other.read_bytes().replace(b"nine", b"NINE"))
        other.replace(shard)
        altered = show("a/b/c")
        assert (altered.status_code, altered.json()["code"]) == (503, "shard")
