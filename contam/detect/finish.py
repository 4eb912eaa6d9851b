"""Turn merged evidence into verdicts, evidence rows and the record of a run."""

from __future__ import annotations

import platform
import time
from dataclasses import asdict, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.benchmark.item_table import ItemTable
from contam.benchmark.items import PARTS, ItemName
from contam.benchmark.keys import KEY_VERSION, KEYS, equal_groups
from contam.benchmark.reading import about_benchmark
from contam.detect.corpus import (
    changed_shards,
    describe,
    document_notes,
    refuse_without_text,
    undecoded_shards,
)
from contam.detect.match.by_source import sources_section
from contam.detect.plan import SEED
from contam.detect.result import ONE_QUESTION, SKIPPED, ScanResult
from contam.detect.result_columns import Missed, evidence_columns, verdict_columns
from contam.memory import peak_bytes
from contam.tables.memory import release_unused
from contam.tables.schemas import Repeated, hex_column
from contam.text.text_tables import NORMALISER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contam.benchmark.items import Benchmark
    from contam.detect.chunk_scan import PartialResult
    from contam.detect.corpus import Corpus, Sources
    from contam.detect.match.collect import Collection
    from contam.detect.plan import Plan
    from contam.tables.schemas import Column


#: Fewer may well share a question.
_FEW_ITEMS = 5
#: Columns of keys, as the table has them.
_KEYS = ("passage_key", "question_key", "choices_key", "answer_key", "item_key", "full_key")
_NOTHING = Missed()
_PACKAGES = ("contam", "numpy", "numba", "pyarrow", "tokenizers")


def finish_scan(
    plan: Plan, corpus: Corpus, partial: PartialResult, *, workers: int, started: float
) -> ScanResult:
    """The result when all chunks are in one partial result; the plan is used up by it.

    Shards that are not as they were listed, or of which a chunk is missing, were not read.

    Raises CorpusError when nothing that was read has a text.
    """
    failed = {failure.shard for failure in partial.coverage.failures}
    for failure in changed_shards(corpus, range(len(corpus.shards)), failed):
        partial.read.add_failure(failure)
    return judge_result(plan, corpus, partial, workers=workers, started=started)


def judge_result(
    plan: Plan, corpus: Corpus, partial: PartialResult, *, workers: int, started: float
) -> ScanResult:
    """The same without a look at the shards, which those who read them have had.

    Raises CorpusError when nothing that was read has a text.
    """
    documents = {**partial.found.known, **corpus.documents}
    coverage = partial.coverage
    coverage = coverage.with_failures(*undecoded_shards(corpus, coverage))
    refuse_without_text(coverage, allow_missing=plan.parameters.allow_missing)
    plan.search_views.clear()
    release_unused()
    by_source = None
    if partial.sources is not None:
        for collection in partial.collections:
            collection.flush()
        by_source = sources_section(plan, partial.sources.held(), corpus.source_columns)
    return finish(
        plan,
        replace(corpus, coverage=coverage, documents=documents),
        partial.collections,
        started=started,
        workers=workers,
        by_source=by_source,
    )


def finish(
    plan: Plan,
    sources: Sources,
    collections: Sequence[Collection],
    *,
    started: float,
    workers: int,
    missed: Missed = _NOTHING,
    index: Callable[[], dict[str, Any]] | None = None,
    late: bool = False,
    by_source: dict[str, Any] | None = None,
) -> ScanResult:
    """Judge every item under every policy and describe the documents kept as evidence.

    sources      the documents that were searched; collections  what was found, one a view
    started      when the run began, seconds since 1970; workers  threads it had
    missed       what the search cannot promise of items
    index        makes what the record says of indexes
    late         make the record and the items' columns when somebody reads them: they may cost more
                 than a short answer, but what they are made of is held until then
    by_source    the section `sources` of the record
    """
    notes = [*sources.notes, *_long_seed(plan.parameters.seed)]
    notes += [note for benchmark in plan.benchmarks for note in _one_question(benchmark)]
    notes += _too_many_sources(by_source or {})
    documents = describe(sources, collections)
    notes += document_notes(documents)
    verdicts = verdict_columns(plan, sources.coverage, collections, documents, missed)
    evidence = evidence_columns(plan, sources, collections, documents)
    for benchmark in plan.benchmarks:
        notes += [
            f"{benchmark.name}{SKIPPED}{row.source}:{row.line}: {row.reason}"
            for row in benchmark.skipped
        ]
    timings = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 3),
        "workers": workers,
        "peak_memory_mb": peak_bytes() >> 20,
    }

    about = cache(index) if index is not None else None

    def record() -> dict[str, Any]:
        run = {
            "parameters": parameters_of(plan),
            "inputs": {**sources.inputs(), "benchmarks": benchmarks_of(plan)},
            "versions": versions(),
            "coverage": sources.coverage.to_dict(),
            **({"sources": by_source} if by_source else {}),
            "notes": notes,
            "timings": timings,
        }
        return run if about is None else {**run, "index": about()}

    return ScanResult(
        verdict_columns=verdicts,
        evidence_columns=evidence,
        item_columns=partial(_item_columns, plan) if late else _item_columns(plan),
        run=record if late else record(),
        covered=sources.coverage,
        about_index=about or dict,
        items_in_order=plan.items,
    )


def _long_seed(seed: int) -> Iterator[str]:
    """What a seed longer than the usual one may cost; no verdict tells it."""
    if seed > SEED:
        yield (
            f"seed {seed}: an edited copy of which no {seed} tokens stand together is not found,"
            f" and its item may be called clean (the usual seed is {SEED})"
        )


def _too_many_sources(section: Mapping[str, Any]) -> Iterator[str]:
    """Why there is no table by source."""
    if most := section.get("too_many"):
        yield (
            f"more than {most:,} sources ({', '.join(section['columns'])}): there is no table by"
            " source; --source-column names another column"
        )
    if n := section.get("n_unread"):
        yield f"{n:,} documents count as without a source: the column that names it is damaged"


def _one_question(benchmark: Benchmark) -> Iterator[str]:
    """A doubt whether the field of the question is the right one; no verdict tells it.

    An instruction that every item has is found nowhere, or everywhere, whatever was leaked.
    """
    n_items = len(benchmark.items)
    items = benchmark.items
    if n_items < _FEW_ITEMS or not isinstance(items, ItemTable) or items.digests is None:
        return
    keys = items.key_digests()[:, KEYS.index("text_key")]
    n_same = max(map(len, equal_groups(keys)), default=1)
    if 2 * n_same <= n_items:
        return
    fields = {dict(source.fields).get("question") for source in benchmark.sources}
    named = [field for field in fields if field]
    where = f" ({named[0]})" if len(named) == 1 else ""
    yield (
        f"{benchmark.name}: {n_same} of {n_items} {ONE_QUESTION}{where}, which does"
        " not tell them apart; if another field holds what they ask, name both:"
        " --map question=FIELD+FIELD"
    )


def _item_columns(plan: Plan) -> dict[str, Column]:
    items = plan.items
    keys = items.key_digests()
    tokens = plan.views[0].items.n_tokens
    columns: dict[str, Column] = {
        **{name: items.column(name) for name in ItemName._fields},
        "key_version": Repeated([KEY_VERSION], np.zeros(len(items), np.int8)),
        **{
            name: hex_column(keys[:, KEYS.index("text_key" if name == "question_key" else name)])
            for name in _KEYS
        },
    }
    for at, part in enumerate(PARTS):
        columns[f"{part}_tokens"] = tokens[:, at]
    if plan.parameters.keep_text:
        columns |= {name: items.lazy(name) for name in PARTS}
    return columns


def parameters_of(plan: Plan) -> dict[str, Any]:
    """What was asked of a plan, as run.json records it."""
    parameters = asdict(plan.parameters)
    for name in ("columns", "exclude", "lines", "ignore", "include_path", "every_hit"):
        # Older results do not have them: they are written where they say something.
        if not parameters[name]:
            del parameters[name]
    parameters["policies"] = [policy.spec.id for policy in plan.policies]
    parameters["policy_definitions"] = {
        policy.spec.id: {**policy.spec.to_dict(), "fingerprint": policy.spec.fingerprint()}
        for policy in plan.policies
    }
    parameters["lanes"] = [
        {
            "seed": view.spec.seed,
            "min_run": view.spec.min_run,
            "unit": view.unit,
            **(view.tokenizer.fingerprint if view.tokenizer else {}),
            **({"rephrasings": True} if view.rephrasings else {}),
            **({"reads_with": view.reads_with.sha256} if view.reads_with else {}),
        }
        for view in plan.views
    ]
    parameters["normaliser"] = NORMALISER
    return parameters


def benchmarks_of(plan: Plan) -> list[dict[str, Any]]:
    """The benchmarks of a plan, as run.json records them."""
    return [about_benchmark(benchmark) for benchmark in plan.benchmarks]


def versions() -> dict[str, str]:
    """Versions of what has a part in the result."""
    return dict(_installed())


@cache
def _installed() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
