"""Give every request an id, a log line, metrics and security headers.

The outermost of our layers, so that no failure leaves without a problem document, and none
reaches a log with more than its type and the places it passed.
"""

from __future__ import annotations

import re
import time
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect, Request

from contam.server import logs
from contam.server.auth import CALLER
from contam.server.problems import PROBLEM, RequestError, problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from contam.server.state import State

CONTENT_SECURITY: Final = "default-src 'none'; frame-ancestors 'none'"
"""What a browser may do with an answer that says nothing else: nothing."""

_SANE_ID: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ALWAYS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_DEFAULT_HEADERS: Final = (
    (b"content-security-policy", CONTENT_SECURITY.encode()),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_PROBES: Final = frozenset(("/livez", "/readyz", "/metrics"))
#: Problems of a service that starts or stops: nothing is wrong with it.
_WAITING: Final = frozenset(("not-ready",))
_CLIENT_GONE: Final = 499
_SERVER_ERROR: Final = 500


class AnswerBrokenError(Exception):
    """An answer that had begun cannot be finished; its connection is closed."""


class Observed:
    """Middleware that sees every request from its first to its last byte."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; raises AnswerBrokenError alone."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There is nothing here for sockets, and no limit of ours would hold for them.
            await send({"type": "websocket.close", "code": 1008})
            return
        began_s = time.perf_counter()
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        status, n_sent, broken = 0, 0, False

        async def outgoing(message: Message) -> None:
            nonlocal status, n_sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _headers(message, request_id)
            else:
                n_sent += len(message.get("body", b""))
            await send(message)

        running = self._state.metrics.requests_running
        running.inc()
        try:
            failure = await self._run(scope, receive, outgoing)
            if failure is not None and not status:
                answer = self._problem(scope, failure)
                if answer is not None:
                    await answer(scope, receive, outgoing)
            else:
                broken = failure is not None
        finally:
            running.dec()
        line = self._line(scope, request_id, status or _CLIENT_GONE)
        line["bytes_sent"] = n_sent
        seconds = time.perf_counter() - began_s
        line["duration_ms"] = round(seconds * 1e3, 3)
        self._log(line, seconds)
        if broken:
            raise AnswerBrokenError from None

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> Exception | None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered and noted
            return error
        return None

    def _problem(self, scope: Scope, error: Exception) -> ASGIApp | None:
        request = Request(scope)
        if isinstance(error, ClientDisconnect):
            return None
        if isinstance(error, RequestError):
            self._state.metrics.refused.labels(error.code).inc()
            return problem_of(request, error)
        self._state.metrics.errors.labels(type(error).__name__).inc()
        logs.log().error(
            "defect", request_id=scope["state"]["request_id"], route=_route(scope),
            fault=logs.fault(error),
        )  # fmt: skip
        return problem_of(request, error)

    def _line(self, scope: Scope, request_id: str, status: int) -> dict[str, Any]:
        caller = scope.get(CALLER)
        method = scope["method"]
        return {
            "request_id": request_id,
            "key_id": caller.key_id if caller else "",
            "method": method if method in _METHODS else "other",
            "route": _route(scope),
            "status": status,
            **({"problem": scope[PROBLEM]} if PROBLEM in scope else {}),
            **scope.get(logs.COUNTS, {}),
        }

    def _log(self, line: dict[str, Any], seconds: float) -> None:
        metrics, route = self._state.metrics, line["route"]
        metrics.requests.labels(line["method"], route, line["status"]).inc()
        metrics.duration.labels(route).observe(seconds)
        waits = line.get("problem") in _WAITING
        if route in _PROBES and (waits or line["status"] < _SERVER_ERROR):
            logs.log().debug("request", **line)
        elif line["status"] >= _SERVER_ERROR and not waits:
            logs.log().error("request", **line)
        else:
            logs.log().info("request", **line)


def _request_id(scope: Scope) -> str:
    given = [value for name, value in scope["headers"] if name == b"x-request-id"]
    if len(given) == 1 and _SANE_ID.fullmatch(given[0]):
        return str(given[0].decode("ascii"))
    return token_hex(16)


def _route(scope: Scope) -> str:
    # The path as it was asked holds names of documents and jobs; its template holds none.
    route = scope.get("route")
    return getattr(route, "path", "") or "unmatched"


def _headers(message: Message, request_id: str) -> list[tuple[bytes, bytes]]:
    headers = list(message.get("headers", ()))
    present = {name.lower() for name, _ in headers}
    headers += [pair for pair in _DEFAULT_HEADERS if pair[0] not in present]
    headers += _ALWAYS
    headers.append((b"x-request-id", request_id.encode()))
    return headers
