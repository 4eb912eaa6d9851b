"""Answer a query: look up an index, read documents back, match and judge."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack

from contam.corpus.unread import unread_notes
from contam.detect.corpus import excluded_note
from contam.detect.finish import finish
from contam.detect.given import given_benchmark
from contam.detect.indexed.guarantee import (
    may_be_missed,
    refuse_unanswerable,
)
from contam.detect.indexed.indexes import IndexSet
from contam.detect.indexed.search import IndexSources, nothing_found, search
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
    from collections.abc import Callable, Sequence

    from contam.detect.corpus import ScanProgress
    from contam.detect.given import Source
    from contam.detect.indexed.indexes import PathLike
    from contam.detect.indexed.search import SearchResult
    from contam.detect.plan import Plan
    from contam.detect.result import ScanResult
    from contam.index.model import Recipe

#: Files named that are in the corpus and not in the index.
_MOST_NAMED: Final = 20


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
    workers: int,
    progress: ScanProgress | None = None,
    started: float,
    deadline: Deadline = NO_DEADLINE,
) -> ScanResult:
    """Search opened indexes for what a plan looks for; the plan is used up by it.

    started   when the run began, seconds since 1970
    deadline  past it nothing is called clean
    """
    ask = partial(search, opened, plan, workers=workers, progress=progress, deadline=deadline)
    result = answered(opened, plan, ask, started=started, workers=workers, whole=True)
    if progress is not None:
        progress.finish()
    return result


def answered(
    opened: IndexSet,
    plan: Plan,
    ask: Callable[[], SearchResult],
    *,
    started: float,
    workers: int = 1,
    whole: bool = False,
) -> ScanResult:
    """What `ask` finds, judged with what the indexes can vouch for; past its deadline, nothing.

    whole  for a result that is written: look at every shard once more, use the plan up, and make
           the record now. Else it is made when somebody reads it, since it may cost more than a
           short answer.
    """
    try:
        answer = ask()
        missed = missed_by(plan, opened.recipe, answer)
    except DeadlinePassed:
        # What was found until then is dropped: a document not yet read may hold more.
        answer, missed = nothing_found(plan, opened), Missed(unanswered=REASON)
    about = partial(describe, opened, answer)
    if whole:
        # What became of a shard meanwhile was not looked for where none of its documents was
        # wanted.
        opened.check_shards()
        answer.coverage = answer.coverage.with_failures(*opened.coverage.failures)
        plan.search_views.clear()
        release_unused()
    return finish(
        plan,
        sources_of(opened, answer),
        [answer.collection],
        started=started,
        workers=workers,
        missed=missed,
        index=about,
        late=not whole,
    )


def missed_by(plan: Plan, recipe: Recipe, answer: SearchResult) -> Missed:
    """What the indexes cannot vouch for, though they found nothing of it."""
    return Missed(
        tuple(
            may_be_missed(policy, plan.views[0], recipe, at_risk, answer.unread)
            for policy, at_risk in zip(plan.policies, answer.at_risk, strict=True)
        )
    )


def sources_of(opened: IndexSet, answer: SearchResult) -> IndexSources:
    """The documents of an answer, as finishing it needs them."""
    notes = [*excluded_note(opened.coverage.excluded)]
    notes += unread_notes(
        (record.name, record.unread)
        for index in opened.indexes
        for record in index.manifest.shards
        if not record.retired
    )
    if missing := opened.coverage.not_indexed:
        notes.append(_not_covered(missing))
    return IndexSources(whole=opened, answer=answer, notes=tuple(notes))


def _not_covered(missing: Sequence[str]) -> str:
    named = ", ".join(missing[:_MOST_NAMED])
    more = f" and {len(missing) - _MOST_NAMED:,} more" if len(missing) > _MOST_NAMED else ""
    return (
        f"the answer does not cover {named}{more}: in the folder of the corpus and not in the "
        "index, `contam index add` adds it"
    )


def describe(opened: IndexSet, answer: SearchResult) -> dict[str, Any]:
    """What run.json says of the indexes and of what they guarantee."""
    recipe = opened.recipe
    return {
        "ids": [index.id for index in opened.indexes],
        "recipe": recipe.name,
        "guarantee_tokens": recipe.guarantee,
        "gram": recipe.gram,
        "stride": recipe.stride,
        "documents_read": len(answer.wanted.row),
        "capped": {"cap": recipe.cap, "grams": answer.n_capped},
    }
