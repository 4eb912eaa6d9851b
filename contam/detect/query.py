"""Answer a query: look up an index, read documents back, match and judge."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from contam.detect.finish import finish
from contam.detect.given import given_benchmark
from contam.detect.indexed.guarantee import may_be_missed, refuse_unanswerable
from contam.detect.indexed.indexes import IndexSet
from contam.detect.indexed.search import nothing_found, search
from contam.detect.match.workers import NO_DEADLINE, REASON, Deadline, DeadlinePassed, worker_count
from contam.detect.parameters import QueryOptions, ScanParameters
from contam.detect.plan import make_plan
from contam.detect.policies.policy import get_policy
from contam.detect.result_columns import Missed
from contam.detect.warm import match_a_little, small_files, warmup_scan
from contam.errors import IndexMismatchError
from contam.kernels.warm_up import compile_once
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.corpus import ScanProgress
    from contam.detect.given import Source
    from contam.detect.indexed.indexes import PathLike
    from contam.detect.indexed.search import SearchResult
    from contam.detect.plan import Plan
    from contam.detect.result import ScanResult


def query(
    index: PathLike | Sequence[PathLike],
    benchmark: Source,
    *,
    corpus: PathLike | Sequence[PathLike] | None = None,
    home: PathLike | None = None,
    unit: str | None = None,
    workers: int | None = None,
    progress: ScanProgress | None = None,
    deadline: float | None = None,
    **options: Unpack[QueryOptions],
) -> ScanResult:
    """Search indexed documents for every item of the benchmarks; several indexes answer as one.

    index       paths or names of indexes, one or several
    benchmark   as for `contam.scan`
    corpus      where the shards are now, if they were moved: they are recognised by their digests
    home        folder in which bare names of indexes are looked up
    unit        None takes the index's
    deadline    in seconds of `time.monotonic`: when it passes before all is answered, every item is
                `not_checkable`, with the reason "deadline"

    The options of items and of the result are those of `contam.scan`; a policy that needs more than
    the index guarantees is refused. Of every item and document that share a run of
    `guarantee_tokens`, evidence and verdicts are the scan's; shorter runs are found by chance. An
    item of which the index may have missed something is `not_checkable`, never clean.

    Raises ContamError subclasses; shards that are gone or changed do not raise, they are in
    `result.coverage`.
    """
    started = time.time()
    asked = ScanParameters.of(options, QueryOptions.__optional_keys__)
    opened = IndexSet.open(index, corpus=corpus, home=home)
    if unit is not None and unit != opened.unit:
        raise IndexMismatchError(
            "the index has the unit {}, not {}",
            opened.unit,
            unit,
            hint="leave out --unit, or build an index in that unit",
        )
    parameters = replace(asked, unit=opened.unit)
    n_workers = worker_count(workers)
    refuse_unanswerable([get_policy(policy) for policy in parameters.policies], opened.recipe)
    compile_once("query", query_a_little, progress)
    plan = make_plan(given_benchmark(benchmark, parameters.name), parameters)
    return query_opened(
        opened,
        plan,
        workers=n_workers,
        progress=progress,
        started=started,
        deadline=Deadline(deadline),
    )


def query_a_little() -> None:
    """Index a corpus of one text and query it, which compiles or loads all that a query needs."""
    from contam.index.build import build  # of which a query needs nothing

    with small_files() as (corpus, items):
        index = corpus.with_name("index")
        build(corpus, index, workers=1)
        query(index, items, workers=1)
    match_a_little()


def run_a_little() -> None:
    """Index, query and scan a corpus of one text, also for rephrasings: all that has kernels."""
    from contam.detect.meaning.matching import look_for_rephrasings_a_little  # rarely loaded

    query_a_little()
    warmup_scan()
    look_for_rephrasings_a_little()


def query_opened(
    opened: IndexSet,
    plan: Plan,
    *,
    started: float,
    workers: int = 1,
    progress: ScanProgress | None = None,
    deadline: Deadline = NO_DEADLINE,
    keep_rows: bool = False,
) -> ScanResult:
    """Search opened indexes for what a plan looks for, and judge it with what they vouch for.

    started    when the run began, seconds since 1970
    deadline   past it nothing is called clean
    keep_rows  for a short answer of a service: keep the rows that are read for later questions, and
               make the record when somebody reads it, since that may cost more. Else every shard is
               looked at once more, and the plan is used up
    """
    try:
        answer = search(
            opened,
            plan,
            workers=workers,
            progress=progress,
            keep_rows=keep_rows,
            deadline=deadline,
        )
        missed = missed_by(plan, answer)
    except DeadlinePassed:
        # What was found until then is dropped: a document not yet read may hold more.
        answer, missed = nothing_found(plan, opened), Missed(unanswered=REASON)
    if not keep_rows:
        # What became of a shard meanwhile was not looked for where none of its documents was
        # wanted.
        opened.check_shards()
        answer.coverage = answer.coverage.with_failures(*opened.coverage.failures)
        plan.search_views.clear()
        release_unused()
    result = finish(
        plan,
        answer,
        [answer.collection],
        started=started,
        workers=workers,
        missed=missed,
        index=answer.about_index,
        late=keep_rows,
    )
    if progress is not None:
        progress.finish()
    return result


def missed_by(plan: Plan, answer: SearchResult) -> Missed:
    """What the indexes cannot vouch for, though they found nothing of it."""
    recipe = answer.opened.recipe
    return Missed(
        tuple(
            may_be_missed(policy, plan.views[0], recipe, at_risk, answer.unread)
            for policy, at_risk in zip(plan.policies, answer.at_risk, strict=True)
        )
    )
