"""The text around a span, for review."""

from __future__ import annotations

import pytest

from contam.server.middleware.keys import KeyStore


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


def test_text_around_a_match_is_for_keys_that_may_read_documents(guarded):
    store = KeyStore(guarded.data)
    _, blind = store.add("check only", ["check"])
    _, reader = store.add("reader", ["check", "read-documents"])
    with guarded.client() as client:
        body = {"text": "what did she keep", "options": {"context": 200}}

        def ask(secret, sent):
            return client.post("/v1/check", json=sent, headers={"X-API-Key": secret})

        refused = ask(blind, body)
        assert (refused.status_code, refused.json()["code"]) == (403, "scope-missing")
        assert "options.context" in refused.json()["detail"]
        assert "read-documents" in refused.json()["detail"]
        assert ask(blind, {**body, "options": {"context": 0}}).status_code == 200
        assert ask(reader, body).status_code == 200
