"""Check items: verdicts with evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from contam.server.checks.asking import judge, parse
from contam.server.middleware.auth import Caller, Needs
from contam.server.problems.failures import RequestError, refuse_parameters
from contam.server.schemas.check import CheckAnswer, CheckRequest
from contam.server.schemas.common import problems
from contam.server.state import CurrentState, registry_of

if TYPE_CHECKING:
    from contam.server.checks.answers import StreamedAnswer
    from contam.server.state import State

NDJSON: Final = "application/x-ndjson"

_CHECK: Final = Needs("check")
_READ: Final = Needs("read-documents")

router = APIRouter(prefix="/v1", tags=["check"], dependencies=[Depends(_CHECK)])


@router.post(
    "/check",
    response_class=Response,
    responses={
        200: {"model": CheckAnswer, "content": {NDJSON: {"schema": {"type": "string"}}}},
        **problems(400, 401, 403, 404, 413, 415, 422, 429, 503),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/CheckRequest"}}
            },
        }
    },
)
async def check(
    request: Request, state: CurrentState, caller: Annotated[Caller, Depends(_CHECK)]
) -> Response:
    """Judge items, or one text, by what the indexes hold of them.

    With `Accept: application/x-ndjson` each verdict is a line, and the last line is the rest of
    the answer: without it, the answer is not whole. Past the service's deadline every item is
    `not_checkable`, with the reason `deadline`. An answer, or one of the lines, that would have
    more than `max_answer_bytes` is refused; nothing is left out of one.

    Text around matches (`context`) also needs the scope `read-documents`. With `grams` (see
    `contam hash`) nothing that is sent is a text.
    """
    _refuse_other_types(request)
    refuse_parameters(request)
    registry_of(state)
    body = await request.body()
    as_lines = NDJSON in request.headers.get("accept", "")
    return await judge(
        request,
        state,
        lambda: _allowed(parse(body, state.settings), caller),
        lambda _, found: _response(found, state, as_lines=as_lines),
    )


def _allowed(asked: CheckRequest, caller: Caller) -> CheckRequest:
    """What is asked, by somebody who may see text of documents if text around matches is asked."""
    if asked.options.context:
        _READ.refuse(caller, "options.context")
    return asked


def _response(found: StreamedAnswer, state: State, *, as_lines: bool) -> Response:
    headers = {"ETag": f'"{"-".join(found.rest["states"])}"', "Cache-Control": "no-store"}
    most = state.settings.max_answer_bytes
    if as_lines:
        return StreamingResponse(found.as_lines(most), headers=headers, media_type=NDJSON)
    return Response(found.as_json(most), headers=headers, media_type="application/json")


def _refuse_other_types(request: Request) -> None:
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise RequestError(415, "the body must be JSON", hint="send it as application/json")
