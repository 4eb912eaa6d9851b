"""Read a check request, apply the limits and query the indexes."""

from __future__ import annotations

import base64
import binascii
import time
from typing import TYPE_CHECKING

import numpy as np
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from contam.benchmark.items import BenchItem, ItemName
from contam.detect.indexed.blind import (
    KEY_BYTES,
    BlindItem,
    BlindPart,
    check_blind,
    refuse_other_spelling,
)
from contam.detect.indexed.index_reader import TEXT_BENCHMARK
from contam.server.checks.admission import LateError
from contam.server.checks.answers import answer_of, late_answer
from contam.server.checks.policies import checked_policies
from contam.server.logs import note
from contam.server.problems.failures import RequestError
from contam.server.problems.known_fields import with_fields
from contam.server.problems.spelling import no_json, refuse_doubled
from contam.server.schemas.check import CheckRequest
from contam.server.state import State, registry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastapi import Request, Response

    from contam.config import Settings
    from contam.server.checks.answers import StreamedAnswer
    from contam.server.indexes.registry import IndexSnapshot
    from contam.server.schemas import check

_JOB = "make a job of it: POST /v1/jobs"


def parse(body: bytes, settings: Settings) -> CheckRequest:
    """The request that a body spells. Raises RequestValidationError, or RequestError beyond limits.

    To be called on a thread: a large body would hold up every other request.
    """
    try:
        asked = CheckRequest.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        if found[0]["type"] == "json_invalid":
            raise no_json(body) from None
        raise RequestValidationError(with_fields(CheckRequest, found)) from None
    refuse_doubled(body)
    return within(asked, settings)


def within(asked: CheckRequest, settings: Settings) -> CheckRequest:
    """The same request. Raises RequestError, 413, if it asks for more than the settings allow."""
    if asked.n_items > settings.max_items:
        raise RequestError(
            413, f"{asked.n_items} items, and one check takes {settings.max_items}", hint=_JOB
        )
    most = settings.max_characters
    for at, n in enumerate(_sizes(asked)):
        if n > most:
            what = f"item {at}" if asked.text is None else "the text"
            raise RequestError(
                413, f"{what} has {n} characters, and {most} is the most",
                hint=f"shorten it, or {_JOB}",
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


async def judge(
    request: Request,
    state: State,
    read: Callable[[], CheckRequest],
    build_answer: Callable[[CheckRequest, StreamedAnswer], Response],
) -> Response:
    """Answer a check on one of the threads for checks, or say in time that it is late.

    read  gives what is asked;  build_answer  makes the response; both run on that thread

    Raises RequestError, 503, when too many checks wait, and what `read` and `answer` raise.
    """
    registry_of(state)
    seconds = state.settings.deadline_s
    deadline = time.monotonic() + seconds
    parsed: list[CheckRequest] = []

    def work() -> tuple[StreamedAnswer, Response]:
        parsed.append(read())
        found = answer(parsed[0], state, deadline)
        return found, build_answer(parsed[0], found)

    try:
        found, response = await state.admission.run(work, seconds)
        asked = parsed[0]
    except LateError:
        asked = parsed[0] if parsed else read()
        found = late(asked, state)
        response = build_answer(asked, found)
    # Counted once, here: work that was late may still end.
    pairs = [(verdict["policy"], verdict["label"]) for verdict in found.verdicts]
    state.metrics.count_verdicts(asked.n_items, pairs)
    note(request, n_items=asked.n_items, n_verdicts=len(pairs))
    return response


def answer(asked: CheckRequest, state: State, deadline: float) -> StreamedAnswer:
    """Judge what was asked, unless it is too late. Raises ContamError subclasses.

    deadline  in seconds of `time.monotonic`
    """
    if time.monotonic() >= deadline:
        return late(asked, state)
    policies = checked_policies(asked.policies)
    with registry_of(state).snapshot(asked.names) as snapshot:
        if asked.grams is not None:
            return _blind(asked, asked.grams, policies, snapshot, deadline)
        result = snapshot.reader.check(
            items_of(asked),
            policies=policies,
            max_evidence=asked.options.max_evidence,
            allow_missing=asked.options.allow_missing,
            deadline=deadline,
        )
        return answer_of(result, snapshot, asked.options)


def late(asked: CheckRequest, state: State) -> StreamedAnswer:
    """The answer when the time is over: every item is not checkable."""
    policies = checked_policies(asked.policies)
    hashed = asked.grams.items if asked.grams else ()
    names = [(item.benchmark, item.split, item.id) for item in hashed]
    names += [ItemName.of(item) for item in items_of(asked)]
    with registry_of(state).snapshot(asked.names) as snapshot:
        return late_answer(names, policies, snapshot)


def _blind(
    asked: CheckRequest,
    grams: check.Grams,
    policies: tuple[str, ...],
    snapshot: IndexSnapshot,
    deadline: float,
) -> StreamedAnswer:
    refuse_other_spelling(grams.model_dump(exclude={"items"}), snapshot.opened.recipe)
    result = check_blind(
        snapshot.opened,
        [_hashed(item) for item in grams.items],
        policies=policies,
        max_evidence=asked.options.max_evidence,
        allow_missing=asked.options.allow_missing,
        deadline=deadline,
    )
    return answer_of(result, snapshot, asked.options)


def items_of(asked: CheckRequest) -> list[BenchItem]:
    """The items of a request as the library has them; none of hashed ones."""
    if asked.text is not None:
        return [BenchItem(benchmark=TEXT_BENCHMARK, split="", item_id="1", question=asked.text)]
    return [item.read for item in asked.items or ()]


def _hashed(item: check.HashedItem) -> BlindItem:
    return BlindItem(
        benchmark=item.benchmark,
        split=item.split,
        item_id=item.id,
        parts={name: _part(part) for name, part in item.parts.items()},
    )


def _part(part: check.HashedPart) -> BlindPart:
    try:
        raw = base64.b64decode(part.keys, validate=True)
    except binascii.Error:
        raise RequestError(422, "keys are no Base64", hint="make them with `contam hash`") from None
    if len(raw) % KEY_BYTES:
        raise RequestError(422, "keys end in the middle of one", hint="a key has five bytes")
    wide = np.zeros((len(raw) // KEY_BYTES, 8), np.uint8)
    wide[:, 8 - KEY_BYTES :] = np.frombuffer(raw, np.uint8).reshape(-1, KEY_BYTES)
    digits = np.frombuffer(part.bits.encode(), np.uint8)
    bits = np.where(digits < ord("a"), digits - ord("0"), digits - ord("a") + 10)
    return BlindPart(wide.reshape(-1).view(">u8").astype(np.uint64), bits.astype(np.uint8))


def _sizes(asked: CheckRequest) -> Iterator[int]:
    """Characters of each item; tokens where there is no text."""
    if asked.text is not None:
        yield len(asked.text)
    for item in items_of(asked) if asked.items else ():
        yield sum(map(len, (item.passage or "", item.question, *item.choices, item.answer or "")))
    for hashed in asked.grams.items if asked.grams else ():
        yield sum(len(part.bits) for part in hashed.parts.values())
