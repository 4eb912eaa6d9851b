"""Define what a client returns and raises, encode items, decode answers, and ask again."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from contam.benchmark.fields import RowError
from contam.benchmark.items import BenchItem, ItemName
from contam.benchmark.rows import read_item
from contam.detect.given import given_benchmark, is_table
from contam.detect.labels import LABELS, SHOWN
from contam.detect.notebook import result_html, result_line
from contam.detect.policies.verdict import COLUMNS, Verdict
from contam.errors import BenchmarkError, ContamError, IncompleteError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contam.detect.given import Source

    Item: TypeAlias = BenchItem | Mapping[str, Any]
    Items: TypeAlias = (
        list[Item] | list[BenchItem] | list[dict[str, Any]] | tuple[Item, ...] | Source
    )
    Row: TypeAlias = dict[str, Any]


_UNAUTHORISED: Final = "unauthorised"
_KEY_HINT: Final = (
    "set CONTAM_KEY, or CONTAM_KEY_FILE to a file that holds it; the operator of the service makes "
    "one by `contam keys add`"
)
BUSY: Final = frozenset({429, 502, 503, 504})
"""Statuses of a service, or of a proxy before it, that may answer later."""

_OTHER_CALL: Final = frozenset({400, 401, 403, 404, 405, 413, 415, 422})
"""Statuses that mean a mistake in the call."""


class ServiceError(ContamError):
    """The service refused or failed, and said why in a problem document.

    status      of HTTP; code and hint are the problem's
    request_id  what the service's own log calls the request, "" when it said nothing
    exit_code   2 for a mistake in the call, 4 for an answer that is not whole, else 1
    """

    def __init__(
        self, message: str, *, status: int, code: str, hint: str = "", request_id: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.exit_code = 2 if status in _OTHER_CALL else 4 if code == "incomplete" else 1


class BusyError(ServiceError):
    """The service had no room (429, 503) for as long as was waited."""


class UnreachableError(ContamError):
    """No answer came: no connection, or one that broke before the answer was whole.

    again  whether asking again may help (it does not for a certificate that is not trusted)
    """

    code = "unreachable"

    def __init__(self, message: str, *, hint: str = "", again: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.again = again


class AnswerError(ContamError):
    """An answer came and is not what was asked for: not JSON, parts missing, items left out."""

    code = "bad-answer"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(
            message, hint=hint or "is this the address of a contam service, of a version that fits?"
        )


class JobError(ContamError):
    """A job ended without results; the code is the reason that the service gives."""

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


def problem_error(status: int, problem: Mapping[str, object], where: str) -> ServiceError:
    """The error of a problem document, {} when the body was none."""

    def field_text(name: str) -> str:
        value = problem.get(name)
        return value if isinstance(value, str) else ""

    kind = BusyError if status in BUSY else ServiceError
    hint = _KEY_HINT if field_text("code") == _UNAUTHORISED else field_text("hint")
    message = field_text("detail") or field_text("title") or f"status {status}"
    places = problem.get("errors")
    if isinstance(places, list):
        named = [
            f"{'.'.join(map(str, place.get('loc') or ()))}: {place.get('msg', '')}"
            for place in places[:3]
            if isinstance(place, dict)
        ]
        message = "; ".join([message, *named])
    return kind(
        f"{where}: {message}",
        status=status,
        code=field_text("code") or "http",
        hint=hint,
        request_id=field_text("request_id"),
    )


#: Problems that do not pass by waiting, unless the service says how long.
_LASTING: Final = frozenset({"corpus", "shard", "incomplete", "index-damaged"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often to ask again, with waits that double and vary.

    attempts   requests in all, the first included
    first_s    longest first wait; the next ones double up to longest_s
    total_s    seconds of waiting in all: a Retry-After beyond what is left of it ends the attempts
    """

    attempts: int = 6
    first_s: float = 0.5
    longest_s: float = 30.0
    total_s: float = 120.0

    def wait_s(self, attempt: int, waited_s: float, asked_s: float | None = None) -> float | None:
        """Seconds before the next request, None when there is to be none.

        attempt   requests made so far; waited_s  seconds waited so far
        asked_s   what the service asked for; it is never undercut
        """
        if attempt >= self.attempts:
            return None
        step = min(self.longest_s, self.first_s * 2.0 ** (attempt - 1))
        # Clients that were turned away together must not come back together.
        drawn = random.random()  # noqa: S311 - no secret
        wait = step * (0.5 + drawn / 2)
        if asked_s is not None:
            wait = max(asked_s, min(wait, asked_s)) + drawn * min(step, 1 + asked_s / 4)
        return wait if waited_s + wait <= self.total_s else None


PATIENT: Final = Retry(attempts=60, total_s=900.0)
"""For whoever waits for a job: it outlives a restart of the service, and so does the wait."""


def may_help(status: int, code: str, headers: Mapping[str, str]) -> bool:
    """Whether a refusal is one that asking again may get past."""
    if code in _LASTING:
        return "retry-after" in headers
    return status in BUSY


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that `Retry-After` asks for; None when it does not."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() else None


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


BENCHMARK: Final = "items"
"""The benchmark of items that name none, as the service has it, too."""

TEXT_ITEM: Final = ItemName("text", "", "1")
"""The name of the item that a bare text is sent as."""

_FIELDS: Final = (
    "id", "benchmark", "split", "passage", "question", "choices", "answer", "answer_index",
    "incomplete",
)  # fmt: skip
_HINT: Final = f"fields: {', '.join(_FIELDS)}"
_STATES: Final = ENDED | {"queued", "running"}


def item_row(item: BenchItem) -> Row:
    """One item as the service takes it, without what it has not. Raises UsageError."""
    if not item.item_id or not item.question:
        raise UsageError("an item needs an id and a question")
    row = {"id": item.item_id, **{name: getattr(item, name) for name in _FIELDS if name != "id"}}
    row = {name: value for name, value in row.items() if value not in (None, "", ())}
    if "choices" in row:
        row["choices"] = list(row["choices"])
    return row


def given_items(items: Source) -> list[BenchItem]:
    """Items as they are, those of dictionaries, of a table, or of tables by name.

    Dictionaries and tables are read as `contam.query` reads them. Raises UsageError for a row that
    is no item: none is left out unsaid.
    """
    if not (is_table(items) or _is_named(items)):
        entries = [items] if isinstance(items, Mapping) else items
        return [_given_item(entry, number) for number, entry in enumerate(entries, 1)]
    # Here, not above: a client that is given no table need not load what reads one.
    from contam.benchmark.read_files import read_benchmarks

    try:
        found = read_benchmarks(given_benchmark(items, BENCHMARK))
    except BenchmarkError as error:
        raise UsageError(error.message, hint=_HINT) from error
    for row in (row for benchmark in found for row in benchmark.skipped):
        raise UsageError(f"{row.source}, row {row.line}: {row.reason}")
    return [item for benchmark in found for item in benchmark.items]


def _is_named(items: object) -> bool:
    """Whether it is tables, or lists of rows, by name: an item has texts, too."""
    return (
        isinstance(items, Mapping)
        and bool(items)
        and all(is_table(value) or isinstance(value, list | tuple) for value in items.values())
    )


def _given_item(entry: object, number: int) -> BenchItem:
    if isinstance(entry, BenchItem):
        return entry
    if not isinstance(entry, Mapping):
        kind = type(entry).__name__
        raise UsageError(
            f"item {number} is of type {kind}", hint="give `BenchItem`s or dictionaries"
        )
    try:
        return read_item(entry, BENCHMARK)
    except RowError as error:
        at = f", field {error.field!r}" if error.field else ""
        raise UsageError(f"item {number}{at}: {error.message}", hint=_HINT) from error


def item_rows(items: Source) -> list[Row]:
    """Items as the service takes them, each named once; UsageError otherwise."""
    rows = [item_row(item) for item in given_items(items)]
    names = {name_of(row) for row in rows}
    if not rows or len(names) != len(rows):
        raise UsageError("items must be one or more, each named once")
    return rows


def name_of(row: Row) -> ItemName:
    """The name of a row's item, as the service will give it."""
    return ItemName(row.get("benchmark", BENCHMARK), row.get("split", ""), row["id"])


def json_bytes(value: object) -> bytes:
    """Compact JSON. A text with half a character in it, which no JSON holds, is a UsageError."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except (UnicodeEncodeError, TypeError, ValueError) as error:
        raise UsageError(f"not to be written as JSON: {type(error).__name__}") from error


def parsed(body: bytes, where: str) -> Row:
    """A body that has to be a JSON object; AnswerError otherwise."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"{where}: the answer is not JSON") from error
    if not isinstance(found, dict):
        raise AnswerError(f"{where}: the answer is no JSON object")
    return found


def problem_of(body: bytes) -> Row:
    """The problem document of a refusal, {} when the body is none (a proxy's page)."""
    try:
        return parsed(body, "")
    except AnswerError:
        return {}


def answer_of(
    tree: Mapping[str, Any],
    wanted: Sequence[ItemName],
    n_policies: int,
    *,
    allow_missing: bool = False,
    evidence: bool = True,
) -> Answer:
    """The answer to a check of `wanted` items by `n_policies` policies; evidence: was it asked for.

    Raises AnswerError when anything is missing, of a wrong type, or not about just these items: an
    item that was left out must not look clean.
    """
    rows = _typed(tree, "verdicts", list)
    return Answer(
        **_judged(rows, wanted, n_policies, evidence=evidence),
        index=_index(tree),
        states=tuple(map(str, tree.get("states") or ())),
        guarantee_tokens=_typed(tree, "guarantee_tokens", int),
        coverage=_typed(tree, "coverage", dict),
        capped=tree.get("capped") or {},
        read=tree.get("read") or {},
        allow_missing=allow_missing,
    )


def _judged(
    rows: Iterable[object], wanted: Sequence[ItemName], n_policies: int, *, evidence: bool
) -> Row:
    verdicts: list[Verdict] = []
    by_item: dict[ItemName, tuple[EvidenceRow, ...]] = {}
    judged: dict[ItemName, set[str]] = {name: set() for name in wanted}
    for row in rows:
        if not isinstance(row, dict):
            raise AnswerError("a verdict is no JSON object")
        verdict = verdict_of(row)
        name = ItemName.of(verdict)
        if name not in judged or verdict.policy in judged[name]:
            raise AnswerError("a verdict about an item or policy that was not asked, or again")
        judged[name].add(verdict.policy)
        verdicts.append(verdict)
        if evidence:
            by_item.setdefault(name, tuple(map(evidence_of, _typed(row, "evidence", list))))
    if missing := sum(len(policies) != n_policies for policies in judged.values()):
        raise AnswerError(f"{missing} of {len(judged)} items were not answered by every policy")
    return {"verdicts": tuple(verdicts), "evidence": by_item}


def verdict_of(row: Mapping[str, Any]) -> Verdict:
    """A verdict of the wire as the library's; AnswerError for one that cannot be."""
    known: dict[str, Any] = {}
    for column in COLUMNS:
        value = row.get(column.name)
        if not column.holds(value):
            raise AnswerError(f"a verdict without {column.name}")
        known[column.name] = column.kind(value) if isinstance(value, int) else value
    if known["label"] not in LABELS:
        raise AnswerError("a verdict without a known label")
    return Verdict(**known)


def evidence_of(row: object) -> EvidenceRow:
    """A row of evidence; AnswerError when a field that every row has is missing."""
    if not isinstance(row, dict):
        raise AnswerError("a row of evidence is no JSON object")
    known: dict[str, Any] = {own.name: row.get(own.name) for own in fields(EvidenceRow)}
    for own in fields(EvidenceRow):
        if own.default is MISSING and known[own.name] is None:
            raise AnswerError(f"a row of evidence without {own.name}")
    return EvidenceRow(**known)


def _index(tree: Mapping[str, Any]) -> tuple[str, ...]:
    found = tree.get("index")
    if isinstance(found, str):
        return (found,)
    if not isinstance(found, list) or not found:
        raise AnswerError("the answer names no index")
    return tuple(map(str, found))


def job_of(tree: Mapping[str, Any]) -> Job:
    """A job of the wire; AnswerError when it has no id or no state that is known."""
    state = _typed(tree, "state", str)
    if state not in _STATES:
        raise AnswerError(f"a job in the unknown state {state[:40]!r}")
    progress = tree.get("progress")
    progress = progress if isinstance(progress, dict) else {}
    share, phase = progress.get("share"), progress.get("phase")
    known = float(share) if isinstance(share, int | float) else 0.0
    return Job(
        id=_typed(tree, "id", str),
        state=state,
        share=1.0 if state == "done" else known,
        phase=phase if isinstance(phase, str) else "",
        tree=tree,
    )


def job_mapping(rows: Iterable[Row]) -> dict[str, str]:
    """Which field of uploaded rows is which part: all are named, so that none is guessed."""
    used = {name for row in rows for name in row}
    return {name: name for name in _FIELDS if name in used}


def job_answer(
    job: Job,
    run: Mapping[str, Any],
    verdicts: Sequence[Row],
    evidence: Iterable[Row],
    wanted: Sequence[ItemName] | None,
) -> Answer:
    """The answer that the tables of a finished job make; AnswerError as for `answer_of`.

    run     the run.json of its result;  wanted  None takes the items that it has verdicts of
    """
    by_item: dict[ItemName, list[EvidenceRow]] = {}
    for row in evidence:
        by_item.setdefault(_named(row), []).append(evidence_of(row))
    if wanted is None:
        wanted = list(dict.fromkeys(map(_named, verdicts)))
    parameters = _typed(run, "parameters", dict)
    policies = _typed(parameters, "policies", list)
    index = _typed(run, "index", dict)
    return Answer(
        verdicts=_judged(verdicts, wanted, len(policies), evidence=False)["verdicts"],
        evidence={name: tuple(rows) for name, rows in by_item.items()},
        index=_index(job.tree),
        states=tuple(map(str, _typed(index, "ids", list))),
        guarantee_tokens=_typed(index, "guarantee_tokens", int),
        coverage=_typed(run, "coverage", dict),
        capped=_typed(index, "capped", dict),
        allow_missing=parameters.get("allow_missing") is True,
    )


def _named(row: Row) -> ItemName:
    return ItemName(*(str(row.get(field)) for field in ItemName._fields))


def lines_of(body: bytes, where: str) -> Iterator[Row]:
    """JSON lines; AnswerError for one that is none, the last without its line feed included."""
    if body and not body.endswith(b"\n"):
        raise AnswerError(f"{where}: the last line is cut off")
    for line in body.splitlines():
        if line.strip():
            yield parsed(line, where)


def _typed(tree: Mapping[str, Any], name: str, kind: type[Any]) -> Any:  # noqa: ANN401 - `kind`
    value = tree.get(name)
    if not isinstance(value, kind):
        raise AnswerError(f"the answer has no {name}")
    return value
