"""Map error codes to HTTP statuses, and failures to RFC 9457 problem+json."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from contam.errors import ContamError
from contam.server.problems.remedies import hint_for
from contam.server.problems.telling import INSIDE, tell
from contam.server.problems.wording import describe_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI, Request
    from starlette.responses import Response

_log = logging.getLogger("contam.server")
_OURS: Final = 500
_METHOD_NOT_ALLOWED: Final = 405
_KINDS: Final = frozenset(("check", "rescore"))
_LOG: Final = "the operator finds more in the log"

MEDIA_TYPE: Final = "application/problem+json"

PROBLEM: Final = "contam.problem"
"""Where a request's scope holds the code of the problem it was answered with."""

AS_PAGE: Final = "contam.as_page"
"""Where a request's scope holds what makes a page of a problem, if a person is to read it."""

STATUS: Final = {
    "contam": 500,
    "usage": 422,
    "config": 500,
    "policy": 422,
    "corpus": 503,
    "shard": 503,
    "benchmark": 422,
    "log": 422,
    "output": 500,
    "incomplete": 503,
    "index-damaged": 503,
    "index-busy": 503,
    "index-mismatch": 422,
    "internal": 500,
}
"""HTTP status of every error code of the library."""

_OF_STATUS: Final = {
    400: ("bad-request", "The request cannot be read"),
    401: ("unauthorised", "A key is needed"),
    403: ("forbidden", "The key does not allow this"),
    404: ("not-found", "There is nothing here"),
    405: ("method-not-allowed", "This method is not offered here"),
    408: ("too-slow", "The request came too slowly"),
    409: ("conflict", "The request contradicts another one"),
    413: ("too-large", "The request is too large"),
    415: ("unsupported-type", "This kind of content is not taken"),
    416: ("no-range", "The file does not have these bytes"),
    422: ("invalid", "The request is not understood"),
    429: ("too-many-requests", "Too many requests"),
    503: ("unavailable", "The service cannot answer now"),
}


class RequestError(ContamError):
    """A request that is refused by the service itself, with a status and a stable code."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str = "",
        code: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        self.status = status
        self.code = code or _OF_STATUS[status][0]
        super().__init__(message, hint=hint_for(self.code, hint))
        self.headers = headers or {}


def refuse_parameters(request: Request) -> None:
    """Raise RequestError, 422, for parameters in an address whose body says everything.

    An index or an option that nobody reads there would change what is asked without a word.
    """
    if request.url.query:
        raise RequestError(
            422, "this address takes no parameters", hint="say what is asked in the body"
        )


def problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    *,
    hint: str = "",
    errors: Sequence[dict[str, Any]] = (),
    headers: dict[str, str] | None = None,
) -> Response:
    """A problem document: type, title, status, detail, code, hint, request id; or a page of it."""
    request.scope[PROBLEM] = code
    hint = hint_for(code, hint)
    if AS_PAGE in request.scope:
        page: Response = request.scope[AS_PAGE](
            request, status, detail=detail, hint=hint, headers=headers
        )
        return page
    body: dict[str, Any] = {
        "type": f"urn:contam:problem:{code}",
        "title": _OF_STATUS.get(status, ("", "The service failed"))[1],
        "status": status,
        "detail": detail,
        "code": code,
        "hint": hint,
        "request_id": getattr(request.state, "request_id", ""),
    }
    if errors:
        body["errors"] = list(errors)
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer every failure of the app with a problem document."""
    app.add_exception_handler(ContamError, _contam)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def _contam(request: Request, error: Exception) -> Response:
    assert isinstance(error, ContamError)  # noqa: S101 - for the type checker: registered for it
    if isinstance(error, RequestError):
        return problem(
            request, error.status, error.code, error.message, hint=error.hint, headers=error.headers
        )
    status = STATUS.get(error.code, 500)
    if status >= _OURS:
        _log.error("%s: %s", error.code, error.message)
        detail = INSIDE.get(error.code, "the service failed")
        return problem(request, status, error.code, detail, hint=_LOG)
    detail, hint = tell(error)
    return problem(request, status, error.code, detail, hint=hint)


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - as above
    # What was sent may be an unpublished test: only its place and what is wrong go back.
    errors = describe_errors(error.errors(), _KINDS)
    return problem(
        request, 422, "invalid", "the request does not fit its schema", errors=errors,
        hint="GET /openapi.json describes it",
    )  # fmt: skip


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    code, title = _OF_STATUS.get(error.status_code, ("http", "The request failed"))
    headers = dict(error.headers) if error.headers else None
    if error.status_code == _METHOD_NOT_ALLOWED:
        headers = _with_all_methods(request, headers or {})
    return problem(request, error.status_code, code, title, headers=headers)


def _with_all_methods(request: Request, headers: dict[str, str]) -> dict[str, str]:
    """The framework names the methods of the first handler of a path, and there may be more."""
    template = getattr(request.scope.get("route"), "path_format", "")
    offered = request.app.openapi()["paths"].get(template)
    return headers | {"Allow": ", ".join(sorted(map(str.upper, offered)))} if offered else headers


def _unexpected(request: Request, _error: Exception) -> Response:
    return problem(
        request, 500, "internal", "the service failed",
        hint="a defect of contam: report it with the request id",
    )  # fmt: skip
