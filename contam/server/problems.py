"""Answer every failure with an RFC 9457 problem document, or a page of one, that quotes nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from python_multipart.exceptions import FormParserError
from starlette.exceptions import HTTPException

from contam.errors import BenchmarkError, ContamError, LogError
from contam.server.schemas import KNOWN_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from fastapi import FastAPI, Request
    from starlette.responses import Response

    from contam.facts import Hidden, Statement

_log = logging.getLogger("contam.server")

MEDIA_TYPE: Final = "application/problem+json"

PROBLEM: Final = "contam.problem"
"""Where a request's scope holds the code of the problem it was answered with."""

CALLER: Final = "contam.caller"
"""Where a request's scope holds its Caller, once it is known."""

AS_PAGE: Final = "contam.as_page"
"""Where a request's scope holds what makes a page of a problem, if a person is to read it."""

STATUS: Final = {
    **dict.fromkeys(("usage", "policy", "benchmark", "log", "index-mismatch"), 422),
    **dict.fromkeys(("corpus", "shard", "incomplete"), 503),
    **dict.fromkeys(("index-damaged", "index-unreachable", "index-busy"), 503),
}
"""HTTP status of the library's error codes; of all others it is 500."""

_INTERNAL: Final = 500
_METHOD_NOT_ALLOWED: Final = 405
_OF_STATUS: Final = {
    400: ("bad-request", "Invalid request"),
    401: ("unauthorised", "A key is required"),
    403: ("forbidden", "The key does not allow this"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Method not allowed"),
    409: ("conflict", "The request contradicts another one"),
    413: ("too-large", "The request is too large"),
    415: ("unsupported-type", "This kind of content is not supported"),
    422: ("invalid", "Invalid request"),
    503: ("unavailable", "The service cannot answer now"),
}
_SCHEMA: Final = "GET /openapi.json describes what is accepted"
_OPERATOR: Final = "the operator finds more in the log"
_DEFECT: Final = "a defect of contam: report it with the request id or the id of the job"
#: Messages for failures on our side: the library's own ones name files of this machine.
INSIDE: Final = {
    "corpus": "the corpus cannot be read now",
    "shard": "a shard of the corpus cannot be read now",
    "incomplete": "the answer would not be complete",
    "index-damaged": "a file of an index is damaged",
    "index-unreachable": "the store of an index does not answer",
    "index-busy": "the index is being changed",
}


LOOK: Final = "look at the items or the logs that were sent"
"""What helps where nothing better is known of a library's error."""


class RequestError(ContamError):
    """A request that is refused by the service itself, with its status and a stable code."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str = "",
        code: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code or _OF_STATUS[status][0]
        self.headers = headers or {}


def refuse_parameters(request: Request) -> None:
    """Raise RequestError, 422, for parameters in an address whose body says everything.

    An index or an option that nobody reads there would change what is asked without a word.
    """
    if request.url.query:
        raise RequestError(
            422, "this address takes no parameters", hint="say what is asked in the body"
        )


def tell(error: ContamError, home: Path | None = None) -> tuple[str, str]:
    """Message and hint of an error, each fact of it only if it may leave the service.

    home  the folder of what was sent, whose own files are named by their path within it

    Places keep their last name. What a benchmark or a log says is left out, as it may be somebody's
    unpublished test. A message whose facts are not known is replaced by what its code says.
    """
    secret = isinstance(error, BenchmarkError | LogError)

    def shown(statement: Statement) -> Statement:
        cut = statement.without_folders(home)
        return cut.without_quotes() if secret else cut

    said = shown(error.statement)
    hidden = INSIDE.get(error.code, "what was sent cannot be used")
    message = hidden if said.is_hidden else said.tell(_counted)
    hints = (shown(hint).tell(_counted) for hint in error.hints)
    # Flags are called like the options of a job; commands are the operator's.
    return message, "; ".join(hint for hint in hints if hint and "`contam " not in hint) or LOOK


def _counted(hidden: Hidden) -> str:
    return str(hidden) if hidden.n == 1 else f"{hidden.n} names that are not repeated here"


def problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    *,
    hint: str = "",
    errors: list[dict[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem document: type, title, status, detail, code, hint, request id; or a page of it."""
    request.scope[PROBLEM] = code
    hint = hint or (_OPERATOR if status >= _INTERNAL else _SCHEMA)
    if AS_PAGE in request.scope:
        page: Response = request.scope[AS_PAGE](
            request, status, detail=detail, hint=hint, headers=headers
        )
        return page
    body = {
        "type": f"urn:contam:problem:{code}",
        "title": _OF_STATUS.get(status, ("", "The service failed"))[1],
        "status": status,
        "detail": detail,
        "code": code,
        "hint": hint,
        "request_id": getattr(request.state, "request_id", ""),
        **({"errors": errors} if errors else {}),
    }
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def answer_failures(app: FastAPI) -> None:
    """Answer every failure of the app with a problem document."""
    for kind in (ContamError, RequestValidationError, HTTPException, FormParserError, Exception):
        app.add_exception_handler(kind, problem_of)


def problem_of(request: Request, error: Exception) -> Response:
    """The problem document of any failure."""
    if isinstance(error, RequestError):
        return problem(
            request, error.status, error.code, error.message, hint=error.hint, headers=error.headers
        )
    if isinstance(error, RequestValidationError):
        return problem(
            request, 422, "invalid", "the request does not fit its schema",
            errors=[_without_input(each) for each in error.errors()],
        )  # fmt: skip
    if isinstance(error, FormParserError):  # which not every release of the framework handles
        error = HTTPException(400)
    if isinstance(error, HTTPException):
        return _http(request, error)
    if not isinstance(error, ContamError):
        return problem(request, _INTERNAL, "internal", "the service failed", hint=_DEFECT)
    status = STATUS.get(error.code, _INTERNAL)
    if status >= _INTERNAL:
        _log.error("%s: %s", error.code, error.message)
        detail = INSIDE.get(error.code, "the service failed")
        return problem(request, status, error.code, detail)
    detail, hint = tell(error)
    return problem(request, status, error.code, detail, hint=hint)


def known_place(steps: Iterable[str | int]) -> list[str | int]:
    """A place in a request; names that the service does not know may be anything: `?`."""
    return [step if isinstance(step, int) or step in KNOWN_NAMES else "?" for step in steps]


def _without_input(error: Mapping[str, Any]) -> dict[str, Any]:
    """What the validator says, as far as it is not what was sent."""
    place = error["loc"]
    ours = bool(place) and place[0] in {"query", "path", "header"}
    # The one message that quotes what was sent.
    tags = error.get("ctx", {}).get("expected_tags")
    return {
        "loc": list(place) if ours else known_place(place),
        "type": error["type"],
        "msg": f"Input should be {tags}" if tags else error["msg"],
    }


def _http(request: Request, error: HTTPException) -> Response:
    code, title = _OF_STATUS.get(error.status_code, ("http", "The request failed"))
    headers = dict(error.headers or {})
    if error.status_code == _METHOD_NOT_ALLOWED:
        # The framework names the methods of the first handler of a path, and there may be more.
        template = getattr(request.scope.get("route"), "path_format", "")
        if offered := request.app.openapi()["paths"].get(template):
            headers["Allow"] = ", ".join(sorted(map(str.upper, offered)))
    return problem(request, error.status_code, code, title, headers=headers)
