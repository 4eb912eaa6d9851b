"""Servers on loopback that answer as object stores do, and fail on order.

A test adds a `Fault`: what to do to the requests that it fits, how often, and after how many. All
else is answered as the real ones do: ranges, tags, pages.
"""

from __future__ import annotations

import hashlib
import io
import re
import socket
import struct
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.waiting import HANG_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from ssl import SSLContext

#: Times of last writes: objects are as old as their number of writes.
_EPOCH = 1_700_000_000


@dataclass
class Content:
    """Bytes with what a store says of them."""

    data: bytes
    etag: str
    modified: int = _EPOCH


@dataclass
class Request:
    """A request as a fault looks at it; `number` counts those that the fault fits, from 1."""

    method: str
    path: str
    query: dict[str, str]
    range: tuple[int, int] | None
    headers: dict[str, str]
    number: int = 0


@dataclass
class Fault:
    """What to do to requests.

    do      "500", "503", "403", "expired" (a status), "reset" (before an answer), "reset body",
            "cut body" (an end before the stated length), "stall", or a function that changes the
            store before the request is answered as usual
    method  of the requests, "" for any; key: what their path contains
    ranged  only requests for ranges of bytes
    after   requests that pass first
    times   how often; None: for ever
    """

    do: str | Callable[[], None]
    method: str = "GET"
    key: str = ""
    ranged: bool = False
    after: int = 0
    times: int | None = 1
    seen: int = 0

    def fits(self, request: Request) -> bool:
        if self.method not in ("", request.method) or self.key not in request.path:
            return False
        if self.ranged and request.range is None:
            return False
        self.seen += 1
        done = self.seen - self.after
        return done > 0 and (self.times is None or done <= self.times)


class Store(ThreadingHTTPServer):
    """Contents by path, faults in order, and all requests that came."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, handler: type[Handler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.contents: dict[str, Content] = {}
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.encrypted = False
        self.with_etags = True
        self.writes: Counter[str] = Counter()
        self.buckets: set[str] = set()
        #: Unfinished uploads: the parts of each by their numbers.
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.names: dict[str, str] = {}
        #: What commits to it are called.

    @property
    def url(self) -> str:
        return f"http{'s' if self.encrypted else ''}://127.0.0.1:{self.server_address[1]}"

    def put(self, path: str, data: bytes) -> None:
        self.writes[path] += 1
        etag = hashlib.sha256(data + bytes([self.writes[path] % 256])).hexdigest()[:32]
        self.contents[path] = Content(data, etag, _EPOCH + self.writes[path])

    def fail(self, do: str | Callable[[], None], **how: object) -> Fault:
        fault = Fault(do, **how)
        self.faults.append(fault)
        return fault

    def handle_error(self, *_: object) -> None:
        """Clients that go away are what these tests are about."""


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; subclasses say what for."""

    protocol_version = "HTTP/1.1"
    # Else an answer waits for the client to acknowledge its head.
    disable_nagle_algorithm = True
    server: Store

    def do_GET(self) -> None:
        self._take()

    def do_HEAD(self) -> None:
        self._take()

    def do_POST(self) -> None:
        self._take_body()

    def do_PUT(self) -> None:
        self._take_body()

    def do_DELETE(self) -> None:
        self._take()

    def _take_body(self) -> None:
        chunked = "chunked" in (self.headers.get("Transfer-Encoding") or "")
        length = int(self.headers.get("Content-Length") or 0)
        if "100-continue" in (self.headers.get("Expect") or ""):
            self.send_response_only(100)
            self.end_headers()
        self.body = dechunked(self.rfile) if chunked else self.rfile.read(length)
        if self.headers.get("X-Amz-Decoded-Content-Length"):
            self.body = dechunked(io.BytesIO(self.body))
        self._take()

    def answer(self, request: Request) -> None:
        """Answer a request that no fault took."""
        raise NotImplementedError

    def refuse(self, status: int, code: str) -> None:
        """Answer with a failure."""
        self.send(status, code.encode())

    def _take(self) -> None:
        parts = urlsplit(self.path)
        found = re.fullmatch(
            r"bytes=(\d+)-(\d*)", self.headers.get("Range") or self.headers.get("x-ms-range") or ""
        )
        wanted = (int(found[1]), int(found[2] or 1 << 62)) if found else None
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        request = Request(self.command, unquote(parts.path), query, wanted, dict(self.headers))
        self.cut: str = ""
        with self.server.lock:
            self.server.requests.append(request)
            fault = next((fault for fault in self.server.faults if fault.fits(request)), None)
        if fault is None:
            self.answer(request)
        elif callable(fault.do):
            fault.do()
            self.answer(request)
        elif fault.do == "reset":
            self._reset()
        elif fault.do == "stall":
            # Until the test is over; the client gives up before.
            self.server.over.wait(HANG_S)
            self.close_connection = True
        elif fault.do == "expired":
            self.refuse(400, "ExpiredToken")
        elif fault.do.isdigit():
            names = {"500": "InternalError", "503": "SlowDown", "403": "AccessDenied",
                     "429": "TooManyRequests"}  # fmt: skip
            self.refuse(int(fault.do), names[fault.do])
        else:
            self.cut = fault.do
            self.answer(request)

    def send_content(self, content: Content, request: Request, **headers: str) -> None:
        """Send bytes, whole or the range that was asked for."""
        begin, end = 0, len(content.data)
        status = 200
        more = {
            "Last-Modified": formatdate(content.modified, usegmt=True),
            "Accept-Ranges": "bytes",
            **headers,
        }
        if self.server.with_etags:
            more.setdefault("ETag", f'"{content.etag}"')
        if request.range is not None:
            begin, end = request.range[0], min(request.range[1] + 1, end)
            if begin >= len(content.data):
                total = {"Content-Range": f"bytes */{len(content.data)}"}
                self.send(416, b"", **(more | total))
                return
            status = 206
            more["Content-Range"] = f"bytes {begin}-{end - 1}/{len(content.data)}"
        self.send(status, content.data[begin:end], "application/octet-stream", **more)

    def send(self, status: int, body: bytes, kind: str = "text/plain", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.cut:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if self.cut == "reset body":
                self._reset()
            else:
                self.close_connection = True
        else:
            self.wfile.write(body)

    def _reset(self) -> None:
        # Without lingering, closing sends a reset instead of an orderly end.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()

    def log_message(self, *_: object) -> None:
        """Tests read `server.requests`."""


def dechunked(file: BinaryIO) -> bytes:
    """The content of a body that comes in pieces, each behind its size in hexadecimal digits."""
    found = b""
    while size := int(file.readline().partition(b";")[0] or b"0", 16):
        found += file.read(size)
        file.readline()
    while file.readline().strip():
        """Checksums behind the last piece."""
    return found


@contextmanager
def running(handler: type[Handler], context: SSLContext | None = None) -> Iterator[Store]:
    """A store while the block runs; with a context, over https."""
    with Store(handler) as store:
        if context is not None:
            store.encrypted = True
            store.socket = context.wrap_socket(store.socket, server_side=True)
        thread = threading.Thread(target=store.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield store
        finally:
            store.over.set()
            store.shutdown()
            thread.join()
