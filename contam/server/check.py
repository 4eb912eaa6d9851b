"""Check items: read the request, admit it, query the indexes, answer. List indexes and policies."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import numpy as np
import orjson
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter

from contam.benchmark.items import BenchItem, ItemName
from contam.benchmark.reading import items_read
from contam.detect.indexed.index_reader import TEXT_BENCHMARK, quote
from contam.detect.match.workers import REASON as DEADLINE
from contam.detect.policies.policy import get_policy
from contam.detect.policies.policy import list_policies as shipped
from contam.detect.policies.verdict import COLUMNS
from contam.detect.result import VERDICTS, item_ranks
from contam.index.shards import describe
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
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from contam.config import Settings
    from contam.detect.policies.policy_spec import PolicySpec
    from contam.detect.result import ScanResult
    from contam.server.indexes import IndexSnapshot
    from contam.server.schemas import Options


Row = dict[str, Any]
Place = tuple[str, int]

#: Documents whose texts are held at once, unless one item has more.
_DOCUMENTS: Final = 128


class EvidenceReader:
    """Rows of evidence by item, their texts read when they are asked for."""

    def __init__(self, result: ScanResult, snapshot: IndexSnapshot, options: Options) -> None:
        self._columns = result.evidence_columns
        self._snapshot = snapshot
        self._context = options.context
        owner = self._columns["item_id"]
        assert isinstance(owner, schemas.Repeated)  # noqa: S101 - for the type checker: as finishing makes it
        bounds = np.searchsorted(owner.index, np.arange(len(result.items_in_order) + 1)).tolist()
        self._items = result.items_in_order
        self._bounds = list(pairwise(bounds))

    def by_item(self) -> Iterator[list[Row]]:
        """The rows of each item in order, with the matching texts and the text around them."""
        first = 0
        while first < len(self._bounds):
            last, places = first, set[Place]()
            pieces: list[list[Row]] = []
            while last < len(self._bounds) and (last == first or len(places) < _DOCUMENTS):
                rows = self._rows(*self._bounds[last])
                places |= {(row["shard"], row["row"]) for row in rows}
                pieces.append(rows)
                last += 1
            texts = quote(self._snapshot.opened, places)
            for at, rows in enumerate(pieces, first):
                yield self._with_texts(rows, at, texts)
            first = last

    def _rows(self, begin: int, end: int) -> list[Row]:
        columns = schemas.part(self._columns, begin, end)
        rows = schemas.records(columns, schemas.EVIDENCE)
        for row in rows:
            for name in ItemName._fields:
                del row[name]
        return rows

    def _with_texts(self, rows: list[Row], at: int, texts: dict[Place, str]) -> list[Row]:
        item = self._items[at]
        for row in rows:
            own = item.part_text(row["part"])[row["item_start"] : row["item_end"]]
            row["item_text"] = own or None
            row["document_text"] = row["before"] = row["after"] = None
            text = texts.get((row["shard"], row["row"]))
            if text is not None:
                start, end = row["document_start"], row["document_end"]
                row["document_text"] = text[start:end]
                if self._context:
                    row["before"] = text[max(start - self._context, 0) : start]
                    row["after"] = text[end : end + self._context]
        return rows


MOST_BYTES: Final = 32 << 20
"""Bytes that an answer to a check may have."""

_MOST_FAILURES: Final = 20
_NOTHING_KNOWN: Final = {
    **{column.name: None if column.nullable else column.kind() for column in COLUMNS},
    "label": "not_checkable",
    "exposure": "none",
    "reason": DEADLINE,
}


@dataclass(frozen=True, slots=True, eq=False)
class StreamedAnswer:
    """An answer to a check, its evidence not made yet.

    verdicts  without their evidence, item by item;  rest  what else is said
    evidence  None if not asked for;  n_policies  verdicts of each item
    """

    verdicts: list[Row]
    rest: Row
    evidence: EvidenceReader | None
    n_policies: int

    def rows(self) -> Iterator[Row]:
        """The verdicts with their evidence, each made when it is asked for."""
        if self.evidence is None:
            yield from self.verdicts
            return
        verdicts = iter(self.verdicts)
        for found in self.evidence.by_item():
            for verdict in islice(verdicts, self.n_policies):
                yield {**verdict, "evidence": found}

    def whole(self) -> Row:
        """All of it: see `contam.server.schemas.CheckAnswer`."""
        return {"verdicts": list(self.rows()), **self.rest}

    def as_json(self, most_bytes: int = MOST_BYTES) -> bytes:
        """All of it as JSON. Raises RequestError, 413, as soon as that has too many bytes."""
        made = bytearray(b'{"verdicts":[')
        end = orjson.dumps(self.rest)[1:]
        for row in self.rows():
            made += orjson.dumps(row)
            made += b","
            if len(made) + len(end) + 1 > most_bytes:
                raise too_large(most_bytes)
        if made.endswith(b","):
            made.pop()
        made += b"],"
        made += end
        return bytes(made)


def answer_of(
    result: ScanResult, snapshot: IndexSnapshot, options: Options, read: Row
) -> StreamedAnswer:
    """The answer that a result makes; read  how the items were read."""
    # Not from `run`, which lists every shard: there may be thousands.
    covered = snapshot.opened.coverage if result.covered is None else result.covered
    verdicts = schemas.records(result.verdict_columns, VERDICTS)
    return StreamedAnswer(
        verdicts=verdicts,
        rest=_rest(snapshot, covered.totals, result.about_index()["capped"], read),
        evidence=EvidenceReader(result, snapshot, options) if options.evidence else None,
        n_policies=len(verdicts) // len(result.items_in_order),
    )


def too_large(most_bytes: int) -> RequestError:
    """The refusal of an answer beyond the limit: nothing is left out of one silently."""
    return RequestError(
        413,
        f"the answer would have more than {most_bytes} bytes",
        code="answer-too-large",
        hint="ask for fewer items, less context or max_evidence, or make a job of it: "
        "POST /v1/jobs",
    )


def late_answer(
    names: Sequence[tuple[str, str, str]],
    policies: Sequence[str],
    snapshot: IndexSnapshot,
    read: Row,
) -> StreamedAnswer:
    """The answer when the time is over: nothing is known of any item (benchmark, split, id)."""
    verdicts = [
        {**_NOTHING_KNOWN, **ItemName(*names[i])._asdict(), "policy": policy, "evidence": []}
        for i in np.argsort(item_ranks(names)).tolist()
        for policy in policies
    ]
    capped = {"cap": snapshot.opened.recipe.cap, "grams": 0, "items": 0, "first_items": []}
    return StreamedAnswer(
        verdicts=verdicts,
        rest=_rest(snapshot, snapshot.opened.coverage.totals, capped, read),
        evidence=None,
        n_policies=len(policies),
    )


def summary(coverage: Mapping[str, Any]) -> Row:
    """A coverage without its shards one by one: of those that failed, the first are named."""
    short = {name: value for name, value in coverage.items() if name != "by_shard"}
    counted = {
        "failed": "shards_failed",
        "excluded": "shards_excluded",
        "not_indexed": "not_indexed",
    }
    for name, kind in counted.items():
        if kind == "shards_failed" or short.get(kind):
            short[f"n_{name}"] = len(short[kind])
    for kind in (*counted.values(), "passed_over", "unread_columns"):
        if names := short.get(kind):
            short[kind] = names[:_MOST_FAILURES]
    return short


def _rest(
    snapshot: IndexSnapshot, coverage: Mapping[str, Any], capped: Mapping[str, Any], read: Row
) -> Row:
    """What an answer says besides its verdicts."""
    return {
        "index": list(snapshot.names),
        "states": list(snapshot.states),
        "guarantee_tokens": snapshot.reader.guarantee_tokens,
        "coverage": summary(coverage),
        "capped": capped,
        "read": read,
    }


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
