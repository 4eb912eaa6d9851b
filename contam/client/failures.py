"""Define the errors of a client, none of which can pass for an answer, and when to ask again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contam.errors import ContamError

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNAUTHORISED: Final = "unauthorised"
_KEY_HINT: Final = (
    "set CONTAM_KEY, or CONTAM_KEY_FILE to a file that holds it; the operator of the service makes "
    "one by `contam keys add`"
)
BUSY: Final = frozenset({429, 502, 503, 504})
"""Statuses of a service, or of a proxy before it, that may answer later."""

_OTHER_CALL: Final = frozenset({400, 401, 403, 404, 405, 413, 415, 422})
"""Statuses that mean a mistake in the call."""


class ServiceError(ContamError):
    """The service refused or failed, and said why in a problem document.

    status      of HTTP; code and hint are the problem's
    request_id  what the service's own log calls the request, "" when it said nothing
    exit_code   2 for a mistake in the call, 4 for an answer that is not whole, else 1
    """

    def __init__(
        self, message: str, *, status: int, code: str, hint: str = "", request_id: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.exit_code = 2 if status in _OTHER_CALL else 4 if code == "incomplete" else 1


class BusyError(ServiceError):
    """The service had no room (429, 503) for as long as was waited."""


class UnreachableError(ContamError):
    """No answer came: no connection, or one that broke before the answer was whole.

    again  whether asking again may help (it does not for a certificate that is not trusted)
    """

    code = "unreachable"

    def __init__(self, message: str, *, hint: str = "", again: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.again = again


class AnswerError(ContamError):
    """An answer came and is not what was asked for: not JSON, parts missing, items left out."""

    code = "bad-answer"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(
            message, hint=hint or "is this the address of a contam service, of a version that fits?"
        )


class JobError(ContamError):
    """A job ended without results; the code is the reason that the service gives."""

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


def problem_error(status: int, problem: Mapping[str, object], where: str) -> ServiceError:
    """The error of a problem document, {} when the body was none."""

    def field_text(name: str) -> str:
        value = problem.get(name)
        return value if isinstance(value, str) else ""

    kind = BusyError if status in BUSY else ServiceError
    hint = _KEY_HINT if field_text("code") == _UNAUTHORISED else field_text("hint")
    message = field_text("detail") or field_text("title") or f"status {status}"
    places = problem.get("errors")
    if isinstance(places, list):
        named = [
            f"{'.'.join(map(str, place.get('loc') or ()))}: {place.get('msg', '')}"
            for place in places[:3]
            if isinstance(place, dict)
        ]
        message = "; ".join([message, *named])
    return kind(
        f"{where}: {message}",
        status=status,
        code=field_text("code") or "http",
        hint=hint,
        request_id=field_text("request_id"),
    )


#: Problems that do not pass by waiting, unless the service says how long.
_LASTING: Final = frozenset({"corpus", "shard", "incomplete", "index-damaged"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often to ask again, with waits that double and vary.

    attempts   requests in all, the first included
    first_s    longest first wait; the next ones double up to longest_s
    total_s    seconds of waiting in all: a Retry-After beyond what is left of it ends the attempts
    """

    attempts: int = 6
    first_s: float = 0.5
    longest_s: float = 30.0
    total_s: float = 120.0

    def wait_s(self, attempt: int, waited_s: float, asked_s: float | None = None) -> float | None:
        """Seconds before the next request, None when there is to be none.

        attempt   requests made so far; waited_s  seconds waited so far
        asked_s   what the service asked for; it is never undercut
        """
        if attempt >= self.attempts:
            return None
        step = min(self.longest_s, self.first_s * 2.0 ** (attempt - 1))
        # Clients that were turned away together must not come back together.
        drawn = random.random()  # noqa: S311 - no secret
        wait = step * (0.5 + drawn / 2)
        if asked_s is not None:
            wait = max(asked_s, min(wait, asked_s)) + drawn * min(step, 1 + asked_s / 4)
        return wait if waited_s + wait <= self.total_s else None


PATIENT: Final = Retry(attempts=60, total_s=900.0)
"""For whoever waits for a job: it outlives a restart of the service, and so does the wait."""


def may_help(status: int, code: str, headers: Mapping[str, str]) -> bool:
    """Whether a refusal is one that asking again may get past."""
    if code in _LASTING:
        return "retry-after" in headers
    return status in BUSY


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that `Retry-After` asks for; None when it does not."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() else None
