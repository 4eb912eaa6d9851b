"""Log JSON lines to stderr, without the content of requests.

Messages of libraries and of exceptions may quote an unpublished test, so a line has places in the
code and names of types instead. Only uvicorn's own words about itself are kept.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import traceback
from collections.abc import MutableMapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

import orjson
import structlog

from contam.errors import ConfigError

if TYPE_CHECKING:
    from types import TracebackType

    from starlette.requests import Request

COUNTS: Final = "contam.counts"
"""Where a request's scope holds the counts that its log line will show."""

LEVELS: Final = ("debug", "info", "warning", "error")
_NUMBER: Final = {name: logging.getLevelNamesMapping()[name.upper()] for name in LEVELS}

_SPOKEN_FOR: Final = ("uvicorn", "contam")
_MAX_FRAMES: Final = 12
_OURS: Final = re.compile(r" contam\.errors\.\w+: ")
_ROOT: Final = str(Path(__file__).parents[2])

_Event: TypeAlias = MutableMapping[str, Any]


class _Lines:
    """Writes finished lines; a stream that is full or gone must not fail a request."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def msg(self, line: bytes) -> None:
        with self._lock:
            try:
                self._stream.write(line + b"\n")
                self._stream.flush()
            except (OSError, ValueError):
                return

    debug = info = warning = error = msg


class _Handler(logging.Handler):
    """Carries the records of the standard library's loggers into the same lines."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            log = structlog.get_logger()
            level = next((name for name in LEVELS if record.levelno <= _NUMBER[name]), "error")
            known = record.name.split(".")[0] in _SPOKEN_FOR
            message = " ".join(record.getMessage().split()) if known else "a library has a message"
            if message.startswith("Traceback ") and _OURS.search(message):
                # Why the service cannot start; the command says it in words.
                return
            more: dict[str, Any] = {"logger": record.name}
            if not known:
                more["place"] = f"{record.module}:{record.lineno}"
            if record.exc_info and record.exc_info[1] is not None:
                more["fault"] = fault(record.exc_info[1])
            getattr(log, level)(message, **more)
        except Exception:  # noqa: BLE001 - a log line that cannot be made must not fail its maker
            return


def configure(level: str = "info", stream: IO[bytes] | None = None) -> None:
    """Send everything this process says to one stream of JSON lines; for a whole process.

    Raises ConfigError for an unknown level.
    """
    if level not in LEVELS:
        raise ConfigError(f"log_level: {level!r} is none of {', '.join(LEVELS)}")
    lines = _Lines(stream or sys.stderr.buffer)
    structlog.configure(
        processors=[
            _with_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(serializer=_serialised),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [_Handler()]
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


def log() -> structlog.typing.FilteringBoundLogger:
    """The service's logger: `log().info("job done", job_id=..., n_items=...)`. Never any text."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger


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


def _with_level(_logger: object, method: str, event: _Event) -> _Event:
    event["level"] = method
    return event


def _serialised(event: _Event, **_: object) -> bytes:
    first = {name: event.pop(name) for name in ("timestamp", "level", "event")}
    return orjson.dumps({**first, **event}, default=lambda value: type(value).__name__)


def _uncaught(
    kind: type[BaseException], error: BaseException | None, _trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt | SystemExit):
        return
    log().error("uncaught", fault=fault(error) if error else {"types": [kind.__name__]})
