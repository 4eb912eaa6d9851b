"""The schema of report.json: every figure a report shows, typed, and how they are counted."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from contam.corpus.dates import CLASSES, class_of, month_of
from contam.detect.labels import FLAGGED
from contam.detect.result import label_counts
from contam.detect.show.choose import source_of
from contam.errors import OutputError
from contam.files.single import reading
from contam.tables.sql import Database

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic import TypeAdapter

    from contam.detect.report import Report
    from contam.detect.result import ScanResult


SCORES: Final = "scores"
STUDIES: Final = "studies"
"""Folders of a pack, for the re-scoring and for each study."""
FORMAT: Final = 1
"""Version of report.json; a change of meaning is a new one."""

Status = Literal["clear", "flagged", "incomplete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How often something was met."""

    name: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """Where leaking documents come from: items and documents of one source."""

    source: str
    n_items: int
    n_documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFacts:
    """What one policy says of one benchmark in one corpus, or in all of them together.

    corpus                 a corpus's name, or "together"
    flagged_share          flagged items over all items, 0..1
    exposures, kinds       of the flagged items
    dates                  flagged items by what the dates of their documents allow: "leak",
                           "shared_source", "unknown"
    not_checkable_reasons  the most frequent first
    months                 flagged items by the months of their documents, as "2021-06", in order;
                           those with documents of no single month under "unknown"
    fdr                    share of chance among the flags, at most (95 %); None without calibration
    """

    policy: str
    corpus: str
    n_items: int
    contaminated: int
    suspect: int
    clean: int
    not_checkable: int
    flagged_share: float
    exposures: tuple[Counted, ...]
    kinds: tuple[Counted, ...]
    dates: tuple[Counted, ...]
    sources: tuple[SourceFacts, ...]
    not_checkable_reasons: tuple[Counted, ...]
    months: tuple[Counted, ...] = ()
    fdr: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkFacts:
    """One benchmark: its size, the day it came out, and what each policy says."""

    name: str
    n_items: int
    n_skipped: int
    released: str | None
    policies: tuple[PolicyFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFacts:
    """One corpus: what it is, how it was searched, and what of it was read.

    how               "scan" or "index"
    guarantee_tokens  tokens of the shortest run that is always found
    sources           of each policy, the worst sources of a corpus that names them
    """

    name: str
    stage: str
    how: Literal["scan", "index"]
    guarantee_tokens: int
    coverage: dict[str, Any]
    notes: tuple[str, ...]
    sources: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedFacts:
    """What `contam clean` took out of a corpus before it was searched here.

    action          "drop", "mask" or "cut";  record  SHA-256 of its clean.json
    before, after   documents of the corpus;  found  those in which items were found
    flagged_before  of each benchmark and policy of that run, the items flagged before
    by_benchmark    of each benchmark, the documents and the items;  by_source  of each source
    not_kept        what written files do not have of the old ones
    """

    corpus: str
    action: str
    record: str
    before: int
    found: int
    dropped: int
    edited: int
    after: int
    flagged_before: tuple[dict[str, Any], ...]
    by_benchmark: tuple[dict[str, Any], ...]
    by_source: tuple[dict[str, Any], ...]
    not_kept: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Flagged items of one benchmark and policy, by whether a model can have seen them.

    corpora    those it was trained on
    before     a document of its corpora is not younger than its data
    unknown    not so, but one has no date, or one that may be either, or its data's end is unknown
    after      all documents in its corpora are younger than its data
    elsewhere  flagged in other corpora only
    """

    model: str
    benchmark: str
    policy: str
    cutoff: str | None
    corpora: tuple[str, ...]
    before: int
    unknown: int
    after: int
    elsewhere: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A figure as it is printed, and what it is, in words that go on from it."""

    value: str
    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The answer for a reader in a hurry.

    text      all of it as sentences;  sentence  the first one
    numbers   the three that matter most;  to_do  what follows from them
    """

    status: Status
    text: str
    sentence: str
    numbers: tuple[Number, ...]
    to_do: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All of an audit that is said in its reports.

    verdicts     folder of the pack whose verdicts count
    scores       rows of scores.parquet over all items;  rankings, leads  rows of their tables
    calibration  what decoys say of chance; review  what readers said
    accepted     what a person accepted, and whether its evidence is what was seen
    policies     every policy in full, with its fingerprint
    models       what the models that AUDIT.toml tells of can have seen
    least        items without which reports show no score
    cleaned      what was taken out of corpora that were cleaned
    studies      name, finding and refusals of each study
    logged       name of a benchmark in logs -> the benchmarks of the items that these hold
    logs_left_out  path and reason of each log that is damaged and was skipped
    """

    format: int = FORMAT
    title: str
    tool: dict[str, str]
    headline: Headline
    verdicts: str
    corpora: tuple[CorpusFacts, ...]
    benchmarks: tuple[BenchmarkFacts, ...]
    scores: tuple[dict[str, Any], ...]
    rankings: tuple[dict[str, Any], ...]
    leads: tuple[dict[str, Any], ...]
    ours: tuple[str, ...]
    calibration: dict[str, Any] | None
    review: dict[str, Any] | None
    accepted: tuple[dict[str, Any], ...]
    coverage: dict[str, Any]
    policies: dict[str, Any]
    limits: tuple[str, ...]
    models: tuple[ModelFacts, ...] = field(default=())
    least: int = 50
    logs_left_out: tuple[dict[str, str], ...] = field(default=())
    cleaned: tuple[CleanedFacts, ...] = field(default=())
    studies: tuple[dict[str, Any], ...] = field(default=())
    logged: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def first_policy(self) -> str:
        """The policy that makes the headline."""
        found = (policy.policy for bench in self.benchmarks for policy in bench.policies)
        return next(found, "")

    def logged_as(self, benchmark: str) -> tuple[str, ...]:
        """What logs call a benchmark, by the items they hold; its own name where none hold any."""
        own = benchmark in (known.name for known in self.benchmarks)
        found = [
            name
            for name, held in self.logged.items()
            if benchmark in held or (name == benchmark and not own)
        ]
        return tuple(found) or (benchmark,)


def to_tree(value: object) -> Any:  # noqa: ANN401 - JSON is any of its types
    """Dataclasses, tuples and dictionaries as plain JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            attribute.name: to_tree(getattr(value, attribute.name)) for attribute in fields(value)
        }
    if isinstance(value, (list, tuple)):
        return [to_tree(inner) for inner in value]
    if isinstance(value, dict):
        return {str(name): to_tree(inner) for name, inner in value.items()}
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - only NaN differs from itself
        return None
    return value


def write_facts(facts: Facts, path: Path) -> None:
    """Write report.json; equal facts give equal bytes."""
    path.write_text(json.dumps(to_tree(facts), indent=1, ensure_ascii=True) + "\n", "ascii")


def read_facts(path: Path) -> Facts:
    """Read report.json back. Raises OutputError when it is not what its schema says."""
    from pydantic import ValidationError

    try:
        with reading(path, OutputError, "give the folder of an audit"):
            return _adapter().validate_json(path.read_bytes())
    except ValidationError as error:
        raise OutputError(
            "{} is not the report of an audit of this version", path, hint="run the audit again"
        ) from error


@cache
def _adapter() -> TypeAdapter[Facts]:
    from pydantic import TypeAdapter

    return TypeAdapter(Facts)


def schema() -> dict[str, Any]:
    """JSON Schema of report.json."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_adapter().json_schema()}


MOST_SOURCES: Final = 20
MOST_REASONS: Final = 10

_STANDING = """
SELECT benchmark, policy, label, exposure, coalesce(kind, ''), reason, count(*)
FROM verdicts WHERE label <> 'clean' GROUP BY ALL ORDER BY ALL
"""
_DOCUMENTS = """
SELECT v.benchmark, v.policy, v.split, v.item_id, e.shard, e.row, any_value(e.date),
  any_value(e.source), any_value(e.url)
FROM verdicts v JOIN evidence e USING (benchmark, split, item_id)
WHERE v.label IN ('contaminated', 'suspect') GROUP BY ALL ORDER BY ALL
"""

Key = tuple[str, str]


def ask(result: Report | ScanResult, question: str) -> list[tuple[Any, ...]]:
    """The rows that a question in SQL has for answer, of verdicts and evidence."""
    with closing(Database()) as database:
        database.add_table("verdicts", result.verdicts)
        database.add_table("evidence", result.evidence)
        return database.ask(question)[1]


def tally(
    report: Report,
    corpus: str,
    released: Mapping[str, str],
    *,
    most_sources: int | None = MOST_SOURCES,
) -> dict[Key, PolicyFacts]:
    """Facts of every (benchmark, policy) of one result.

    released  day on which a benchmark came out, by name
    """
    counts: defaultdict[tuple[str, Key], Counter[str]] = defaultdict(Counter)
    for benchmark, policy, label, exposure, kind, reason, n in ask(report, _STANDING):
        key = (benchmark, policy)
        if label in FLAGGED:
            counts["exposures", key][exposure] += n
            counts["kinds", key][kind or "none"] += n
        else:
            counts["reasons", key][reason] += n
    # Names of sources and months -> the items, or documents, that they have.
    sets: defaultdict[tuple[str, Key], defaultdict[str, set[tuple[str, Any]]]] = defaultdict(
        lambda: defaultdict(set)
    )
    classes: dict[tuple[Key, tuple[str, str]], str] = {}
    for benchmark, policy, split, item_id, shard, row, date, source, url in ask(report, _DOCUMENTS):
        key, item = (benchmark, policy), (split, item_id)
        before = classes.get((key, item), CLASSES[-1])
        classes[key, item] = min(before, class_of(date, released.get(benchmark)), key=CLASSES.index)
        name = source_of(source, url)
        sets["sources", key][name].add(item)
        sets["places", key][name].add((shard, row))
        sets["months", key][month_of(date)].add(item)
    for (key, _), kind in classes.items():
        counts["dates", key][kind] += 1
    found = {}
    for benchmark, policies in label_counts(report.verdicts).items():
        for policy, labels in policies.items():
            key = (benchmark, policy)
            n = sum(labels.values())
            flagged = sum(labels[label] for label in FLAGGED)
            dates, sources = counts["dates", key], sets["sources", key]
            dates["unknown"] += flagged - sum(dates.values())
            most = sorted(sources, key=lambda name: (-len(sources[name]), name))[:most_sources]
            found[key] = PolicyFacts(
                policy=policy,
                corpus=corpus,
                n_items=n,
                **labels,
                flagged_share=flagged / n,
                exposures=_most(counts["exposures", key]),
                kinds=_most(counts["kinds", key]),
                dates=tuple(Counted(name=name, n=dates[name]) for name in CLASSES),
                sources=tuple(
                    SourceFacts(
                        source=name,
                        n_items=len(sources[name]),
                        n_documents=len(sets["places", key][name]),
                    )
                    for name in most
                ),
                not_checkable_reasons=_most(counts["reasons", key])[:MOST_REASONS],
                months=tuple(
                    Counted(name=name, n=len(items))
                    for name, items in sorted(sets["months", key].items())
                ),
            )
    return found


def _most(counts: Counter[str]) -> tuple[Counted, ...]:
    order = sorted(counts, key=lambda name: (-counts[name], name))
    return tuple(Counted(name=name, n=counts[name]) for name in order)
