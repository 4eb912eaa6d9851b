"""Answer a query: look up an index, read documents back, match and judge.

Here it is decided what an index can answer for: policies, and items it must not call clean.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Unpack

import numpy as np

from contam.benchmark.items import PARTS
from contam.detect.finish import finish
from contam.detect.given import given_benchmark
from contam.detect.indexed.indexes import IndexSet
from contam.detect.indexed.search import nothing_found, search
from contam.detect.match.workers import NO_DEADLINE, REASON, Deadline, DeadlinePassed, worker_count
from contam.detect.model import QUESTION
from contam.detect.plan import QueryOptions, ScanParameters, make_plan
from contam.detect.policies.policy import get_policy, sees_rephrasings, shortest_run
from contam.detect.result_columns import Missed
from contam.detect.warm import match_a_little, small_files, warmup_scan
from contam.errors import IndexMismatchError, Statement
from contam.kernels.warm_up import compile_once
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.corpus import ScanProgress
    from contam.detect.given import Source
    from contam.detect.indexed.indexes import PathLike
    from contam.detect.indexed.search import SearchResult
    from contam.detect.match.token_view import TokenView
    from contam.detect.model import Bools
    from contam.detect.plan import Plan
    from contam.detect.policies.policy import Policy
    from contam.detect.result import ScanResult
    from contam.index.model import Recipe


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


#: Words that the recipe `complete` guarantees.
_COMPLETE: Final = 5
_TOKENS: Final = {"word": "words", "char": "letters and digits", "tokenizer": "tokens"}


def refuse_unanswerable(policies: Sequence[Policy], recipe: Recipe) -> None:
    """Raise IndexMismatchError, naming every policy that needs what this index does not keep."""
    if rephrased := [policy.spec.id for policy in policies if sees_rephrasings(policy)]:
        raise IndexMismatchError(
            "{} looks for words in any order, and an index keeps only words in a row",
            ", ".join(rephrased),
            hint="search the corpus itself with `contam scan`",
        )
    refused = [(policy, why) for policy in policies if (why := _why_refused(policy, recipe))]
    if not refused:
        return
    keeps = " and ".join(dict.fromkeys(_recipe_for(policy) for policy, _ in refused))
    hint = Statement(
        "search the corpus itself with `contam scan`, or build an index that keeps it ({})", keeps
    )
    if kept := [policy.spec.id for policy in policies if not _why_refused(policy, recipe)]:
        hint = Statement("ask for --policy {} alone, or {}", ",".join(kept), hint)
    raise IndexMismatchError(
        "this index finds every run of {} {}: {}",
        recipe.guarantee,
        _TOKENS[recipe.unit],
        "; ".join(f"{policy.spec.id} {why}" for policy, why in refused),
        hint=hint,
    )


def _recipe_for(policy: Policy) -> str:
    if policy.spec.unit == "char":
        return "--recipe chars"
    run = shortest_run(policy)
    if policy.traits.monotone or run >= _COMPLETE:
        return "--recipe complete"
    return f"a recipe of your own with gram = {run} and stride = 1"


def _why_refused(policy: Policy, recipe: Recipe) -> str:
    """Why an index of this recipe cannot answer for a policy, "" where it can."""
    unit = "char" if policy.spec.unit == "char" else "word"
    if (unit == "char") != (recipe.unit == "char"):
        return f"counts {_TOKENS[unit]}"
    if policy.traits.reads_text and recipe.unit == "tokenizer":
        return "finds the documents that it reads by words"
    run = shortest_run(policy)
    if run < recipe.guarantee and not policy.traits.monotone:
        return f"counts runs of {run} already"
    return ""


#: How every reason begins for which an index does not call an item clean; a scan may well.
MAY_BE_MISSED: Final = "not found, but "


def may_be_missed(
    policy: Policy, view: TokenView, recipe: Recipe, at_risk: Bools, unread: Bools
) -> dict[int, str]:
    """Items of which a document that this policy counts may have been missed, with the reason.

    at_risk  bool[items], see `items_at_risk`
    unread   bool[items], items that may stand in documents which could not be read
    """
    n_items = view.items.n_items
    unit = _TOKENS[recipe.unit]
    guarantee = recipe.guarantee
    if (run := shortest_run(policy)) < guarantee:
        reason = (
            f"{MAY_BE_MISSED}this index may miss runs of fewer than {guarantee} {unit}, "
            f"and {policy.spec.id} counts them from {run} on"
        )
        return dict.fromkeys(range(n_items), reason)
    doubts = dict.fromkeys(
        np.flatnonzero(unread).tolist(),
        f"{MAY_BE_MISSED}something of it is in documents that cannot be read",
    )
    for i in np.flatnonzero(at_risk).tolist():
        doubts[i] = (
            f"{MAY_BE_MISSED}it has wording that stands in more documents than the index keeps "
            f"(cap {recipe.cap}): not every document with a run made of that alone was looked at"
        )
    if guarantee <= view.spec.seed:
        # What is shorter a scan does not look for, either.
        return doubts
    for i in np.flatnonzero(_too_short(policy, view, guarantee)).tolist():
        tokens = int(view.items.n_tokens[i, QUESTION])
        doubts[i] = (
            f"{MAY_BE_MISSED}its question has {tokens} {unit}, and this index finds every run "
            f"from {guarantee} on: a copy may have been missed"
        )
    for i, tokens in _short_variants(policy, view, guarantee).items():
        doubts.setdefault(
            i,
            f"{MAY_BE_MISSED}without its punctuation its question has {tokens} {unit} in a row, "
            f"and this index finds every run from {guarantee} on: a copy that lost it may have "
            "been missed",
        )
    return doubts


def _too_short(policy: Policy, view: TokenView, guarantee: int) -> Bools:
    """Items that the policy looks for whole although that is shorter than the guarantee."""
    n_tokens = view.items.n_tokens
    short = np.zeros(view.items.n_items, np.bool_)
    match policy.traits.short_items:
        case "none":
            pass
        case "question":
            question = n_tokens[:, QUESTION]
            short = (question > 0) & (question < guarantee)
        case "item":
            judged = n_tokens[:, [PARTS.index(part) for part in policy.spec.parts]]
            short = judged.max(axis=1) < guarantee
    return short


def _short_variants(policy: Policy, view: TokenView, guarantee: int) -> dict[int, int]:
    """Items with a variant that a scan finds and an index may miss, and the longest run of it."""
    variants = view.variants
    if not policy.traits.sees_variants or variants is None:
        return {}
    short = np.flatnonzero((variants.sure >= view.spec.seed) & (variants.sure < guarantee))
    return dict(zip(variants.owner[short].tolist(), variants.sure[short].tolist(), strict=True))
