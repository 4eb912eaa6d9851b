"""Submit, show, stop and fetch jobs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from contam.server.jobs.events import event_stream
from contam.server.jobs.intake.accept import ITEMS, LOGS, VERDICTS, owner_of, receive
from contam.server.jobs.model import StoredJob
from contam.server.jobs.ranges import file_answer
from contam.server.jobs.results import PARQUET, TableLines, table_path, wants_parquet
from contam.server.jobs.views import RUN, run_view
from contam.server.middleware.auth import Caller, Needs
from contam.server.schemas.common import problems
from contam.server.schemas.jobs import JobAnswer, JobList, multipart
from contam.server.state import CurrentState, State, jobs_of

NDJSON: Final = "application/x-ndjson"
NO_STORE: Final = {"Cache-Control": "no-store"}
_MOST_LISTED: Final = 500

Asker = Annotated[Caller, Depends(Needs("jobs"))]
JobId = Annotated[str, Path(min_length=1, max_length=64)]

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.post(
    "",
    status_code=202,
    response_class=Response,
    responses={
        202: {"model": JobAnswer},
        **problems(400, 401, 403, 404, 409, 413, 415, 422, 429, 503),
    },
    openapi_extra={
        "parameters": [
            {
                "name": "Idempotency-Key", "in": "header", "required": False,
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
                "description": "Equal requests under one key make one job.",
            }
        ],
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": multipart(
                    "job", ("CheckJob", "RescoreJob"),
                    {
                        ITEMS: "of a check: JSON lines, plain or gzip, or Parquet; one file",
                        LOGS: "of a re-scoring: logs of evaluations, under the names they have",
                        VERDICTS: "of a re-scoring: the four files of a result of `contam query`",
                    },
                )
            },
        },
    },
)  # fmt: skip
async def submit(request: Request, state: CurrentState, caller: Asker) -> Response:
    """Accept a check of many items, or a re-scoring; it goes on whatever happens to the service."""
    roles = frozenset({ITEMS, LOGS, VERDICTS})
    job = await receive(request, state, caller, field="job", roles=roles)
    return accepted(await asyncio.to_thread(jobs_of(state).show, job))


@router.get(
    "",
    response_class=Response,
    responses={200: {"model": JobList}, **problems(401, 403, 422, 429, 503)},
)
def list_jobs(
    state: CurrentState,
    caller: Asker,
    limit: Annotated[int, Query(ge=1, le=_MOST_LISTED)] = 50,
    cursor: Annotated[int | None, Query(ge=1, lt=1 << 63)] = None,
) -> Response:
    """Jobs of this key (of all keys for `admin`), the newest first."""
    jobs = jobs_of(state)
    found = jobs.listed(owner_of(caller), before=cursor, limit=limit)
    more = found[-1].number if len(found) == limit else None
    return answer({"jobs": [jobs.show(job) for job in found], "next": more})


@router.get(
    "/{job_id}",
    response_class=Response,
    responses={200: {"model": JobAnswer}, **problems(401, 403, 404, 422, 429, 503)},
)
def show_job(job_id: JobId, state: CurrentState, caller: Asker) -> Response:
    """State, progress and, once it is done, coverage and counts."""
    shown = jobs_of(state).show(_job(job_id, state, caller))
    return answer(shown, headers={} if shown["ended"] else {"Retry-After": "1"})


@router.delete(
    "/{job_id}",
    response_class=Response,
    responses={
        200: {"model": JobAnswer},
        204: {"description": "It had ended; it and its result are deleted."},
        **problems(401, 403, 404, 422, 429, 503),
    },
)
def cancel_job(job_id: JobId, state: CurrentState, caller: Asker) -> Response:
    """Stop a job; one that has ended is deleted with its result."""
    jobs = jobs_of(state)
    left = jobs.cancel(_job(job_id, state, caller))
    return Response(status_code=204) if left is None else answer(jobs.show(left))


@router.get(
    "/{job_id}/results",
    response_class=Response,
    responses={
        200: {
            "description": "The rows.",
            "content": {
                NDJSON: {"schema": {"type": "string"}},
                PARQUET: {"schema": {"type": "string", "format": "binary"}},
            },
        },
        206: {"description": "A range of the Parquet file."},
        **problems(401, 403, 404, 409, 416, 422, 429, 503),
    },
)
def job_results(
    job_id: JobId,
    request: Request,
    state: CurrentState,
    caller: Asker,
    table: Annotated[
        str, Query(max_length=64, description="verdicts, evidence, items; of a re-scoring: scores")
    ] = "",
    cursor: Annotated[int, Query(ge=0, lt=1 << 63, description="rows to pass over")] = 0,
    limit: Annotated[int | None, Query(ge=1, lt=1 << 63)] = None,
) -> Response:
    """A table of a finished job: JSON lines from a cursor on, or by `Accept` Parquet by ranges.

    `Contam-Rows` tells how many rows the table has; a broken stream goes on at `cursor` = the lines
    that came whole.
    """
    jobs = jobs_of(state)
    job = _job(job_id, state, caller)
    path = table_path(job, jobs.result(job), table)
    if wants_parquet(request.headers.get("accept", "*/*")):
        return file_answer(path, request.headers, media_type=PARQUET)
    lines = TableLines(path, cursor, limit)
    headers = {**NO_STORE, "Contam-Rows": str(lines.n_rows)}
    if lines.end < lines.n_rows:
        onward = request.url.include_query_params(cursor=lines.end)
        headers["Link"] = f'<{onward.path}?{onward.query}>; rel="next"'
    return StreamingResponse(lines, headers=headers, media_type=NDJSON)


@router.get(
    "/{job_id}/run",
    response_class=Response,
    responses={
        200: {"content": {"application/json": {"schema": {"type": "object"}}}},
        **problems(401, 403, 404, 409, 422, 429, 503),
    },
)
def job_run(job_id: JobId, state: CurrentState, caller: Asker) -> Response:
    """How the result was made: the `run.json` of its folder, with names instead of places."""
    jobs = jobs_of(state)
    job = _job(job_id, state, caller)
    path = table_path(job, jobs.result(job), "").with_name(RUN)
    return answer(run_view(path, job.about["index"]))


@router.get(
    "/{job_id}/events",
    response_class=Response,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        **problems(401, 403, 404, 422, 429, 503),
    },
)
async def job_events(job_id: JobId, state: CurrentState, caller: Asker) -> Response:
    """The job as server-sent events, whenever it has changed, until it has ended."""
    jobs = jobs_of(state)
    await asyncio.to_thread(_job, job_id, state, caller)

    async def look() -> dict[str, Any] | None:
        return await asyncio.to_thread(jobs.look, job_id)

    return StreamingResponse(
        event_stream(jobs.watch, job_id, look),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def accepted(shown: dict[str, Any]) -> Response:
    """The answer that a job is accepted."""
    headers = {"Location": f"/v1/jobs/{shown['id']}", "Retry-After": "1"}
    return answer(shown, status=202, headers=headers)


def answer(
    value: Any,  # noqa: ANN401 - any JSON value
    *,
    status: Literal[200, 202] = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """A JSON answer that no cache keeps."""
    return Response(
        orjson.dumps(value), status, {**NO_STORE, **(headers or {})}, "application/json"
    )


def _job(job_id: str, state: State, caller: Caller) -> StoredJob:
    return jobs_of(state).get(job_id, owner_of(caller))
