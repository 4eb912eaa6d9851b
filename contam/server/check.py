"""Check items: read the request, admit it, query the indexes, answer. List indexes and policies."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter

from contam.benchmark.items import BenchItem, ItemName
from contam.benchmark.reading import items_read
from contam.detect.indexed.index_reader import TEXT_BENCHMARK
from contam.detect.policies.policy import get_policy
from contam.detect.policies.policy import list_policies as shipped
from contam.index.shards import describe
from contam.server.answers import StreamedAnswer, answer_of, late_answer, summary
from contam.server.auth import Caller, Needs
from contam.server.observe import note
from contam.server.problems import RequestError, refuse_parameters
from contam.server.schemas import (
    CheckAnswer,
    CheckRequest,
    IndexAnswer,
    IndexList,
    PolicyList,
    problems,
)
from contam.server.state import CurrentState, State, read_json, registry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from contam.config import Settings
    from contam.detect.policies.policy_spec import PolicySpec
    from contam.server.indexes import IndexSnapshot
    from contam.server.state import State


@cache
def known_policies() -> dict[str, PolicySpec]:
    """Every policy that ships, and behind each its presets, by name."""
    found: dict[str, PolicySpec] = {}
    for spec in shipped():
        found[spec.id] = spec
        for preset in spec.presets:
            name = f"{spec.base}:{preset}"
            found[name] = get_policy(name).spec
    return found


def checked_policies(names: Sequence[str]) -> tuple[str, ...]:
    """The names, if all are known to indexes and none comes twice. Raises RequestError, 422."""
    unknown = set(names).difference(known_policies())
    for spec in shipped(optional=True) if unknown else ():
        if spec.id in unknown:
            raise RequestError(
                422, f"{spec.id} looks for words in any order, which an index does not keep",
                code="policy", hint="leave the policy out, or scan the corpus",
            )  # fmt: skip
    if unknown or len(set(names)) != len(names):
        raise RequestError(
            422, "a policy is unknown" if unknown else "a policy is named twice",
            code="policy", hint="GET /v1/policies lists them",
        )  # fmt: skip
    return tuple(names)


Answer = TypeVar("Answer")


class LateError(Exception):
    """The work did not end in time; it may still run."""


class Admission:
    """Threads for checks: `running` of them work, `waiting` more may wait, others are sent away.

    Checks have threads of their own, so that they never keep a probe or a list waiting.
    """

    def __init__(self, running: int, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(running, thread_name_prefix="check")
        self._lock = threading.Lock()
        self._most = running + waiting
        self._held = 0

    @property
    def held(self) -> int:
        """Checks that run or wait."""
        return self._held

    async def run(self, work: Callable[[], Answer], seconds: float) -> Answer:
        """Do the work on a thread and give its result.

        Raises RequestError, 503, when too many wait, and LateError after so many seconds. What
        waits then is given up; what runs keeps its thread, and its place, until it ends.
        """
        with self._lock:
            if self._held >= self._most:
                raise RequestError(
                    503, "too many checks are waiting", code="busy",
                    hint="ask again later, or make a job of it", headers={"Retry-After": "1"},
                )  # fmt: skip
            self._held += 1
        future = self._pool.submit(work)
        future.add_done_callback(self._leave)
        waiter = asyncio.wrap_future(future)
        done, _ = await asyncio.wait((waiter,), timeout=seconds)
        if not done:
            waiter.cancel()
            raise LateError
        return waiter.result()

    def close(self) -> None:
        """Take nothing more, and let what runs end."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _leave(self, _future: Future[Answer]) -> None:
        with self._lock:
            self._held -= 1


_JOB: Final = "make a job of it: POST /v1/jobs"
_REQUEST: Final = TypeAdapter(CheckRequest)


def parse(body: bytes, settings: Settings) -> CheckRequest:
    """The request that a body spells. Raises RequestError or RequestValidationError."""
    return within(read_json(_REQUEST, body), settings)


def within(asked: CheckRequest, settings: Settings) -> CheckRequest:
    """The same request. Raises RequestError, 413, if it asks for more than the settings allow."""
    if asked.n_items > settings.max_items:
        raise RequestError(
            413, f"too many items: {asked.n_items} (limit {settings.max_items})", hint=_JOB
        )
    most = settings.max_characters
    for at, n in enumerate(_sizes(asked)):
        if n > most:
            what = f"item {at}" if asked.text is None else "text"
            raise RequestError(
                413, f"{what} too long: {n:,} characters (limit {most:,})",
                hint=f"shorten it, or {_JOB}",
            )  # fmt: skip
    return asked


async def judge(
    request: Request, state: State, asked: CheckRequest, encode: Callable[[StreamedAnswer], Answer]
) -> Answer:
    """Answer a check on one of the threads for checks, or say in time that it is late.

    Gives what `encode` makes of the answer. Raises RequestError, 503, when too many checks wait,
    and what `answer` and `encode` raise.
    """
    seconds = state.settings.deadline_s
    deadline = time.monotonic() + seconds

    def work() -> tuple[StreamedAnswer, Answer]:
        found = answer(asked, state, deadline)
        return found, encode(found)

    try:
        found, encoded = await state.admission.run(work, seconds)
    except LateError:
        found = late(asked, state)
        encoded = encode(found)
    # Counted once, here: work that was late may still end.
    pairs = [(verdict["policy"], verdict["label"]) for verdict in found.verdicts]
    state.metrics.count_verdicts(asked.n_items, pairs)
    note(request, n_items=asked.n_items, n_verdicts=len(pairs))
    return encoded


def answer(asked: CheckRequest, state: State, deadline: float) -> StreamedAnswer:
    """Judge what was asked, unless it is too late. Raises ContamError subclasses.

    deadline  in seconds of `time.monotonic`
    """
    if time.monotonic() >= deadline:
        return late(asked, state)
    policies = checked_policies(asked.policies)
    with registry_of(state).snapshot(asked.names) as snapshot:
        result = snapshot.reader.check(
            items_of(asked),
            policies=policies,
            max_evidence=asked.options.max_evidence,
            allow_missing=asked.options.allow_missing,
            deadline=deadline,
        )
        return answer_of(result, snapshot, asked.options, _read_of(asked))


def late(asked: CheckRequest, state: State) -> StreamedAnswer:
    """The answer when the time is over: every item is not checkable."""
    policies = checked_policies(asked.policies)
    names = [ItemName.of(item) for item in items_of(asked)]
    with registry_of(state).snapshot(asked.names) as snapshot:
        return late_answer(names, policies, snapshot, _read_of(asked))


def items_of(asked: CheckRequest) -> list[BenchItem]:
    """The items of a request as the library has them."""
    if asked.text is not None:
        return [BenchItem(benchmark=TEXT_BENCHMARK, split="", item_id="1", question=asked.text)]
    return [item.read for item in asked.items or ()]


def _read_of(asked: CheckRequest) -> dict[str, Any]:
    return items_read((item.read, item.source) for item in asked.items or ())


def _sizes(asked: CheckRequest) -> Iterator[int]:
    """Characters of each item."""
    if asked.text is not None:
        yield len(asked.text)
    for item in items_of(asked) if asked.items else ():
        yield sum(map(len, (item.passage or "", item.question, *item.choices, item.answer or "")))


_CHECK: Final = Needs("check")
_READ: Final = Needs("read-documents")

router = APIRouter(prefix="/v1", default_response_class=Response, dependencies=[Depends(_CHECK)])


@router.get(
    "/indexes", tags=["indexes"], responses={200: {"model": IndexList}, **problems(401, 403, 503)}
)
def list_indexes(state: CurrentState) -> Response:
    """All indexes."""
    registry = registry_of(state)
    found = []
    for name in registry.names:
        with registry.snapshot([name]) as snapshot:
            found.append(index_answer(snapshot))
    return JSONResponse({"indexes": found})


@router.get(
    "/indexes/{index_id}",
    tags=["indexes"],
    responses={200: {"model": IndexAnswer}, **problems(401, 403, 404, 422, 503)},
)
def show_index(index_id: str, state: CurrentState) -> Response:
    """One index: corpus, guarantee, coverage, sizes and dates."""
    with registry_of(state).snapshot([index_id]) as snapshot:
        return JSONResponse(index_answer(snapshot))


@router.post(
    "/indexes/{index_id}/reload",
    tags=["indexes"],
    dependencies=[Depends(Needs("admin"))],
    responses={200: {"model": IndexAnswer}, **problems(401, 403, 404, 422, 503)},
)
def reload_index(index_id: str, state: CurrentState) -> Response:
    """Read the index's manifest anew; requests under way end with the state before."""
    return JSONResponse(index_answer(registry_of(state).reload(index_id)))


def index_answer(snapshot: IndexSnapshot) -> dict[str, Any]:
    """An index as `contam.server.schemas.IndexAnswer` has it: no path of this machine."""
    (index,) = snapshot.opened.indexes
    figures, recipe, covered = describe(index), index.recipe, snapshot.opened.coverage
    kept = (
        *("n_segments", "n_documents", "n_tokens", "n_text_bytes", "n_index_bytes"),
        *("capped_grams", "dates", "n_unreadable_dates"),
    )
    return {
        "id": snapshot.names[0],
        "state": snapshot.states[0],
        "recipe": recipe.name,
        "unit": recipe.unit,
        "normaliser": recipe.normaliser,
        "gram": recipe.gram,
        "tokenizer_sha256": None if recipe.tokenizer is None else recipe.tokenizer["sha256"],
        "stride": recipe.stride,
        "guarantee_tokens": recipe.guarantee,
        "near_copies": recipe.minhash,
        "corpus": [PurePath(path).name for path in figures["corpus"]],
        "coverage": {"not_indexed": [], "n_not_indexed": 0, **summary(covered.totals)},
        **{name: figures[name] for name in kept},
    }


@router.get(
    "/policies", tags=["policies"], responses={200: {"model": PolicyList}, **problems(401, 403)}
)
def list_policies() -> Response:
    """All policies and presets, as `contam policies --json` describes them."""
    specs = known_policies().values()
    found = [{**spec.to_dict(), "fingerprint": spec.fingerprint()} for spec in specs]
    return JSONResponse({"policies": found})


@router.post(
    "/check",
    tags=["check"],
    responses={
        200: {"model": CheckAnswer},
        **problems(400, 401, 403, 404, 413, 422, 503),
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

    Past the service's deadline every item is `not_checkable`, with the reason `deadline`. An answer
    of more than 32 MiB is refused; nothing is left out of one.

    Text around matches (`context`) also needs the scope `read-documents`.
    """
    refuse_parameters(request)
    registry_of(state)
    asked = await asyncio.to_thread(parse, await request.body(), state.settings)
    if asked.options.context:
        _READ.refuse(caller, "options.context")
    encoded = await judge(request, state, asked, StreamedAnswer.as_json)
    return Response(encoded, media_type="application/json")
