"""Define what a client returns: verdicts, evidence and jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.items import ItemName
from contam.detect.labels import SHOWN
from contam.detect.notebook import result_html, result_line
from contam.errors import IncompleteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contam.detect.policies.verdict import Verdict

LATE: Final = "deadline"
"""How the reason of a verdict begins for which there was no time."""

ENDED: Final = frozenset({"done", "failed", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """One run of an item's part in a document; the fields are the columns of `evidence.parquet`.

    item_text, document_text  the run in both; before and after: the document around it. None in the
                              results of a job, which hold places and no text
    """

    part: str
    document_id: str
    shard: str
    row: int
    item_start: int
    item_end: int
    document_start: int
    document_end: int
    n_tokens: int
    url: str | None = None
    date: str | None = None
    source: str | None = None
    alignment: int | None = None
    document_token: int | None = None
    similarity: float | None = None
    answer_mark: str | None = None
    item_text: str | None = None
    document_text: str | None = None
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A finished check. Iterating gives a `contam.Verdict` per item and policy.

    evidence          rows by item, best documents first
    index, states     the indexes that answered, and the state of each
    guarantee_tokens  tokens of the shortest run that is always found
    coverage          what of the corpus the indexes answer for, as in run.json
    capped            what may have been missed because grams are too common
    read              how the service read the items, by benchmark: `fields`, `unread`, `left_out`,
                      `incomplete`; {} for a job, of which `run.json` says it
    allow_missing     whether an answer over part of the corpus was asked for
    """

    verdicts: tuple[Verdict, ...]
    evidence: Mapping[ItemName, tuple[EvidenceRow, ...]] = field(repr=False)
    index: tuple[str, ...]
    states: tuple[str, ...] = ()
    guarantee_tokens: int
    coverage: Mapping[str, Any] = field(repr=False)
    capped: Mapping[str, Any] = field(repr=False)
    read: Mapping[str, Any] = field(default_factory=dict, repr=False)
    allow_missing: bool = False

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    @property
    def complete(self) -> bool:
        """Whether every shard of the corpus is answered for."""
        return self.coverage.get("complete") is True

    def evidence_of(self, verdict: Verdict) -> tuple[EvidenceRow, ...]:
        """The evidence of a verdict's item."""
        name = ItemName.of(verdict)
        return self.evidence.get(name, ())

    def flagged(self) -> tuple[Verdict, ...]:
        """The verdicts `contaminated` and `suspect`."""
        return tuple(verdict for verdict in self.verdicts if verdict.flagged)

    def counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """Items by benchmark, policy and label; labels nobody got are 0."""
        counts: dict[str, dict[str, dict[str, int]]] = {}
        for verdict in self.verdicts:
            by_policy = counts.setdefault(verdict.benchmark, {})
            by_policy.setdefault(verdict.policy, dict.fromkeys(SHOWN, 0))[verdict.label] += 1
        return counts

    def __repr__(self) -> str:
        return result_line(type(self).__name__, self.counts(), self.coverage)

    def _repr_html_(self) -> str:
        return result_html(self.counts(), self.coverage)

    def exit_code(self) -> int:
        """0, or 4 when part of the corpus was not read (unless allowed) or time ran out."""
        whole = self.complete or self.allow_missing
        return 0 if whole and not self.late else IncompleteError.exit_code

    @property
    def late(self) -> bool:
        """Whether the service's deadline passed before all items were judged."""
        return any(verdict.reason.startswith(LATE) for verdict in self.verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as the service last described it.

    state     queued, running, done, failed or cancelled
    share     0 to 1, how much of the documents to read are read;  phase  what it does now
    tree      all that the service says of it
    """

    id: str
    state: str
    share: float = 0.0
    phase: str = ""
    tree: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ENDED


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """A re-scoring: rows of every table of `contam rescore` by its name, and how it was made."""

    tables: Mapping[str, list[dict[str, Any]]]
    summary: str
    run: Mapping[str, Any] = field(repr=False)
