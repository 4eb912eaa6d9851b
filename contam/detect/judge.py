"""Judge what a scan found, whoever read the corpus: from one partial result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from contam.detect.corpus_checks import changed_shards, refuse_without_text, undecoded_shards
from contam.detect.finish import finish
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    from contam.detect.corpus import Corpus
    from contam.detect.partial import PartialResult
    from contam.detect.plan import Plan
    from contam.detect.result import ScanResult


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
    for view in plan.views:
        view.release_table()
    release_unused()
    return finish(
        plan,
        replace(corpus, coverage=coverage, documents=documents),
        partial.collections,
        started=started,
        workers=workers,
        used_up=True,
    )
