"""Accept a job: receive the upload, check that it can be done, and store it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from fastapi.concurrency import contextmanager_in_threadpool

from contam.benchmark.mapping import MAPPABLE, check_mapping
from contam.detect.indexed.guarantee import refuse_unanswerable
from contam.detect.policies.policy import get_policy
from contam.detect.report import FILES as VERDICT_FILES
from contam.errors import UsageError
from contam.server.checks.policies import checked_policies
from contam.server.jobs.intake.requests import CheckJob, RescoreJob, parse_job
from contam.server.jobs.intake.uploads import Received, Upload
from contam.server.jobs.service import disk_errors
from contam.server.problems.failures import RequestError, refuse_parameters
from contam.server.problems.spelling import refuse_doubled
from contam.server.state import jobs_of, registry_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi import Request

    from contam.server.jobs.intake.reception import Receiving
    from contam.server.jobs.model import StoredJob
    from contam.server.jobs.service import Jobs
    from contam.server.middleware.auth import Caller
    from contam.server.state import State

ITEMS: Final = "items"
LOGS: Final = "logs"
VERDICTS: Final = "verdicts"
_JSON: Final = "application/json"
#: Bytes that are gathered before a thread is asked to write them.
_PIECE: Final = 1 << 20
_MOST_KEY: Final = 255


def owner_of(caller: Caller) -> str | None:
    """Whose jobs a caller may see; None for everybody's."""
    return None if caller.is_admin else caller.key_id


async def receive(
    request: Request, state: State, caller: Caller, *, field: str, roles: frozenset[str]
) -> StoredJob:
    """Accept the job that a request describes; it is on disk when this returns.

    field  name of the JSON part of a multipart body;  roles  names of the parts that are files

    Raises RequestError, RequestValidationError or ContamError; then nothing of the upload is left.
    """
    jobs = jobs_of(state)
    refuse_parameters(request)
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= _MOST_KEY:
        raise RequestError(
            400, f"the Idempotency-Key has more than {_MOST_KEY} characters, or none"
        )
    async with contextmanager_in_threadpool(jobs.receiving(caller.key_id, key)) as receiving:
        if _kind(request) == _JSON and field == "rescore":
            received = Received(request=await request.body())
        else:
            received = await _upload(request, state, receiving, field=field, roles=roles)
        return await asyncio.to_thread(
            _accept, state, jobs, caller, receiving, received, rescore=field == "rescore"
        )


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _upload(
    request: Request, state: State, receiving: Receiving, *, field: str, roles: frozenset[str]
) -> Received:
    upload = Upload(
        receiving.folder,
        request.headers.get("content-type", ""),
        field=field,
        roles=roles,
        settings=state.settings,
    )
    try:
        async for piece in _pieces(request):
            await asyncio.to_thread(_feed, upload, piece)
        with disk_errors():
            return await asyncio.to_thread(upload.finish)
    finally:
        upload.close()


def _feed(upload: Upload, piece: bytes) -> None:
    with disk_errors():
        upload.feed(piece)


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    """The body in pieces large enough to be worth a thread."""
    held = bytearray()
    async for chunk in request.stream():
        held += chunk
        if len(held) >= _PIECE:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _accept(
    state: State,
    jobs: Jobs,
    caller: Caller,
    receiving: Receiving,
    received: Received,
    *,
    rescore: bool,
) -> StoredJob:
    asked = parse_job(received.request, state.settings, rescore=rescore)
    refuse_doubled(received.request)
    if isinstance(asked, CheckJob):
        request = _check(asked, state, received)
    else:
        request = _rescore(asked, jobs, caller, receiving, received)
    return jobs.accept(receiving, request, received)


def _check(asked: CheckJob, state: State, received: Received) -> dict[str, Any]:
    if not received.of(ITEMS) or len(received.files) > 1:
        raise RequestError(
            422, "a check needs one file of items, and nothing else", code="upload",
            hint="send it as the part `items`",
        )  # fmt: skip
    policies = checked_policies(asked.policies)
    _refuse_mapping(asked.options.mapping)
    registry = registry_of(state)
    names = registry.chosen(asked.names)
    with registry.snapshot(names) as snapshot:
        refuse_unanswerable([get_policy(policy) for policy in policies], snapshot.opened.recipe)
    return {**asked.model_dump(), "index": list(names), "policies": list(policies)}


def _rescore(
    asked: RescoreJob, jobs: Jobs, caller: Caller, receiving: Receiving, received: Received
) -> dict[str, Any]:
    uploaded = received.of(VERDICTS)
    ways = [asked.job is not None, asked.inline is not None, bool(uploaded)]
    if sum(ways) != 1:
        raise RequestError(
            422, "verdicts are needed, once", code="upload",
            hint="name the job of a check, or send `inline`, or a result's files as `verdicts`",
        )  # fmt: skip
    if bool(received.of(LOGS)) == (asked.scores is not None):
        raise RequestError(
            422, "logs or scores are needed, not both", code="upload",
            hint="send files as `logs`, or rows as `scores`",
        )  # fmt: skip
    if uploaded and {file.name for file in uploaded} != {
        f"{VERDICTS}/{file}" for file in VERDICT_FILES
    }:
        raise RequestError(
            422, "the verdicts are not whole", code="upload",
            hint=f"send {', '.join(VERDICT_FILES)}",
        )  # fmt: skip
    if received.of(ITEMS):
        raise RequestError(422, "a re-scoring takes no items", code="upload")
    if asked.inline is not None:
        # By name, never by path: what a row names is looked up where re-scoring reads it.
        checked_policies(list(dict.fromkeys(_policy(row) for row in asked.inline.verdicts)))
    if asked.job is not None:
        source = jobs.get(asked.job, owner_of(caller))
        if source.kind != "check" or source.state != "done":
            raise RequestError(
                409, f"that job is a {source.kind} and {source.state}", code="no-verdicts",
            )  # fmt: skip
        jobs.copy_verdicts(source, receiving.folder)
    return asked.model_dump()


def _refuse_mapping(mapping: dict[str, str] | None) -> None:
    try:
        check_mapping(mapping)
    except UsageError:
        # Its message repeats what was sent.
        raise RequestError(
            422, "the mapping does not fit", code="usage",
            hint=f"it maps {', '.join(MAPPABLE)} to fields of the upload",
        ) from None  # fmt: skip


def _policy(row: dict[str, Any]) -> str:
    name = row.get("policy")
    return name if isinstance(name, str) else ""
