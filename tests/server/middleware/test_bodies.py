"""What a request may bring: bytes, packed bytes, nesting, slowness; and how much of it."""

from __future__ import annotations

import contextlib
import gzip
import json
import select
import threading
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from contam.server.middleware.body import nests_deeper
from contam.server.middleware.limits import Limits
from contam.server.problems.failures import RequestError
from tests.server.middleware.guarded import guarded
from tests.waiting import HANG_S, wait_until

LIMIT = 100_000
JSON = {"Content-Type": "application/json"}


BOUNDS = {
    "max_body_bytes": LIMIT,
    "max_upload_bytes": 2 * LIMIT,
    "max_unpacked_bytes": 8 * LIMIT,
    "max_json_depth": 8,
    "max_concurrent": 4,
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with guarded(tmp_path_factory.mktemp("data"), **BOUNDS, client_timeout_s=HANG_S) as one:
        yield one


@pytest.fixture
def hasty(tmp_path):
    """A service that soon gives up clients who keep it waiting; the log is its own meanwhile."""
    with guarded(tmp_path, **BOUNDS, client_timeout_s=1.0) as one:
        yield one


@pytest.fixture
def client(running):
    with running.client() as one:
        yield one


def code_of(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


def chunked(content, size=1000):
    for start in range(0, len(content), size):
        yield content[start : start + size]


def test_a_body_of_the_limit_passes_and_one_byte_more_does_not(client):
    for content in (lambda n: b"x" * n, lambda n: chunked(b"x" * n)):
        assert client.post("/v1/echo", content=content(LIMIT)).json()["n_bytes"] == LIMIT
        assert code_of(client.post("/v1/echo", content=content(LIMIT + 1))) == (413, "too-large")


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)]
)
def test_a_packed_body_is_unpacked_up_to_the_limit(client, encoding, pack):
    headers = {"Content-Encoding": encoding}
    for n_bytes, known in ((LIMIT, 200), (LIMIT + 1, 413), (100 * LIMIT, 413)):
        answer = client.post("/v1/echo", content=pack(b"x" * n_bytes), headers=headers)
        assert answer.status_code == known
        if known == 200:
            assert answer.json() == {"n_bytes": n_bytes, "encoding": ""}
    for broken in (pack(b"x" * 5000)[:-3], b"garbage", pack(b"x") + b"more"):
        answer = client.post("/v1/echo", content=broken, headers=headers)
        assert code_of(answer) == (400, "damaged-body")


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)]
)
def test_an_upload_is_unpacked_as_it_comes_up_to_its_own_limits(client, encoding, pack):
    for n_bytes, known in ((8 * LIMIT, 200), (8 * LIMIT + 1, 413), (200 * LIMIT, 413)):
        content = chunked(pack(b"x" * n_bytes))
        answer = client.post("/v1/jobs", content=content, headers={"Content-Encoding": encoding})
        assert answer.status_code == known
    assert client.post("/v1/jobs", content=b"x" * 2 * LIMIT).json() == {"n_bytes": 2 * LIMIT}
    answer = client.post("/v1/jobs", content=chunked(b"x" * (2 * LIMIT + 1)))
    assert code_of(answer) == (413, "too-large")


def test_an_upload_in_a_form_that_is_too_large_says_so(client):
    files = {"file": b"x" * (3 * LIMIT)}
    assert client.post("/v1/rescore", files={"file": b"x" * LIMIT}).json() == {"n_bytes": LIMIT}
    assert code_of(client.post("/v1/rescore", files=files)) == (413, "too-large")
    packed = gzip.compress(b"x" * 50 * LIMIT)
    headers = {"Content-Encoding": "gzip", "Content-Type": "multipart/form-data; boundary=x"}
    answer = client.post("/v1/rescore", content=chunked(packed), headers=headers)
    assert answer.status_code in {400, 413}


def test_json_for_a_job_is_held_to_the_limit_of_json(client):
    content = b"[" + b" " * LIMIT + b"]"
    assert code_of(client.post("/v1/jobs", content=content, headers=JSON)) == (413, "too-large")


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "compress"])
def test_other_encodings_are_refused_by_name(client, encoding):
    answer = client.post("/v1/echo", content=b"x", headers={"Content-Encoding": encoding})
    assert code_of(answer) == (415, "encoding")
    assert answer.headers["accept-encoding"] == "gzip, zstd"


def test_json_may_nest_as_deep_as_the_limit(client):
    def nested(depth):
        return b'{"a":' * depth + b"1" + b"}" * depth

    assert client.post("/v1/json", content=nested(8), headers=JSON).status_code == 200
    for content in (nested(9), b'{"a":' + b"[" * 50_000, nested(9).decode().encode("utf-16")):
        answer = client.post("/v1/json", content=content, headers=JSON)
        assert code_of(answer)[1] in {"too-deep", "not-utf-8"}
    brackets_in_text = json.dumps({"a": '"[{' * 1000}).encode()
    assert client.post("/v1/json", content=brackets_in_text, headers=JSON).status_code == 200


values = st.recursive(
    st.none() | st.text(alphabet='[]{}"\\ax\n\u5b5b'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\'), inner, max_size=3)
    ),
    max_leaves=20,
)


def depth_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@given(values, st.booleans())
def test_the_depth_of_json_is_told_without_parsing_it(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    depth = depth_of(value)
    assert not nests_deeper(text, depth)
    assert depth == 0 or nests_deeper(text, depth - 1)


@given(st.binary() | st.text('[]{}"\\').map(str.encode))
def test_the_depth_of_anything_is_told(content):
    nests_deeper(content, 1)


@pytest.mark.parametrize(
    ("content", "deeper"),
    [
        (b'\\"' * 500_000, False),
        (b'"",' * 300_000 + b"[" * 9, True),
        (b"[" * 10**6, True),
        (b"[]," * 300_000, False),
    ],
)
def test_the_depth_of_a_megabyte_is_told(content, deeper):
    # In quadratic time it would take hours.
    assert nests_deeper(content, 8) == deeper


def test_no_more_bodies_are_kept_in_memory_than_there_is_room_for(tmp_path):
    head = b"POST /v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
    with guarded(tmp_path, max_body_bytes=LIMIT) as running, running.client() as client:
        read = running.state.metrics.body_bytes._value.get
        with contextlib.ExitStack() as stack:
            for _ in range(16):
                stack.enter_context(running.raw()).sendall(head + b"x" * 99_000)
            wait_until(lambda: read() == 16 * 99_000)
            assert code_of(client.post("/v1/echo", content=b"x" * LIMIT)) == (503, "busy")
        wait_until(lambda: client.post("/v1/echo", content=b"x" * LIMIT).status_code == 200)


def test_a_head_that_does_not_end_is_not_waited_for(hasty):
    with hasty.raw() as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHo")
        assert connection.recv(10) == b""


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(hasty):
    def trickle(connection):
        for _ in range(3000):
            connection.sendall(b"G")
            select.select([connection], [], [], 0.05)

    with hasty.raw() as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
        assert connection.recv(4000)
        with pytest.raises(OSError, match=r"(?i)reset|pipe"):
            trickle(connection)


def test_a_body_that_does_not_come_is_not_waited_for(hasty):
    with hasty.raw() as connection:
        connection.sendall(
            b"POST /v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nabc"
        )
        assert connection.recv(4000).startswith(b"HTTP/1.1 408 ")


def test_a_body_that_trickles_is_not_waited_for(hasty):
    with hasty.raw() as connection:
        connection.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90000\r\n\r\n"
        )
        while not select.select([connection], [], [], 0.05)[0]:
            connection.sendall(b"x")
        assert connection.recv(4000).startswith(b"HTTP/1.1 408 ")


def test_an_answer_that_nobody_takes_is_given_up(hasty):
    metrics = hasty.state.metrics
    before = metrics.requests_running._value.get()
    with hasty.raw() as connection:
        connection.sendall(b"GET /v1/endless HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        wait_until(lambda: metrics.requests_running._value.get() == before + 1)
        wait_until(lambda: metrics.requests_running._value.get() == before)


def test_a_client_that_leaves_in_its_body_is_noted_and_nothing_more(running, client):
    with running.raw() as connection:
        connection.sendall(
            b"POST /v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-ID: leaver\r\n"
            b"Content-Length: 900\r\n\r\nabc"
        )
    wait_until(lambda: any(line.get("request_id") == "leaver" for line in running.lines()))
    (line,) = [line for line in running.lines() if line.get("request_id") == "leaver"]
    assert (line["status"], line["level"]) == (499, "info")
    assert client.post("/v1/echo", content=b"x").status_code == 200


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
        b"X-Large: " + b"x" * 200_000 + b"\r\n",
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


def test_only_so_many_requests_of_a_key_are_worked_on_at_once(running):
    running.hold.clear()
    with running.client() as client:
        threads = [threading.Thread(target=client.get, args=(f"/v1/hold/{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert running.held.acquire(timeout=HANG_S)
        answer = client.post("/v1/echo", content=b"x")
        assert code_of(answer) == (429, "concurrency-limit")
        assert int(answer.headers["retry-after"]) >= 1
        running.hold.set()
        for thread in threads:
            thread.join()
        assert client.post("/v1/echo", content=b"x").status_code == 200


def test_the_limits_of_a_minute_are_told_and_kept(tmp_path):
    with guarded(tmp_path, rate_per_minute=3) as running, running.client() as client:
        for left in (2, 1, 0):
            answer = client.post("/v1/echo", content=b"x")
            assert answer.status_code == 200
            assert answer.headers["ratelimit-policy"] == '"minute";q=3;w=60'
            assert answer.headers["ratelimit"].startswith(f'"minute";r={left};t=')
        answer = client.post("/v1/echo", content=b"x")
        assert code_of(answer) == (429, "rate-limit")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert client.get("/livez").status_code == 200


@given(st.lists(st.floats(0, 20), max_size=60), st.integers(1, 5))
def test_no_sixty_seconds_see_more_than_the_limit(pauses, rate):
    now, admitted = 0.0, []
    limits = Limits(rate, 100, clock=lambda: now)
    for pause in pauses:
        now += pause
        try:
            limits.enter("a")
        except RequestError as error:
            # Who waits as told is let in.
            now += int(error.headers["Retry-After"])
            limits.enter("a")
        limits.leave("a")
        limits.enter("another") if len(admitted) == 0 else None
        admitted.append(now)
    for first, last in zip(admitted, admitted[rate:], strict=False):
        assert int(last) - int(first) >= 60


def test_deflated_members_and_empty_ones_unpack_whole():
    from contam.server.middleware.body import unpacker

    packed = gzip.compress(b"one") + gzip.compress(b"") + gzip.compress(b"two" * 200_000)
    for size in (1, 7, len(packed)):
        unpack = unpacker("gzip")
        out = b"".join(p for piece in chunked(packed, size) for p in unpack.feed(piece))
        unpack.finish()
        assert zlib.crc32(out) == zlib.crc32(b"one" + b"two" * 200_000)
