"""Give every request an id, a log line, metrics and security headers.

Labels of metrics are few and the operator's own, as log lines are: never anything of a request.

The outermost of our layers, so that no failure leaves without a problem document, and none
reaches a log with more than its type and the places it passed.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
import traceback
from collections import Counter as Tally
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import IO, TYPE_CHECKING, Any, Final

import orjson
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import ClientDisconnect, Request

from contam.errors import ConfigError
from contam.server.problems import CALLER, PROBLEM, RequestError, problem_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from contam.server.state import State


CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

CONTENT_SECURITY: Final = "default-src 'none'; frame-ancestors 'none'"
"""What a browser may do with an answer that says nothing else: nothing."""

_SANE_ID: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ALWAYS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
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
        request_id = scope["state"]["request_id"]
        log("error", "defect", request_id=request_id, route=_route(scope), fault=fault(error))
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
            **scope.get(COUNTS, {}),
        }

    def _log(self, line: dict[str, Any], seconds: float) -> None:
        metrics, route = self._state.metrics, line["route"]
        metrics.requests.labels(line["method"], route, line["status"]).inc()
        metrics.duration.labels(route).observe(seconds)
        waits = line.get("problem") in _WAITING
        failed = line["status"] >= _SERVER_ERROR and not waits
        log("error" if failed else "debug" if route in _PROBES else "info", "request", **line)


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


COUNTS: Final = "contam.counts"
"""Where a request's scope holds the counts that its log line will show."""

LEVELS: Final = ("debug", "info", "warning", "error")
_NUMBER: Final = {name: logging.getLevelNamesMapping()[name.upper()] for name in LEVELS}

_SPOKEN_FOR: Final = ("uvicorn", "contam")
_MAX_FRAMES: Final = 12
_OURS: Final = re.compile(r" contam\.errors\.\w+: ")
_ROOT: Final = str(Path(__file__).parents[2])
_LOGGER: Final = logging.getLogger("contam.service")
#: The attribute of a record that holds what is said besides its message.
_FIELDS: Final = "fields"


class _Lines(logging.Handler):
    """Writes records as lines of JSON; a stream that is full or gone must not fail a request."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        try:
            known = record.name.split(".")[0] in _SPOKEN_FOR
            message = " ".join(record.getMessage().split()) if known else "a library has a message"
            if message.startswith("Traceback ") and _OURS.search(message):
                # Why the service cannot start; the command says it in words.
                return
            more: dict[str, Any] = {"logger": record.name}
            if record.name == _LOGGER.name:
                more = dict(getattr(record, _FIELDS))
            if not known:
                more["place"] = f"{record.module}:{record.lineno}"
            if record.exc_info and record.exc_info[1] is not None:
                more["fault"] = fault(record.exc_info[1])
            level = next((name for name in LEVELS if record.levelno <= _NUMBER[name]), "error")
            time = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
            line = {"timestamp": time, "level": level, "event": message, **more}
            # At once, so that no other line can come between.
            said = orjson.dumps(line, lambda value: type(value).__name__, orjson.OPT_APPEND_NEWLINE)
            self._stream.write(said)
            self._stream.flush()
        except Exception:  # noqa: BLE001 - a log line that cannot be made must not fail its maker
            return


def configure_logs(level: str = "info", stream: IO[bytes] | None = None) -> None:
    """Send everything this process says to one stream of JSON lines; for a whole process.

    Raises ConfigError for an unknown level.
    """
    if level not in LEVELS:
        raise ConfigError(f"log_level: {level!r} is none of {', '.join(LEVELS)}")
    root = logging.getLogger()
    root.handlers = [_Lines(stream or sys.stderr.buffer)]
    # Other libraries log much that is of no use here.
    root.setLevel(max(_NUMBER[level], logging.WARNING))
    for name in _SPOKEN_FOR:
        logging.getLogger(name).setLevel(_NUMBER[level])
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
    # Its lines have paths and queries as they were asked.
    logging.getLogger("uvicorn.access").disabled = True
    logging.captureWarnings(capture=True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda given: _uncaught(given.exc_type, given.exc_value, None)
    sys.unraisablehook = lambda given: _uncaught(given.exc_type, given.exc_value, None)


def log(level: str, event: str, **fields: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    """Write a line to the service's log: never any text of a request."""
    _LOGGER.log(_NUMBER[level], event, extra={_FIELDS: fields})


def note(request: Request, **counts: float) -> None:
    """Add counts and durations to the log line of a request: numbers, so that no text can pass."""
    request.scope.setdefault(COUNTS, {}).update(
        {name: float(value) if value % 1 else int(value) for name, value in counts.items()}
    )


def fault(error: BaseException) -> dict[str, Any]:
    """What may be logged of an exception: its type, its causes' types, and the places it passed."""
    types, cause = [type(error).__name__], error
    while (below := cause.__cause__ or cause.__context__) is not None and len(types) < _MAX_FRAMES:
        cause = below
        types.append(type(cause).__name__)
    frames = traceback.extract_tb(cause.__traceback__)[-_MAX_FRAMES:]
    places = [
        f"{frame.filename.removeprefix(_ROOT).lstrip('/')}:{frame.lineno} {frame.name}"
        for frame in frames
    ]
    return {"types": types, "places": places}


def _uncaught(
    kind: type[BaseException], error: BaseException | None, _trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt | SystemExit):
        return
    log("error", "uncaught", fault=fault(error) if error else {"types": [kind.__name__]})


_BUCKETS_S: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip


class Metrics:
    """The metrics of one service, in a registry of their own; the reference prints them."""

    def __init__(self) -> None:
        # The times at which counters began are of no use to anybody.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's own gap
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        self.requests = counter(
            "contam_requests_total", "Answered requests.", ("method", "route", "status")
        )
        self.duration = Histogram(
            "contam_request_duration_seconds",
            "From a request's head to the last byte of its answer.",
            ("route",),
            registry=self.registry,
            buckets=_BUCKETS_S,
        )
        self.requests_running = gauge("contam_requests_running", "Requests being answered now.")
        self.refused = counter(
            "contam_requests_refused_total",
            "Requests that a guard refused, by the problem's code.",
            ("code",),
        )
        self.errors = counter("contam_errors_total", "Unexpected errors, by type.", ("type",))
        self.items_checked = counter("contam_items_checked_total", "Items that got verdicts.")
        self.verdicts = counter("contam_verdicts_total", "Verdicts given.", ("policy", "label"))
        self.checks_running = gauge("contam_checks_running", "Checks being worked on now.")
        self.checks_waiting = gauge("contam_checks_waiting", "Checks that wait for their turn.")
        self.jobs = gauge("contam_jobs", "Jobs kept, by state.", ("state",))
        self.index_age = gauge(
            "contam_index_age_seconds", "Since an index last changed.", ("index",)
        )
        self.index_coverage = gauge(
            "contam_index_coverage_ratio",
            "Share of an index's shards that it answers for.",
            ("index",),
        )
        self.ready = gauge("contam_ready", "1: the service takes requests; 0: it does not.")

    def count_verdicts(self, n_items: int, verdicts: Iterable[tuple[str, str]]) -> None:
        """Count the verdicts of a check: a pair of policy and label for each."""
        self.items_checked.inc(n_items)
        for (policy, label), n in Tally(verdicts).items():
            self.verdicts.labels(policy, label).inc(n)

    def exposition(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
