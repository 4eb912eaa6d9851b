"""Write each client operation once, as a generator that asks a driver for requests.

`Client` and `AsyncClient` run the same flows; one waits for each step, the other awaits it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypedDict

from contam.benchmark.items import BenchItem
from contam.client import jobs, wire
from contam.client.calls import Flow, Send, sent
from contam.client.failures import AnswerError, ServiceError
from contam.client.retry import Retry
from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.benchmark.items import ItemName
    from contam.client.answers import Answer
    from contam.client.wire import Item, Items

CHECK_ITEMS: Final = 256
"""Items that go into one check; more are judged by a job, as `contam query` judges them: together,
so that wording which the items of a benchmark share counts alike."""

_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}


class JobOptions(TypedDict, total=False):
    """What may be asked of a job."""

    index: str | Sequence[str] | None
    policies: Sequence[str]
    max_evidence: int
    allow_missing: bool


class CheckOptions(JobOptions, total=False):
    """What may be asked of a check."""

    evidence: bool
    context: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of the items: by which indexes and policies, and with how much evidence.

    index  a name, several that answer as one, or None for all that are served
    """

    index: str | Sequence[str] | None = None
    policies: Sequence[str] = ("contam",)
    evidence: bool = True
    max_evidence: int = 20
    context: int = 0
    allow_missing: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.policies, str) or not self.policies:
            raise UsageError("policies must be a list of names", hint='such as ["contam"]')
        if len(set(self.policies)) != len(self.policies):
            raise UsageError("a policy is named twice", hint="name each policy once")

    def body(self) -> dict[str, Any]:
        """Everything of a check request but the items."""
        options = {
            name: getattr(self, name)
            for name in ("evidence", "max_evidence", "context", "allow_missing")
        }
        index = self.index if self.index is None or isinstance(self.index, str) else [*self.index]
        named = {} if index is None else {"index": index}
        return {**named, "policies": list(self.policies), "options": options}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """The flows of one client."""

    retry: Retry = field(default_factory=Retry)

    def check(self, items: str | Item | Items, asked: Asked) -> Flow[Answer]:
        """Judge a text, one item, or items."""
        if isinstance(items, str):
            return (yield from self._check({"text": items}, [wire.TEXT_ITEM], asked))
        rows = wire.item_rows([items] if isinstance(items, BenchItem) else items)
        if len(rows) <= CHECK_ITEMS:
            names = [wire.name_of(row) for row in rows]
            try:
                return (yield from self._check({"items": rows}, names, asked))
            except ServiceError as error:
                # The service takes less at once than usual: a job has its own, larger limits.
                if error.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE or len(rows) == 1:
                    raise
        job = yield from jobs.submit(rows, asked, self.retry, key=None, keep_text=False)
        job = yield from jobs.wait(job, timeout_s=None, watcher=None)
        rows = [{"benchmark": wire.BENCHMARK, **row} for row in rows]
        return (yield from jobs.results(job, self.retry, [wire.name_of(row) for row in rows]))

    def _check(
        self, what: Mapping[str, Any], names: Sequence[ItemName], asked: Asked
    ) -> Flow[Answer]:
        call = Send(
            method="POST",
            path="/v1/check",
            headers=_JSON,
            body=wire.json_bytes({**asked.body(), **what}),
        )
        reply = yield from sent(call, self.retry)
        return wire.answer_of(
            wire.parsed(reply.body, str(call)),
            names,
            len(asked.policies),
            allow_missing=asked.allow_missing,
            evidence=asked.evidence,
        )

    def listed(self, what: str) -> Flow[list[dict[str, Any]]]:
        """All indexes, or all policies."""
        call = Send(method="GET", path=f"/v1/{what}")
        reply = yield from sent(call, self.retry)
        found = wire.parsed(reply.body, str(call)).get(what)
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise AnswerError(f"{call}: the answer has no list of {what}")
        return found
