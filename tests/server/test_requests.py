"""What a request may bring, and what is refused: by a problem that never quotes it."""

import json

import pytest

from tests.server.guarded import guarded
from tests.waiting import wait_until

LIMIT = 100_000
BOUNDS = {"max_body_bytes": LIMIT, "max_upload_bytes": 2 * LIMIT}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with guarded(tmp_path_factory.mktemp("data"), **BOUNDS) as one:
        yield one


@pytest.fixture
def sender(running):
    with running.client() as one:
        yield one


def code_of(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


def chunked(content, size=1000):
    for start in range(0, len(content), size):
        yield content[start : start + size]


def test_a_body_of_the_limit_passes_and_one_byte_more_does_not(sender):
    for content in (lambda n: b"x" * n, lambda n: chunked(b"x" * n)):
        assert sender.post("/v1/echo", content=content(LIMIT)).json()["n_bytes"] == LIMIT
        assert code_of(sender.post("/v1/echo", content=content(LIMIT + 1))) == (413, "too-large")


def test_an_upload_has_a_limit_of_its_own(sender):
    assert sender.post("/v1/jobs", content=b"x" * 2 * LIMIT).json() == {"n_bytes": 2 * LIMIT}
    answer = sender.post("/v1/jobs", content=chunked(b"x" * (2 * LIMIT + 1)))
    assert code_of(answer) == (413, "too-large")


def test_a_client_that_leaves_in_its_body_is_noted_and_nothing_more(running, sender):
    with running.raw() as connection:
        connection.sendall(
            b"POST /v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-ID: leaver\r\n"
            b"Content-Length: 900\r\n\r\nabc"
        )
    wait_until(lambda: any(line.get("request_id") == "leaver" for line in running.lines()))
    (line,) = [line for line in running.lines() if line.get("request_id") == "leaver"]
    assert (line["status"], line["level"]) == (499, "info")
    assert sender.post("/v1/echo", content=b"x").status_code == 200


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length : 5\r\n",
        b"X: a\r\n b\x00\r\n",
    ],
)
def test_a_head_that_can_be_read_in_two_ways_is_refused(running, head):
    smuggled = b"0\r\n\r\nGET /v1/nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with running.raw() as connection:
        try:
            connection.sendall(b"POST /v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\n" + head + b"\r\n")
            connection.sendall(smuggled)
        except OSError:
            return
        answers = b""
        try:
            while piece := connection.recv(65536):
                answers += piece
        except OSError:
            assert not answers or answers.startswith(b"HTTP/1.1 4")
        assert answers.count(b"HTTP/1.1") <= 1
        assert not answers or answers.startswith(b"HTTP/1.1 4")


ITEM = {"id": "a", "question": "zanzibar zeppelin zircon"}

REFUSED = [
    ({}, 422, "invalid"),
    ({"items": []}, 422, "invalid"),
    ({"items": [ITEM], "text": "both"}, 422, "invalid"),
    ({"items": [{"id": "a"}]}, 422, "invalid"),
    ({"items": [{**ITEM, "secret_zanzibar": 1, "options": "zanzibar"}]}, 422, "invalid"),
    ({"items": [{**ITEM, "question": {"zanzibar": 1}}]}, 422, "invalid"),
    ({"items": [{**ITEM, "choices": {"zanzibar": {}}}]}, 422, "invalid"),
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
    ({"items": [ITEM], "options": {"max_evidence": 101}}, 422, "invalid"),
    ({"items": [ITEM], "options": {"context": 20_001}}, 422, "invalid"),
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
    ("body", "status"),
    [
        (b'{"items": [', 400),
        (b"\xef\xbb\xbf", 400),
        (b"", 400),
        (b'{"text": "zanzibar \xff"}', 400),
        ('{"text": "zanzibar"}'.encode("utf-16"), 400),
        (b'{"items":' + b"[" * 50_000, 400),
        (b'{"items": [{"id": 1, "question": "b", "more": ' + b"[" * 999 + b"]" * 999 + b"}]}", 400),
        (b"[]", 422),
        (b'{"text": "\\ud800"}', 400),
        (b'{"text": NaN}', 422),
    ],
)  # fmt: skip
def test_a_body_that_is_no_json_text_is_refused(client, body, status):
    reply = client.post("/v1/check", content=body)
    assert reply.status_code == status
    assert reply.json()["hint"]
    assert "zanzibar" not in reply.text


PLACES = [
    ("/v1/check", {"items": [{"id": 1}]}, ["items", 0, "question"], "missing"),
    ("/v1/check", {"items": [{**ITEM, "options": 5}]}, ["items", 0, "options"], "value_error"),
    ("/v1/check", {"items": [ITEM], "options": {"context": 1.5}}, ["options", "context"], "int_type"),
    ("/v1/check", {"items": [ITEM], "zanzibar": 1}, ["?"], "extra_forbidden"),
    ("/v1/jobs", {"kind": "zanzibar"}, [], "union_tag_invalid"),
    ("/v1/jobs", {"kind": "check", "options": {"mapping": {"zanzibar": 3}}},
     ["?", "options", "mapping", "?"], "string_type"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "asked", "place", "kind"), PLACES)
def test_what_does_not_fit_is_told_by_its_place_and_never_by_a_name_that_is_not_ours(
    client, path, asked, place, kind
):
    text = json.dumps(asked).encode()
    if path == "/v1/jobs":
        files = {"job": (None, text, "application/json"), "items": ("x", b'{"id": "a"}')}
        reply = client.post(path, files=files)
    else:
        reply = client.post(path, content=text, headers={"content-type": "application/json"})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid")
    assert (place, kind) in [(error["loc"], error["type"]) for error in reply.json()["errors"]]
    assert all(set(error) == {"loc", "type", "msg"} for error in reply.json()["errors"])
    assert "zanzibar" not in reply.text


@pytest.mark.parametrize("path", ["/v1/check", "/v1/jobs"])
def test_what_is_asked_in_the_address_is_refused_and_not_passed_over(client, path):
    reply = client.post(path, params={"index": "zanzibar"}, json={"items": [ITEM]})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid")


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
            '{"items": [{"id": "1", "question": "b", "zanzibar": {"zeppelin": 1, "zeppelin": 2}}]}',
            "items.0.?.?",
        ),
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


def test_unknown_addresses_and_methods_are_problems_too(client):
    for method, path, status in (
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/check", 405),
        ("GET", "/v1/indexes/nowhere", 404),
        ("POST", "/v1/indexes/nowhere/reload", 404),
    ):
        reply = client.request(method, path)
        assert (reply.status_code, reply.json()["status"]) == (status, status)


def test_an_index_describes_itself_and_not_where_it_lies(client, small_index):
    (index,) = client.get("/v1/indexes").json()["indexes"]
    assert client.get("/v1/indexes/small").json() == index
    assert (index["n_documents"], index["guarantee_tokens"]) == (384, 5)
    assert str(small_index.parent) not in json.dumps(index)
