"""Items in, verdicts with evidence out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import orjson
from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from contam.benchmark.items import BenchItem
from contam.detect.reader import TEXT_BENCHMARK
from contam.server.answers import answer_of, late_answer
from contam.server.auth import require
from contam.server.failures import RequestError
from contam.server.gate import LateError
from contam.server.logs import note
from contam.server.policies import checked_policies
from contam.server.schemas.check import CheckAnswer, CheckRequest
from contam.server.schemas.common import problems
from contam.server.state import CurrentState, State, holder_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.config import Settings

NDJSON: Final = "application/x-ndjson"

router = APIRouter(prefix="/v1", tags=["check"], dependencies=[Depends(require("check"))])


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
async def check(request: Request, state: CurrentState) -> Response:
    """Judge items, or one text, by what the indexes hold of them.

    With `Accept: application/x-ndjson` each verdict is a line, and the last line is the rest of
    the answer.
    """
    _refuse_other_types(request)
    body = await request.body()
    deadline = time.monotonic() + state.settings.deadline_s
    as_lines = NDJSON in request.headers.get("accept", "")
    asked: list[CheckRequest] = []

    def work() -> Response:
        parsed = parse(body, state.settings)
        asked.append(parsed)
        return told(parsed, _answer(parsed, state, deadline))

    def told(parsed: CheckRequest, answer: dict[str, Any]) -> Response:
        n_items = len(parsed.items or (1,))
        pairs = [(verdict["policy"], verdict["label"]) for verdict in answer["verdicts"]]
        state.metrics.count_verdicts(n_items, pairs)
        note(request, n_items=n_items, n_verdicts=len(pairs))
        return _response(answer, as_lines=as_lines)

    try:
        return await state.gate.run(work, state.settings.deadline_s)
    except LateError:
        parsed = asked[0] if asked else parse(body, state.settings)
        return told(parsed, _late(parsed, state))


def parse(body: bytes, settings: Settings) -> CheckRequest:
    """The request that a body spells. Raises RequestValidationError, or RequestError beyond limits.

    Bodies are read here, on a thread, since a large one would hold up every other request.
    """
    try:
        asked = CheckRequest.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False, include_context=False)
        if found[0]["type"] == "json_invalid":
            raise RequestError(400, "the body is no JSON") from None
        raise RequestValidationError(found) from None
    if len(asked.items or ()) > settings.max_items:
        raise RequestError(
            413, f"{len(asked.items or ())} items, and one check takes {settings.max_items}",
            hint="send fewer at once, or make a job of it: POST /v1/jobs",
        )  # fmt: skip
    most = settings.max_characters
    for at, n in enumerate(_characters(asked)):
        if n > most:
            raise RequestError(
                413, f"item {at} has {n} characters, and one may have {most}",
                hint="shorten it, or make a job of it: POST /v1/jobs",
            )  # fmt: skip
    over = [
        f"{name} {value}, and {limit} is the most"
        for name, value, limit in (
            ("max_evidence", asked.options.max_evidence, settings.max_evidence),
            ("context", asked.options.context, settings.max_context),
        )
        if value > limit
    ]
    if over:
        raise RequestError(413, "; ".join(over), hint="ask for less")
    return asked


def _characters(asked: CheckRequest) -> Iterator[int]:
    if asked.text is not None:
        yield len(asked.text)
    for item in asked.items or ():
        parts = (item.passage or "", item.question, *item.choices, item.answer or "")
        yield sum(map(len, parts))


def _answer(asked: CheckRequest, state: State, deadline: float) -> dict[str, Any]:
    if time.monotonic() >= deadline:
        return _late(asked, state)
    policies = checked_policies(asked.policies)
    with holder_of(state).lease(asked.names) as lease:
        result = lease.reader.check(
            items_of(asked),
            policies=policies,
            max_evidence=asked.options.max_evidence,
            allow_missing=asked.options.allow_missing,
        )
        return answer_of(result, lease, asked.options)


def _late(asked: CheckRequest, state: State) -> dict[str, Any]:
    with holder_of(state).lease(asked.names) as lease:
        return late_answer(items_of(asked), checked_policies(asked.policies), lease)


def items_of(asked: CheckRequest) -> list[BenchItem]:
    """The items of a request as the library has them."""
    if asked.text is not None:
        return [BenchItem(benchmark=TEXT_BENCHMARK, split="", item_id="1", question=asked.text)]
    return [
        BenchItem(
            benchmark=item.benchmark,
            split=item.split,
            item_id=item.id,
            question=item.question,
            passage=item.passage,
            choices=tuple(item.choices),
            answer=item.answer,
            answer_index=item.answer_index,
        )
        for item in asked.items or ()
    ]


def _response(answer: dict[str, Any], *, as_lines: bool) -> Response:
    headers = {"ETag": f'"{"-".join(answer["states"])}"', "Cache-Control": "no-store"}
    if as_lines:
        return StreamingResponse(_lines(answer), headers=headers, media_type=NDJSON)
    return Response(orjson.dumps(answer), headers=headers, media_type="application/json")


def _lines(answer: dict[str, Any]) -> Iterator[bytes]:
    rest = {name: value for name, value in answer.items() if name != "verdicts"}
    for verdict in answer["verdicts"]:
        yield orjson.dumps(verdict) + b"\n"
    yield orjson.dumps(rest) + b"\n"


def _refuse_other_types(request: Request) -> None:
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise RequestError(415, "the body must be JSON", hint="send it as application/json")
