"""Accept, list, show, stop and fetch jobs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import shutil
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import Field, TypeAdapter

from contam.benchmark.mapping import MAPPABLE, check_mapping
from contam.benchmark.named import is_of_catalogue
from contam.detect.policies.policy import get_policy
from contam.detect.query import refuse_unanswerable
from contam.detect.report import FILES as VERDICT_FILES
from contam.detect.report import TABLES as CHECK_TABLES
from contam.errors import UsageError
from contam.files.disk import sync_path
from contam.server.auth import Caller, Needs
from contam.server.check import checked_policies
from contam.server.jobs.runner import RUN
from contam.server.jobs.task import INPUT, REQUEST, VERDICTS
from contam.server.jobs.upload import MOST_FILES, Received, refuse_cut, store_form
from contam.server.problems import RequestError, refuse_parameters
from contam.server.schemas import (
    CheckJob,
    JobAnswer,
    JobList,
    RescoreJob,
    form_schema,
    problems,
)
from contam.server.state import BODY_END, CurrentState, State, jobs_of, read_json, registry_of
from contam.tables import schemas
from contam.tables.score_schemas import SUMMARY
from contam.tables.score_schemas import TABLES as RESCORE_TABLES

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from starlette.datastructures import FormData

    from contam.server.jobs.runner import Jobs
    from contam.server.jobs.store import Kind, StoredJob

PARQUET: Final = "application/vnd.apache.parquet"
NDJSON: Final = "application/x-ndjson"

_ANY: Final[TypeAdapter[CheckJob | RescoreJob]] = TypeAdapter(
    Annotated[CheckJob | RescoreJob, Field(discriminator="kind")]
)
_MOST_QUEUED: Final = 1000
_TABLES: Final[dict[Kind, tuple[str, ...]]] = {
    "check": tuple(name.removesuffix(".parquet") for name in CHECK_TABLES),
    "rescore": tuple(RESCORE_TABLES),
}

Asker = Annotated[Caller, Depends(Needs("jobs"))]
JobId = Annotated[str, Path(min_length=1, max_length=64)]

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], default_response_class=Response)


@router.post(
    "",
    status_code=202,
    responses={
        202: {"model": JobAnswer},
        **problems(400, 401, 403, 404, 409, 413, 415, 422, 503),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": form_schema(
                    {
                        "items": "of a check: JSON lines, plain or gzip, or Parquet; one file",
                        "logs": "of a re-scoring: logs of evaluations, under the names they have",
                    }
                )
            },
        },
    },
)  # fmt: skip
async def submit(
    request: Request,
    state: CurrentState,
    caller: Asker,
    idempotency_key: Annotated[
        str, Header(max_length=255, description="Equal requests under one key make one job.")
    ] = "",
) -> Response:
    """Accept a check of many items, or a re-scoring; it goes on whatever happens to the service."""
    jobs = jobs_of(state)
    refuse_parameters(request)
    await asyncio.to_thread(jobs.store.refuse, _MOST_QUEUED)
    try:
        async with request.form(
            max_files=MOST_FILES, max_fields=1, max_part_size=state.settings.max_body_bytes
        ) as form:
            refuse_cut(request.scope.get(BODY_END, b""), request.headers.get("content-type", ""))
            job = await asyncio.to_thread(_accept, form, idempotency_key, state, caller)
    except OSError as error:
        raise RequestError(
            503, "the service cannot store what was sent", code="disk",
            hint="the operator must look at the disk of the data folder",
            headers={"Retry-After": "60"},
        ) from error  # fmt: skip
    shown = await asyncio.to_thread(jobs.show, job)
    headers = {"Location": f"/v1/jobs/{job.id}", "Retry-After": "1"}
    return JSONResponse(shown, 202, headers)


def _accept(form: FormData, key: str, state: State, caller: Caller) -> StoredJob:
    """Make a job of a form; when this returns, it is on disk and will be worked on.

    Raises RequestError, and OSError for a disk that takes nothing.
    """
    jobs = jobs_of(state)
    job_id = secrets.token_hex(12)
    folder = jobs.home / job_id
    inputs = folder / INPUT
    job = None
    try:
        inputs.mkdir(parents=True)
        received = store_form(form, inputs, state.settings)
        asked = read_json(_ANY, received.request)
        if isinstance(asked, CheckJob):
            request = _check(asked, state, received)
        else:
            request = _rescore(asked, jobs, caller, inputs, received)
        (inputs / REQUEST).write_text(json.dumps(request), "utf-8")
        for path in (inputs / REQUEST, inputs, folder, jobs.home):
            sync_path(path)
        # Keys of different owners never meet, and no text that a key may hold is kept.
        name = hashlib.sha256(f"{caller.key_id}\0{key}".encode()).hexdigest() if key else None
        job = jobs.store.add(
            id=job_id,
            owner=caller.key_id,
            kind=asked.kind,
            about={
                "index": request.get("index", []),
                "policies": request["policies"],
                "n_items": received.n_items,
            },
            idempotency=name,
            fingerprint=received.fingerprint,
            most_queued=_MOST_QUEUED,
        )
        return job or _earlier(jobs, str(name), received)
    finally:
        if job is None:
            shutil.rmtree(folder, ignore_errors=True)


def _earlier(jobs: Jobs, name: str, received: Received) -> StoredJob:
    """The job that this request has made before. Raises RequestError, 422 or 409."""
    job = jobs.store.of_key(name)
    if job is None:
        raise RequestError(409, "its job was deleted meanwhile", hint="send it again")
    if job.fingerprint != received.fingerprint:
        raise RequestError(
            422, "this Idempotency-Key came with another request before",
            code="idempotency-reused", hint="a new request needs a new key",
        )  # fmt: skip
    return job


def _check(asked: CheckJob, state: State, received: Received) -> dict[str, Any]:
    if set(received.files) != (set() if asked.benchmarks else {"items"}):
        raise RequestError(
            422, "a check needs one file of items, or names of benchmarks", code="upload",
            hint="send a file as the part `items`, or `benchmarks` in the part `job`",
        )  # fmt: skip
    if not all(map(is_of_catalogue, asked.benchmarks or ())):
        raise RequestError(
            422, "a benchmark is not in the catalogue", code="usage",
            hint="`contam benchmarks` lists names",
        )  # fmt: skip
    policies = checked_policies(asked.policies)
    try:
        check_mapping(asked.options.mapping)
    except UsageError:
        # Its message repeats what was sent.
        raise RequestError(
            422, "invalid mapping", code="usage",
            hint=f"it maps {', '.join(MAPPABLE)} to fields of the upload",
        ) from None  # fmt: skip
    registry = registry_of(state)
    names = registry.chosen(asked.names)
    with registry.snapshot(names) as snapshot:
        refuse_unanswerable([get_policy(policy) for policy in policies], snapshot.opened.recipe)
    return {**asked.model_dump(), "index": list(names), "policies": list(policies)}


def _rescore(
    asked: RescoreJob, jobs: Jobs, caller: Caller, folder: FilePath, received: Received
) -> dict[str, Any]:
    if set(received.files) != {"logs"}:
        raise RequestError(
            422, "a re-scoring needs logs, and nothing else", code="upload",
            hint="send them as `logs`",
        )  # fmt: skip
    source = jobs.get(asked.job, owner_of(caller))
    if source.kind != "check" or source.state != "done":
        raise RequestError(
            409, f"that job is a {source.kind} and {source.state}", code="no-verdicts",
            hint="name a check that is done",
        )  # fmt: skip
    # They outlive that job.
    (folder / VERDICTS).mkdir()
    for name in VERDICT_FILES:
        shutil.copyfile(jobs.result(source) / name, folder / VERDICTS / name)
        sync_path(folder / VERDICTS / name)
    sync_path(folder / VERDICTS)
    return asked.model_dump()


@router.get("", responses={200: {"model": JobList}, **problems(401, 403, 503)})
def list_jobs(state: CurrentState, caller: Asker) -> Response:
    """The newest 500 jobs of this key (of all keys for `admin`), the newest first."""
    jobs = jobs_of(state)
    return JSONResponse({"jobs": [jobs.show(job) for job in jobs.store.listed(owner_of(caller))]})


@router.get("/{job_id}", responses={200: {"model": JobAnswer}, **problems(401, 403, 404, 422, 503)})
def show_job(job_id: JobId, state: CurrentState, caller: Asker) -> Response:
    """State, progress and, once it is done, coverage and counts; ask again after Retry-After."""
    shown = jobs_of(state).show(_job(job_id, state, caller))
    return JSONResponse(shown, headers={} if shown["ended"] else {"Retry-After": "1"})


@router.delete(
    "/{job_id}",
    responses={
        200: {"model": JobAnswer},
        204: {"description": "It had ended; it and its result are deleted."},
        **problems(401, 403, 404, 422, 503),
    },
)
def cancel_job(job_id: JobId, state: CurrentState, caller: Asker) -> Response:
    """Stop a job; one that has ended is deleted with its result."""
    jobs = jobs_of(state)
    left = jobs.cancel(_job(job_id, state, caller))
    return Response(status_code=204) if left is None else JSONResponse(jobs.show(left))


@router.get(
    "/{job_id}/results",
    responses={
        200: {
            "description": "The rows.",
            "content": {
                NDJSON: {"schema": {"type": "string"}},
                PARQUET: {"schema": {"type": "string", "format": "binary"}},
            },
        },
        206: {"description": "A range of the Parquet file."},
        416: {"description": "The file does not have these bytes."},
        **problems(400, 401, 403, 404, 409, 422, 503),
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
) -> Response:
    """A table of a finished job: as JSON lines, or by `Accept` as Parquet, by ranges.

    `Contam-Rows` tells how many lines there are.
    """
    job = _job(job_id, state, caller)
    names = _TABLES[job.kind]
    if table and table not in names:
        raise RequestError(
            404, f"a {job.kind} has no such table", code="no-table",
            hint=f"it has {', '.join(names)}",
        )  # fmt: skip
    path = _file_of(job, f"{table or names[0]}.parquet", state)
    if PARQUET in request.headers.get("accept", "").lower():
        return FileResponse(path, media_type=PARQUET, filename=path.name)
    n_rows, batches = schemas.row_batches(path)
    lines = (b"".join(orjson.dumps(row) + b"\n" for row in rows) for rows in batches)
    return StreamingResponse(lines, headers={"Contam-Rows": str(n_rows)}, media_type=NDJSON)


@router.get(
    "/{job_id}/run",
    responses={
        200: {"content": {"application/json": {"schema": {"type": "object"}}}},
        **problems(401, 403, 404, 409, 422, 503),
    },
)
def job_run(job_id: JobId, state: CurrentState, caller: Asker) -> Response:
    """How the result was made: the `run.json` of its folder, with names instead of places."""
    job = _job(job_id, state, caller)
    run: dict[str, Any] = json.loads(_file_of(job, RUN, state).read_bytes())
    for section in ("parameters", "inputs"):
        run[section] = _without_places(run.get(section, {}))
    if names := job.about["index"]:
        run["inputs"]["index"] = names
    # A record of a run may hold numbers that JSON has not: they are null.
    return Response(orjson.dumps(run), media_type="application/json")


def _without_places(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {name: _without_places(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_places(item) for item in value]
    if isinstance(value, str) and value.startswith("/"):
        return PurePath(value).name
    return value


@router.get(
    "/{job_id}/summary",
    responses={
        200: {"content": {"text/markdown": {"schema": {"type": "string"}}}},
        **problems(401, 403, 404, 409, 422, 503),
    },
)
def job_summary(job_id: JobId, state: CurrentState, caller: Asker) -> Response:
    """The tables of a re-scoring as a page of Markdown."""
    path = _file_of(_job(job_id, state, caller), SUMMARY, state)
    return FileResponse(path, media_type="text/markdown")


def owner_of(caller: Caller) -> str | None:
    """Whose jobs a caller may see; None for everybody's."""
    return None if caller.is_admin else caller.key_id


def _job(job_id: str, state: State, caller: Caller) -> StoredJob:
    return jobs_of(state).get(job_id, owner_of(caller))


def _file_of(job: StoredJob, name: str, state: State) -> FilePath:
    """A file of a result. Raises RequestError: 409 for a job that is not done, 404 without it."""
    if job.state != "done":
        waiting = not job.ended
        raise RequestError(
            409, f"the job is {job.state} and has no result", code="no-result",
            hint="wait for its end: GET /v1/jobs/ID" if waiting else "send it again",
            headers={"Retry-After": "1"} if waiting else None,
        )  # fmt: skip
    path = jobs_of(state).result(job) / name
    if not path.is_file():
        raise RequestError(404, "the result has no such file", code="no-result")
    return path
