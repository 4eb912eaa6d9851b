"""Re-score logs by verdicts: clean scores out."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from contam.server.jobs.events import until_ended
from contam.server.jobs.intake.accept import LOGS, VERDICTS, owner_of, receive
from contam.server.jobs.results import refuse_unfinished, rescore_answer
from contam.server.problems.failures import STATUS, RequestError
from contam.server.routes.jobs import Asker, JobId, accepted, answer
from contam.server.schemas.common import problems
from contam.server.schemas.jobs import JobAnswer, RescoreAnswer, multipart
from contam.server.state import CurrentState, State, jobs_of

router = APIRouter(prefix="/v1/rescore", tags=["rescore"])


@router.post(
    "",
    response_class=Response,
    responses={
        200: {"model": RescoreAnswer},
        202: {"model": JobAnswer, "description": "It takes longer: a job does it."},
        **problems(400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503),
    },
    openapi_extra={
        "parameters": [
            {
                "name": "Prefer", "in": "header", "required": False,
                "schema": {"type": "string", "examples": ["respond-async"]},
                "description": "`respond-async` asks for a job at once.",
            },
            {
                "name": "Idempotency-Key", "in": "header", "required": False,
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
                "description": "Equal requests under one key make one job.",
            },
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/RescoreJob"}},
                "multipart/form-data": multipart(
                    "rescore", ("RescoreJob",),
                    {
                        LOGS: "logs of evaluations, under the names they have",
                        VERDICTS: "the four files of a result of `contam query`",
                    },
                ),
            },
        },
    },
)  # fmt: skip
async def rescore(request: Request, state: CurrentState, caller: Asker) -> Response:
    """Score models without the flagged items: the tables of `contam rescore`.

    A job does it. When that ends before the deadline its tables are the answer, else the job is.
    """
    jobs = jobs_of(state)
    roles = frozenset({LOGS, VERDICTS})
    job = await receive(request, state, caller, field="rescore", roles=roles)

    async def look() -> dict[str, Any] | None:
        return await asyncio.to_thread(jobs.look, job.id)

    at_once = "respond-async" in request.headers.get("prefer", "").lower()
    seconds = 0.0 if at_once else state.settings.deadline_s
    shown = await until_ended(jobs.watch, job.id, look, seconds)
    if shown is None:
        raise RequestError(404, "the job was deleted", code="no-job")
    if not shown["ended"] or at_once:
        return accepted(shown)
    return await asyncio.to_thread(_answer, job.id, state)


@router.get(
    "/{job_id}",
    response_class=Response,
    responses={
        200: {"model": RescoreAnswer},
        **problems(401, 403, 404, 409, 422, 429, 500, 503),
    },
)
def rescored(job_id: JobId, state: CurrentState, caller: Asker) -> Response:
    """The tables of a re-scoring that a job did."""
    jobs_of(state).get(job_id, owner_of(caller))
    return _answer(job_id, state)


def _answer(job_id: str, state: State) -> Response:
    jobs = jobs_of(state)
    job = jobs.get(job_id, None)
    if job.kind != "rescore":
        raise RequestError(404, "the job is no re-scoring", code="no-job")
    if job.state == "failed":
        failure = jobs.failure(job)
        raise RequestError(
            STATUS.get(failure["code"], 500), failure["message"],
            code=failure["code"], hint=failure["hint"],
        )  # fmt: skip
    refuse_unfinished(job)
    return answer(rescore_answer(job, jobs.result(job)))
