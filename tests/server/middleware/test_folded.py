"""A header line that goes on in the next one is refused: a proxy may have read another header."""

from __future__ import annotations

import contextlib
import json

import pytest

from tests.server.middleware.guarded import guarded

FOLDED = [
    b"Host: a\r\n b\r\n",
    b"Host: a\r\nX-Note: one\r\n two\r\n",
    b"Host: a\r\nX-Note: one\r\n\ttwo\r\nX-More: 3\r\n",
    b"Host: a\nX-Note: one\n two\n",
    b"Host: a\r\nX-API-Key: contam_\r\n 0123\r\n",
    b"Host: a\r\nContent-Length:\r\n 5\r\n",
    b"Host: a\r\nTransfer-Encoding:\r\n\tchunked\r\n",
    b"Host: a\r\nX-Note: one\r\n \r\n",
    b" Host: a\r\n",
]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with guarded(tmp_path_factory.mktemp("data")) as app:
        yield app


def answered(running, sent):
    """Status and body of the last answer to some bytes, sent in these pieces."""
    reply = b""
    # A refusal closes the connection, which resets it where a piece was still on its way.
    with running.raw() as connection, contextlib.suppress(ConnectionError):
        with contextlib.suppress(ConnectionError):
            for piece in sent:
                connection.sendall(piece)
        while part := connection.recv(1 << 16):
            reply += part
    head, _, body = reply[reply.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), head, body


@pytest.mark.parametrize("headers", FOLDED)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_folded_header_is_a_bad_request(running, headers, at_once):
    whole = b"GET /livez HTTP/1.1\r\n" + headers + b"\r\n"
    sent = [whole] if at_once else [whole[:40], whole[40:50], whole[50:]]
    status, head, body = answered(running, sent)
    assert status == 400
    assert b"application/problem+json" in head
    assert json.loads(body)["code"] == "bad-request"


def test_a_second_request_on_a_connection_is_looked_at_too(running):
    plain = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
    folded = b"GET /livez HTTP/1.1\r\nHost: a\r\nX-Note: one\r\n two\r\n\r\n"
    status, _, _ = answered(running, [plain + folded])
    assert status == 400


@pytest.mark.parametrize(
    "head",
    [
        b"Host: a\r\nX-Note:  one\t two \r\n",
        b"Host: a\nX-Note: one\n",
        b"Host: a\r\nX-Note:\r\nX-More: 1\r\n",
    ],
)
def test_heads_without_folds_are_taken_and_bodies_may_have_lines(running, head):
    last = b"Connection: close\r\n\r\n"
    assert answered(running, [b"GET /livez HTTP/1.1\r\n" + head + last])[0] == 200
    body = b'{\n  "text":\n\t"a"}'
    long = b"POST /livez HTTP/1.1\r\nContent-Length: %d\r\n" % len(body) + head + last
    assert answered(running, [long + body])[0] == 405
