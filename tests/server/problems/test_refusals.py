"""What a check refuses: each with a problem document that never quotes the request."""

from __future__ import annotations

import json

import pytest

ITEM = {"id": "a", "question": "zanzibar zeppelin zircon"}

REFUSED = [
    ({}, 422, "invalid"),
    ({"items": []}, 422, "invalid"),
    ({"items": [ITEM], "text": "both"}, 422, "invalid"),
    ({"items": [{"id": "a"}]}, 422, "invalid"),
    ({"items": [{**ITEM, "secret_zanzibar": 1, "options": "zanzibar"}]}, 422, "invalid"),
    ({"items": [{**ITEM, "context": ["zanzibar", 1]}]}, 422, "invalid"),
    ({"items": [{**ITEM, "answer": {"zanzibar": "zanzibar"}}]}, 422, "invalid"),
    ({"items": [{**ITEM, "id": 3.5}]}, 422, "invalid"),
    ({"items": [ITEM, ITEM]}, 422, "usage"),
    ({"items": [ITEM], "index": "zanzibar"}, 404, "no-index"),
    ({"items": [ITEM], "index": "../zanzibar"}, 404, "no-index"),
    ({"items": [ITEM], "index": []}, 422, "invalid"),
    ({"items": [ITEM], "policies": ["zanzibar.toml"]}, 422, "policy"),
    ({"items": [ITEM], "policies": ["contam", "contam"]}, 422, "policy"),
    ({"items": [ITEM], "policies": ["igmini-50"]}, 422, "index-mismatch"),
    ({"items": [{**ITEM, "id": str(n)} for n in range(257)]}, 413, "too-large"),
    ({"text": "zanzibar " * 30_000}, 413, "too-large"),
    ({"items": [ITEM], "options": {"max_evidence": 101}}, 413, "too-large"),
    ({"items": [ITEM], "options": {"context": 20_001}}, 413, "too-large"),
    ({"items": [ITEM], "options": {"max_evidence": 0}}, 422, "invalid"),
]


@pytest.mark.parametrize(("asked", "status", "code"), REFUSED)
def test_a_request_that_does_not_fit_is_a_problem_and_is_not_quoted(client, asked, status, code):
    reply = client.post("/v1/check", json=asked)
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert (reply.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem["hint"]
    assert problem["detail"]
    assert "zanzibar" not in reply.text


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"items": [', "application/json", 400),
        (b"\xef\xbb\xbf", "application/json", 400),
        (b"", "application/json", 400),
        (b"[]", "application/json", 422),
        (b'{"text": "\\ud800"}', "application/json", 422),
        (b'{"text": "\\udc00 \\ud83d"}', "application/json", 422),
        (b"{}", "text/plain", 415),
        (b'{"text": NaN}', "application/json", 422),
    ],
)
def test_a_body_that_is_no_json_text_is_refused(client, body, kind, status):
    reply = client.post("/v1/check", content=body, headers={"content-type": kind})
    assert reply.status_code == status
    assert reply.json()["hint"]


@pytest.mark.parametrize(
    "body",
    [
        '{"text": "zanzibar \u00e9"}'.encode("latin-1"),
        '{"text": "zanzibar"}'.encode("utf-16"),
        '{"text": "zanzibar"}'.encode("utf-16-le"),
        b'{"text": "zanzibar \xed\xa0\xbd"}',
        b"\xff\xfe",
    ],
)
def test_a_body_that_is_not_utf_8_is_named_as_that(client, body):
    headers = {"content-type": "application/json"}
    for said in (
        client.post("/v1/check", content=body, headers=headers),
        client.post("/v1/jobs", files={"job": (None, body, "application/json")}),
    ):
        assert (said.status_code, said.json()["code"]) == (400, "not-utf-8")
        assert "UTF-8" in said.json()["hint"]
        assert "zanzibar" not in said.text


def test_a_mark_of_byte_order_before_a_body_is_passed_over(client):
    body = b"\xef\xbb\xbf" + json.dumps({"items": [ITEM]}).encode()
    headers = {"content-type": "application/json"}
    marked, plain = (
        client.post("/v1/check", content=one, headers=headers) for one in (body, body[3:])
    )
    assert marked.status_code == 200
    assert marked.content == plain.content
    # A job's request is read further: what is missing is its file of items.
    sent = b'\xef\xbb\xbf{"kind": "check"}'
    said = client.post("/v1/jobs", files={"job": (None, sent, "application/json")})
    assert (said.status_code, said.json()["code"]) == (422, "upload")


def test_what_is_no_json_is_told_by_its_line_and_column(client):
    body = b'{"text": "zanzibar",\n "policies" ["contam"]}'
    said = client.post("/v1/check", content=body, headers={"content-type": "application/json"})
    assert said.status_code == 400
    assert said.json()["detail"] == "the body is not valid JSON, from line 2, column 13 on"
    assert "zanzibar" not in said.text


def test_a_text_that_is_too_long_is_called_a_text(client):
    said = client.post("/v1/check", json={"text": "zanzibar " * 30_000})
    assert said.json()["detail"] == "the text has 270000 characters, and 200000 is the most"


def test_half_a_surrogate_pair_is_named_as_that(client):
    """ASCII to every other check, and no text that could be searched for."""
    body = b'{"items": [{"id": "1", "question": "zanzibar \\ud83d zeppelin"}]}'
    reply = client.post("/v1/check", content=body, headers={"content-type": "application/json"})
    problem = reply.json()
    assert (reply.status_code, problem["code"]) == (422, "surrogate")
    assert "surrogate" in problem["detail"]
    assert "both halves" in problem["hint"]
    assert "zanzibar" not in reply.text
    whole = client.post("/v1/check", content=body.replace(b"\\ud83d", b"\\ud83d\\ude00"))
    assert whole.status_code == 200


@pytest.mark.parametrize("path", ["/v1/check", "/v1/jobs", "/v1/rescore"])
def test_what_is_asked_in_the_address_is_refused_and_not_passed_over(client, path):
    reply = client.post(path, params={"index": "zanzibar"}, json={"items": [ITEM]})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid")
    assert "in the body" in reply.json()["hint"]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"items": [ONE], "items": [ONE]}', "items"),
        (
            '{"items": [{"id": "1", "question": "zanzibar", "question": "other"}]}',
            "items.0.question",
        ),
        ('{"items": [ONE, {"id": "1", "id": "2", "question": "zanzibar"}]}', "items.1.id"),
        (
            '{"items": [ONE], "options": {"evidence": true, "e\\u0076idence": false}}',
            "options.evidence",
        ),
    ],
)
def test_a_field_that_stands_twice_is_refused_and_its_place_told(client, body, place):
    one = json.dumps({**ITEM, "id": "0"})
    headers = {"content-type": "application/json"}
    reply = client.post("/v1/check", content=body.replace("ONE", one), headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (422, "doubled-field")
    assert reply.json()["detail"].endswith(f": {place}")
    assert "zanzibar" not in reply.text


def test_a_field_that_stands_twice_in_a_row_of_scores_is_not_named(client):
    verdicts = '"inline": {"verdicts": [{}], "coverage": {}}'
    body = f'{{{verdicts}, "scores": [{{"id": "1", "zanzibar": 1, "zanzibar": 0}}]}}'
    headers = {"content-type": "application/json"}
    reply = client.post("/v1/rescore", content=body, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (422, "doubled-field")
    assert reply.json()["detail"].endswith(": scores.0.?")


def test_unknown_addresses_and_methods_are_problems_too(client):
    for method, path, status in (
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/check", 405),
        ("GET", "/v1/indexes/nowhere", 404),
        ("GET", "/v1/policies/nothing", 404),
        ("POST", "/v1/indexes/nowhere/reload", 404),
    ):
        reply = client.request(method, path)
        assert (reply.status_code, reply.json()["status"]) == (status, status)


def test_policies_and_indexes_describe_themselves(client, small_index):
    policies = client.get("/v1/policies").json()["policies"]
    assert policies[0]["id"] == "contam"
    preset = next(policy["id"] for policy in policies if ":" in policy["id"])
    assert client.get(f"/v1/policies/{preset}").json() in policies
    (index,) = client.get("/v1/indexes").json()["indexes"]
    reply = client.get("/v1/indexes/small")
    assert reply.json() == index
    assert reply.headers["etag"] == f'"{index["state"]}"'
    assert (index["n_documents"], index["guarantee_tokens"]) == (384, 8)
    assert index["dates"] == ["2017-03-13", "2023-09-15"]
    # Where things lie on the server is nobody's business.
    assert str(small_index.parent) not in json.dumps(index)


def test_a_method_that_is_not_offered_is_answered_with_all_that_are(client):
    for path, methods in (("/v1/jobs", "GET, POST"), ("/v1/jobs/0", "DELETE, GET")):
        reply = client.put(path)
        assert (reply.status_code, reply.headers["allow"]) == (405, methods)
