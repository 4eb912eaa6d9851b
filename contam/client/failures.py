"""Define the errors of a client; none of them can pass for an answer."""

from __future__ import annotations

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
            f"{place.get('place', '')}: {place.get('message', '')}"
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
