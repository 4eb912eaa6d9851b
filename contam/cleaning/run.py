"""Decide what goes of a searched corpus, have its shards written, and publish them on record."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from contam.cleaning.choice import Cleaning, choice_of, judged
from contam.cleaning.given_result import GivenResult
from contam.cleaning.work_folder import CORPUS, RECORD, REMOVED, digest_of
from contam.corpus.documents import read_metadata
from contam.detect.corpus import refuse_without_text, undecoded_shards
from contam.detect.finish import benchmarks_of, parameters_of, versions
from contam.detect.labels import LABELS
from contam.errors import IncompleteError, InternalError, Names, Place, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contam.benchmark.items import ItemName
    from contam.cleaning.choice import CleanOptions, Found, SparedRows
    from contam.cleaning.given_result import Spared
    from contam.corpus.coverage import Coverage
    from contam.detect.corpus import Corpus
    from contam.detect.every_hit import HitFile, PartHits
    from contam.detect.model import Int8s
    from contam.detect.parts.part_store import Division
    from contam.detect.parts.search import Searched
    from contam.detect.plan import Plan

FORMAT: Final = "contam-clean-1"
NAMES: Final = (CORPUS, REMOVED, RECORD)

_NAMED: Final = 3
_SHOWN_SOURCES: Final = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Cleaned:
    """What was done, or would be where too much would go.

    record     the content of clean.json
    folder     where the result is; None where nothing was published
    too_many   more documents would go than was allowed, so nothing was published
    kept       the folder with what was searched then, which the same call takes; it may be removed
    """

    record: dict[str, Any]
    folder: Path | None
    too_many: bool = False
    kept: Path | None = None

    @property
    def not_kept(self) -> list[str]:
        """What some files that were written do not have of the old ones, one sentence each."""
        said = (what for shard in self.record["shards"] for what in shard.get("not_kept", ()))
        return sorted(set(said))


@dataclass(frozen=True, eq=False, kw_only=True)
class Asked:
    """What is to be cleaned of what.

    question  digest of all that decides the result
    result    of a scan that is taken instead of searching;  spared  what is harmless in it
    """

    plan: Plan
    corpus: Corpus
    options: CleanOptions
    division: Division
    question: str
    result: GivenResult | None
    spared: Spared


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """A run, once its corpus was searched.

    question  digest of all that decides the result
    workers   threads, and `started` the time of its begin: both only for the record
    labels    int8[n, p], of every item and policy, before anything is taken out
    spared    what a person found harmless
    touched   what goes of each shard that something goes of, by its number
    sha256    of the shards as they were searched
    """

    corpus: Corpus
    question: str
    workers: int
    started: float
    coverage: Coverage
    cleaning: Cleaning
    labels: Int8s
    spared: Spared
    touched: dict[int, dict[str, Any]]
    hits: PartHits | HitFile
    sha256: Mapping[int, str]

    @classmethod
    def of(
        cls, asked: Asked, found: Searched | GivenResult, *, workers: int, started: float
    ) -> Self:
        """What was asked, of a corpus that was searched.

        Raises IncompleteError unless all was read, and OutputError.
        """
        plan, corpus, options, spared = asked.plan, asked.corpus, asked.options, asked.spared
        if isinstance(found, GivenResult):
            coverage, labels, n_documents = found.coverage, found.labels, found.n_documents
        else:
            coverage = found.whole.coverage
            labels, n_documents = judged(plan, found.whole.collections)
        coverage = coverage.with_failures(*undecoded_shards(corpus, coverage))
        refuse_unread(coverage)
        if not coverage.complete:
            raise InternalError("a shard was neither read nor failed")
        refuse_without_text(coverage, allow_missing=False)
        cleaning = Cleaning(
            plan=plan,
            options=options,
            choice=choice_of(plan, options, labels, spared.items),
            after=choice_of(plan, options, labels, spared.items, n_documents),
            spared=_spared(found, plan, corpus, options.sources, spared)
            if options.sources
            else spared.hits,
        )
        return cls(
            corpus=corpus,
            question=asked.question,
            workers=workers,
            started=started,
            coverage=coverage,
            cleaning=cleaning,
            labels=labels,
            spared=spared,
            touched=_touched(found.hits, cleaning, corpus),
            hits=found.hits,
            sha256=found.sha256,
        )

    @property
    def plan(self) -> Plan:
        """What was looked for."""
        return self.cleaning.plan

    @property
    def options(self) -> CleanOptions:
        """What is done with what was found."""
        return self.cleaning.options

    @cached_property
    def written(self) -> str:
        """Digest of what decides every byte of a shard: labels are of all bytes searched."""
        return digest_of(self.question, sorted(self.sha256.items()))

    def refused(self, kept: Path | None = None) -> Cleaned | None:
        """What would go, where that is too much; else None. kept  see `Cleaned`."""
        n_found = sum(shard["found"] for shard in self.touched.values())
        if n_found <= self.options.most_documents(self.coverage.total.rows):
            return None
        record = record_of(self, self.touched, done=False)
        return Cleaned(record=record, folder=None, too_many=True, kept=kept)


def refuse_unread(coverage: Coverage) -> None:
    """Raise IncompleteError where shards could not be read: nobody knows what is in them."""
    if coverage.complete or not coverage.failures:
        return
    failures = coverage.failures
    more = f" and {len(failures) - _NAMED:,} more" if len(failures) > _NAMED else ""
    said = "; ".join(
        # Most reasons begin with the shard's name.
        f"{one.name}: {one.reason.removeprefix(f'{one.name}: ')}"
        for one in failures[:_NAMED]
    )
    raise IncompleteError(
        "{} of {} shards could not be read, and what is in them cannot be taken out: {}{}",
        len(failures), len(coverage.names), Place(said), more,
        hint="repair them, or leave them out with --exclude NAME: the result lacks them, too",
    )  # fmt: skip


def _spared(
    found: Searched | GivenResult,
    plan: Plan,
    corpus: Corpus,
    sources: Sequence[str],
    spared: Spared,
) -> Mapping[int, SparedRows]:
    """What a person spared, and all that was found in documents of other sources.

    Raises UsageError for a source that no document has, and ShardError.
    """
    known = _known_sources(found)
    if not corpus.source_columns or (known and not known.issuperset(sources)):
        unknown = next((name for name in sources if name not in known), sources[0])
        raise UsageError(
            "no document has the source {}; sources there: {}", unknown,
            Names(sorted(filter(None, known)), _SHOWN_SOURCES),
            hint="name the column that has it with --source-column",
        )  # fmt: skip
    is_seen = bool(known)
    others = {shard: dict(rows) for shard, rows in spared.hits.items()}
    policies = range(len(plan.policies))
    for shard, hits in found.hits.by_shard():
        items: dict[int, set[int]] = {}
        for table in hits.values():
            for row, item in zip(table.row.tolist(), table.item.tolist(), strict=True):
                items.setdefault(row, set()).add(item)
        rows, selection = sorted(items), corpus.selections[shard]
        if selection is None:
            raise InternalError(f"{corpus.names[shard]}: rows were found without a text column")
        for row, meta in zip(
            rows, read_metadata(corpus.shards[shard], selection, rows), strict=True
        ):
            if meta.source not in sources:
                every = frozenset((item, policy) for item in items[row] for policy in policies)
                others.setdefault(shard, {})[row] = every
            else:
                is_seen = True
    if not is_seen:
        # Of very many sources nobody knows them all, and this one may not exist.
        raise UsageError(
            "nothing was found in a document of the source {}", ", ".join(sources),
            hint="check its name; `contam sql RESULT 'select distinct source from evidence'`",
        )  # fmt: skip
    return others


def _known_sources(found: Searched | GivenResult) -> set[str | None]:
    """The sources of all documents that were read; none where they are not all known."""
    if isinstance(found, GivenResult):
        section = found.report.run.get("sources", {})
        names = {row["source"] for row in section.get("rows", ())}
        return names if len(names) == section.get("n_sources") else set()
    return set(found.whole.sources.held().names) if found.whole.sources is not None else set()


def _touched(
    hits: PartHits | HitFile, cleaning: Cleaning, corpus: Corpus
) -> dict[int, dict[str, Any]]:
    """What goes of each shard."""
    n_found: Counter[int] = Counter()
    benchmarks: defaultdict[int, Counter[str]] = defaultdict(Counter)
    items: defaultdict[int, set[int]] = defaultdict(set)
    for shard, own in hits.by_shard():
        found = cleaning.choice.documents(own, cleaning.spared.get(shard, {}))
        counts = counts_of(cleaning.names, found)
        n_found[shard] += len(found)
        benchmarks[shard].update(counts["benchmarks"])
        items[shard].update(counts["items"])
    return {
        shard: {
            "name": corpus.names[shard],
            "found": n,
            "benchmarks": dict(sorted(benchmarks[shard].items())),
            "items": sorted(items[shard]),
        }
        for shard, n in sorted(n_found.items())
        if n
    }


def facts_of(options: CleanOptions) -> dict[str, Any]:
    """The options as plain values."""
    found = {one.name: getattr(options, one.name) for one in fields(options)}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in found.items()
    }


def record_of(run: Run, noted: Mapping[int, dict[str, Any]], *, done: bool) -> dict[str, Any]:
    """The content of clean.json.

    noted  what is to be said of shards;  done  whether they were written, or only looked at
    """
    shards = [noted[number] for number in sorted(noted)]
    n_rows = run.coverage.total.rows
    # Rows are those of the file, blank lines among them.
    gone = sum(shard["rows_before"] - shard["rows_after"] for shard in shards) if done else 0
    rows_after = n_rows - gone
    action = run.options.action
    n_found = sum(shard["found"] for shard in shards)
    record: dict[str, Any] = {
        "tool": "contam",
        "format": FORMAT,
        "question": run.question,
        "options": facts_of(run.options),
        "parameters": parameters_of(run.plan),
        "inputs": {**run.corpus.inputs(), "benchmarks": benchmarks_of(run.plan)},
        "versions": versions(),
        "coverage": run.coverage.totals,
        **({"spared": list(run.spared.rows)} if run.spared.rows else {}),
        "notes": [*run.corpus.notes, *run.spared.notes()],
        "before": _labels(run),
        "documents": {
            "before": n_rows,
            "found": n_found,
            "share": round(n_found / n_rows, 9) if n_rows else 0.0,
            "dropped": n_rows - rows_after,
            "edited": n_found - (n_rows - rows_after) if done and action in ("mask", "cut") else 0,
            "after": rows_after,
        },
    }
    record["removed"] = _removed(run, shards)
    record["proof"] = _proof(run, shards) if done else {}
    record["shards"] = [
        {
            key: value
            for key, value in shard.items()
            if key not in ("benchmarks", "sources", "items")
        }
        for shard in shards
    ]
    # The only section that differs between equal runs.
    record["timings"] = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(run.started)),
        "seconds": round(time.time() - run.started, 3),
        "workers": run.workers,
    }
    return record


def _labels(run: Run) -> list[dict[str, Any]]:
    """Of each policy and benchmark, the items by label, before anything was taken out."""
    plan, labels = run.plan, run.labels
    names = np.array(plan.items.column("benchmark"))
    found = []
    for number, policy in enumerate(plan.policies):
        for name in sorted(set(names.tolist())):
            counts = np.bincount(labels[names == name, number], minlength=len(LABELS))
            found.append(
                {
                    "policy": policy.spec.id,
                    "benchmark": name,
                    **dict(zip(LABELS, counts.tolist(), strict=True)),
                }
            )
    return found


def _removed(run: Run, shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Documents and items by benchmark, and documents by source."""
    documents: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    items: set[int] = set()
    for shard in shards:
        documents.update(shard.get("benchmarks", {}))
        sources.update(shard.get("sources", {}))
        items.update(shard.get("items", ()))
    names = run.plan.items.column("benchmark")
    n_items = Counter(names[item] for item in items)
    return {
        "by_benchmark": [
            {"benchmark": name, "documents": n, "items": n_items[name]}
            for name, n in sorted(documents.items())
        ],
        "by_source": [
            {"source": name or None, "documents": n} for name, n in sorted(sources.items())
        ],
    }


def _proof(run: Run, shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What was looked at once all was written."""
    if run.options.action == "list":
        return {}
    searched = [shard for shard in shards if shard["found"]]
    return {
        "shards_searched_again": len(searched),
        "shards_equal_by_digest": len(shards) - len(searched),
        "passes": max((shard["passes"] for shard in searched), default=0),
        "documents_left": 0,
        "rows_before": sum(shard["rows_before"] for shard in shards),
        "rows_after": sum(shard["rows_after"] for shard in shards),
        "rows_same": sum(shard.get("rows_same", shard["rows_after"]) for shard in shards),
    }


def counts_of(names: Sequence[ItemName], found: Sequence[Found]) -> dict[str, Any]:
    """Documents by benchmark, and the items in them."""
    benchmarks = Counter(
        name for one in found for name in {names[item].benchmark for item in one.items}
    )
    items = {item for one in found for item in one.items}
    return {"benchmarks": dict(sorted(benchmarks.items())), "items": sorted(items)}
