"""Bound request bodies: size, compression, nesting and time.

Small bodies are read whole before any handler sees the request. Uploads of jobs pass through
unpacked, piece by piece, and are cut off at their bounds.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.files.compression import DamagedError, Unpacker
from contam.server.problems.failures import RequestError
from contam.server.problems.spelling import utf8_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from contam.config import Settings
    from contam.server.metrics import Metrics


ENCODINGS: Final = ("gzip", "zstd")
"""Values of Content-Encoding that are understood."""

_PIECE: Final = 1 << 18
_WINDOW: Final = 1 << 23
"""Bytes of window a zstd body may ask for, as RFC 9659 has it for HTTP."""
#: Blocks of zstd unpack to 128 KiB at most, so feeding few bytes bounds what comes.
_STEP: Final = 64


def unpacker(encoding: str) -> Unpacker:
    """An unpacker for one body of one of ENCODINGS: gzip members, or one zstd frame."""
    return Unpacker(
        encoding, piece_bytes=_PIECE, window=_WINDOW, step=_STEP, single=encoding == "zstd"
    )


STREAMED: Final = ("/v1/jobs", "/v1/rescore")
"""Paths whose bodies, unless they are JSON, go to the handler as they come."""

_LEAST_BYTES_PER_S: Final = 1024
_ON_THE_LOOP: Final = 1 << 16
_HELD_BODIES: Final = 16
"""Largest bodies that are kept in memory at once, all callers together."""


class ClientGoneError(Exception):
    """The client left before its request was whole; nobody is there to answer."""


class BodyGuard:
    """Middleware that hands on requests whose bodies keep to the limits, already unpacked."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; raises RequestError 400, 408, 413, 415 or 503, ClientGoneError."""
        body = _Announced(scope)
        if not body.is_there:
            await self._app(scope, receive, send)
            return
        streams = scope["path"].rstrip("/") in STREAMED and not body.is_json
        settings = self._settings
        limit = settings.max_upload_bytes if streams else settings.max_body_bytes
        if body.length is not None and body.length > limit:
            raise _too_large(limit, "as sent")
        arriving = self._arriving(receive, limit)
        if streams:
            await self._stream(scope, body, arriving, send)
        else:
            await self._hold(scope, body, arriving, receive, send)

    async def _hold(
        self,
        scope: Scope,
        body: _Announced,
        arriving: AsyncIterator[bytes],
        receive: Receive,
        send: Send,
    ) -> None:
        held = 0
        try:
            pieces = []
            async for piece in arriving:
                if self._held + len(piece) > _HELD_BODIES * self._settings.max_body_bytes:
                    raise RequestError(
                        503, "too much is being read already", code="busy",
                        hint="ask again after Retry-After seconds", headers={"Retry-After": "1"},
                    )  # fmt: skip
                self._held += len(piece)
                held += len(piece)
                pieces.append(piece)
            content = b"".join(pieces)
            if body.encoding or len(content) > _ON_THE_LOOP:
                content = await asyncio.to_thread(self._checked, content, body)
            else:
                content = self._checked(content, body)
            body.is_unpacked(len(content))
            given = False

            async def replay() -> Message:
                nonlocal given
                if given:
                    return await receive()
                given = True
                return {"type": "http.request", "body": content, "more_body": False}

            await self._app(scope, replay, send)
        finally:
            self._held -= held

    def _checked(self, content: bytes, body: _Announced) -> bytes:
        if body.encoding:
            limit, pieces, n_bytes = self._settings.max_body_bytes, [], 0
            unpack = unpacker(body.encoding)
            try:
                for piece in unpack.feed(content):
                    n_bytes += len(piece)
                    if n_bytes > limit:
                        raise _too_large(limit, "unpacked")
                    pieces.append(piece)
                unpack.finish()
            except DamagedError:
                raise _damaged(body.encoding) from None
            content = b"".join(pieces)
        if body.is_json or not body.media_type:
            content = utf8_json(content)
            if nests_deeper(content, self._settings.max_json_depth):
                raise RequestError(
                    400, f"the JSON nests deeper than {self._settings.max_json_depth}",
                    code="too-deep",
                )  # fmt: skip
        return content

    async def _stream(
        self, scope: Scope, body: _Announced, arriving: AsyncIterator[bytes], send: Send
    ) -> None:
        pieces = self._unpacked(arriving, body.encoding)
        body.is_unpacked(None)
        failure: Exception | None = None
        started = over = False

        async def receive() -> Message:
            nonlocal failure, over
            if failure is not None:
                raise failure
            if over:
                return {"type": "http.disconnect"}
            try:
                return {"type": "http.request", "body": await anext(pieces), "more_body": True}
            except StopAsyncIteration:
                over = True
                return {"type": "http.request", "body": b"", "more_body": False}
            except (RequestError, ClientGoneError) as error:
                failure = error
                raise

        async def answer(message: Message) -> None:
            nonlocal started
            # The framework may have made another failure of it; the sender gets the true one.
            if failure is None or started:
                started = True
                await send(message)

        await self._app(scope, receive, answer)
        if failure is not None and not started:
            raise failure

    async def _unpacked(
        self, arriving: AsyncIterator[bytes], encoding: str
    ) -> AsyncIterator[bytes]:
        limit, n_bytes = self._settings.max_unpacked_bytes, 0
        unpack = unpacker(encoding) if encoding else None
        try:
            async for packed in arriving:
                for piece in unpack.feed(packed) if unpack else (packed,):
                    n_bytes += len(piece)
                    if n_bytes > limit:
                        raise _too_large(limit, "unpacked")
                    yield piece
            if unpack:
                unpack.finish()
        except DamagedError:
            raise _damaged(encoding) from None

    async def _arriving(self, receive: Receive, limit: int) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        began_s, n_bytes, more = clock(), 0, True
        while more:
            until_s = began_s + self._settings.client_timeout_s + n_bytes / _LEAST_BYTES_PER_S
            try:
                async with asyncio.timeout_at(until_s):
                    message = await receive()
            except TimeoutError:
                raise RequestError(
                    408, "the body arrives too slowly", code="too-slow",
                    headers={"Connection": "close"},
                ) from None  # fmt: skip
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            piece = message.get("body", b"")
            n_bytes += len(piece)
            self._metrics.body_bytes.inc(len(piece))
            if n_bytes > limit:
                raise _too_large(limit, "as sent")
            more = message.get("more_body", False)
            if piece:
                # Time that a handler takes to use a piece is not the sender's.
                paused_s = clock()
                yield piece
                began_s += clock() - paused_s


class _Announced:
    """What the headers say of a body."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.length: int | None = None
        self.encoding = self.media_type = ""
        self.is_there = False
        for name, value in scope.get("headers", ()):
            if name == b"content-length":
                self.length = int(value)
                self.is_there = self.is_there or self.length > 0
            elif name == b"transfer-encoding":
                self.is_there = True
            elif name == b"content-encoding":
                self._take_encoding(value.decode("latin-1").strip().lower())
            elif name == b"content-type":
                self.media_type = value.partition(b";")[0].strip().lower().decode("latin-1")
        self.is_json = self.media_type == "application/json" or self.media_type.endswith("+json")

    def _take_encoding(self, value: str) -> None:
        value = {"identity": "", "x-gzip": "gzip"}.get(value, value)
        if value and (value not in ENCODINGS or self.encoding):
            raise RequestError(
                415, "the body has a Content-Encoding that is not taken", code="encoding",
                hint=f"one of: {', '.join(ENCODINGS)}, or none",
                headers={"Accept-Encoding": ", ".join(ENCODINGS)},
            )  # fmt: skip
        self.encoding = value

    def is_unpacked(self, length: int | None) -> None:
        """Make the headers describe the body as the handler will see it."""
        gone = {b"content-encoding", b"content-length", b"transfer-encoding"}
        headers: list[tuple[bytes, bytes]] = [
            pair for pair in self._scope["headers"] if pair[0] not in gone
        ]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        self._scope["headers"] = headers


def _too_large(limit: int, how: str) -> RequestError:
    return RequestError(
        413, f"the body has more than {limit} bytes {how}",
        hint="send less at once; /v1/jobs takes large uploads",
    )  # fmt: skip


def _damaged(encoding: str) -> RequestError:
    return RequestError(400, f"the body is no whole {encoding} stream", code="damaged-body")


_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_STRUCTURE: Final = bytes(set(range(256)) - set(b"[]{}"))


def nests_deeper(text: bytes, depth: int) -> bool:
    """Whether arrays and objects of a JSON text in UTF-8 are nested deeper than `depth`.

    A text that is no JSON gets an answer too; its parser will refuse it.
    """
    if text.count(b"[") + text.count(b"{") <= depth:
        return False
    structure = np.frombuffer(_STRING.sub(b"", text).translate(None, _NO_STRUCTURE), np.uint8)
    opens = (structure == ord("[")) | (structure == ord("{"))
    steps = np.where(opens, np.int8(1), np.int8(-1))
    return bool(np.cumsum(steps, dtype=np.int32).max(initial=0) > depth)
