"""Plan a run: items, policies, and one token view per unit the policies need."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from contam.benchmark.item_table import ItemTable
from contam.benchmark.items import ItemName
from contam.benchmark.named import gated_among
from contam.benchmark.read_files import read_benchmarks
from contam.detect.match.token_view import SearchView, TokenView, build_view
from contam.detect.model import Matches
from contam.detect.parameters import MIN_RUN, SEED
from contam.detect.policies.policy import get_policy, reads_text, sees_rephrasings, shortest_run
from contam.errors import PlanMemoryError, PolicyError, Public, Statement, UsageError
from contam.memory import trim
from contam.text.bpe import BUILT_IN_UNITS, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.benchmark.items import BenchItem, Benchmark
    from contam.benchmark.paths import BenchmarkFile
    from contam.detect.parameters import ScanParameters
    from contam.detect.policies.policy import Policy

_SPLIT_BENCHMARK_OR_GIVE_MEMORY: Final = (
    "split the benchmark and scan for each part by itself, or give the process more"
    " memory: about 5 GB for a million short questions"
)


#: Seed and min_run of the `char` unit, in letters and digits; the published definitions use 50.
CHAR_SEED = 24
CHAR_MIN_RUN = 50
#: Every ninth gram of 16 letters and digits finds what all of 24 find, with a ninth of the table.
CHAR_STRIDE = 9
#: From so many on, free memory is given back between the steps of a plan: to take it again costs a
#: tenth of the time.
_MANY_ITEMS = 200_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """The items in canonical order, the policies, and the views they are judged on.

    views    a view a unit
    search_views  the same with what a search needs; none are left when the search of a plan that
             is used up is over, since they are most of its memory
    view_of  for each policy, the index of its view
    """

    parameters: ScanParameters
    benchmarks: tuple[Benchmark, ...]
    items: ItemTable
    policies: tuple[Policy, ...]
    views: tuple[TokenView, ...]
    search_views: list[SearchView]
    view_of: tuple[int, ...]


def make_plan(benchmark: Sequence[str | Path | BenchmarkFile], parameters: ScanParameters) -> Plan:
    """Read the benchmarks and policies and build the views.

    Raises BenchmarkError, PolicyError, UsageError, ConfigError or PlanMemoryError.
    """
    policies = _policies(parameters)
    if parameters.keep_text and gated_among(benchmark):
        # Who reads the results has not agreed to the terms of their owners.
        parameters = replace(parameters, keep_text=False)
    with _enough_memory("reading the benchmark"):
        benchmarks = read_benchmarks(
            benchmark,
            mapping=parameters.mapping,
            ignore=parameters.ignore,
            name=parameters.name,
            split=parameters.split,
            include_path=parameters.include_path,
            secret=not parameters.keep_text,
        )
    return plan_for(benchmarks, parameters, policies)


@contextmanager
def _enough_memory(doing: str) -> Iterator[None]:
    """Say what to do where memory runs out in the block."""
    try:
        yield
    except MemoryError as error:
        raise PlanMemoryError(
            "out of memory while {}", Public(doing), hint=_SPLIT_BENCHMARK_OR_GIVE_MEMORY
        ) from error


def plan_for(
    benchmarks: Sequence[Benchmark],
    parameters: ScanParameters,
    policies: Sequence[Policy] | None = None,
) -> Plan:
    """Build the views for benchmarks that are read already; policies None takes those named.

    Raises PolicyError, UsageError, ConfigError or PlanMemoryError.
    """
    n_items = sum(len(benchmark.items) for benchmark in benchmarks)
    with _enough_memory(f"planning the search for {n_items:,} items"):
        chosen = _policies(parameters) if policies is None else tuple(policies)
        return _plan_for(tuple(benchmarks), parameters, chosen)


def _plan_for(
    benchmarks: tuple[Benchmark, ...], parameters: ScanParameters, policies: tuple[Policy, ...]
) -> Plan:
    items = _in_order(benchmarks)
    if len(items) > _MANY_ITEMS:
        trim()  # what reading left behind
    asked: dict[str, list[Policy]] = {}
    for policy in policies:
        asked.setdefault(_unit_of(policy, parameters), []).append(policy)
    units = [*asked]
    view_of = tuple(units.index(_unit_of(policy, parameters)) for policy in policies)
    if units == ["char"] and (parameters.seed, parameters.min_run) != (SEED, MIN_RUN):
        raise UsageError(
            "seed {} and min_run {} would change nothing: "
            "letters and digits are always searched with {} and {}",
            parameters.seed,
            parameters.min_run,
            CHAR_SEED,
            CHAR_MIN_RUN,
            hint="leave both out, or judge by words",
        )
    search_views = [view_for_unit(items, unit, parameters, mine) for unit, mine in asked.items()]
    views = tuple(view.for_judging() for view in search_views)
    for policy, at in zip(policies, view_of, strict=True):
        seen = views[at].items
        nothing = Matches.zeros(0, len(seen.read))
        # A policy that cannot judge by such a view says so now, and not after the corpus was read.
        _refuse_shorter_runs(policy, seen.min_run)
        policy.hits(nothing, seen, policy.score_matches(nothing, seen))
    if len(items) > _MANY_ITEMS:
        trim()  # what planning left behind
    return Plan(
        parameters=parameters,
        benchmarks=benchmarks,
        items=items,
        policies=policies,
        views=views,
        search_views=search_views,
        view_of=view_of,
    )


def _unit_of(policy: Policy, parameters: ScanParameters) -> str:
    """The unit of the view that a policy is judged on."""
    if policy.spec.unit == "char":
        return "char"
    if sees_rephrasings(policy):
        return f"word, rephrased: {policy.spec.id}"
    # It has its own tokens made of the documents that words find, whatever their case and marks.
    if reads_text(policy) and parameters.unit not in BUILT_IN_UNITS:
        return "word"
    return parameters.unit


def _refuse_shorter_runs(policy: Policy, min_run: int) -> None:
    """Raise PolicyError for a policy that flags by runs that a scan need not report."""
    traits = policy.traits
    by_runs = not (traits.needs_weights or traits.reads_text or traits.rephrasings)
    if by_runs and (run := shortest_run(policy)) < min_run:
        raise PolicyError(
            "policy {!r} flags by runs of {}, and a scan reports every run from {} on",
            policy.spec.id,
            run,
            min_run,
            hint=Statement("ask for it with --min-run {}", run)
            if policy.spec.unit == "word"
            else "letters and digits are always searched so: choose a larger n",
        )


def _policies(parameters: ScanParameters) -> tuple[Policy, ...]:
    policies = tuple(get_policy(policy) for policy in parameters.policies)
    ids = [policy.spec.id for policy in policies]
    if len(set(ids)) != len(ids):
        raise PolicyError("two policies share one id: {}", ", ".join(ids))
    return policies


def _in_order(benchmarks: Sequence[Benchmark]) -> ItemTable:
    """All items by name: the answer must not depend on the order in which files were given."""
    tables = [ItemTable.of(benchmark.items) for benchmark in benchmarks]
    return ItemTable.joined(tables or [ItemTable.of(())]).in_order()


def plan_of(
    items: Sequence[BenchItem],
    parameters: ScanParameters,
    policies: Sequence[Policy],
    view: SearchView,
) -> Plan:
    """The plan for items that are in order already, all judged on one view."""
    return Plan(
        parameters=parameters,
        benchmarks=(),
        items=ItemTable.of(items),
        policies=tuple(policies),
        views=(view.for_judging(),),
        search_views=[view],
        view_of=(0,) * len(policies),
    )


def ordered(items: Sequence[BenchItem]) -> ItemTable:
    """The items by name. Raises UsageError when there is none, or a name is given twice."""
    if not items or len({ItemName.of(item) for item in items}) != len(items):
        raise UsageError("items must be one or more, each named once")
    return ItemTable.of(items).in_order()


def view_for_unit(
    items: ItemTable, unit: str, parameters: ScanParameters, policies: Sequence[Policy]
) -> SearchView:
    """The view of a run in which this unit is matched. Raises UsageError or ConfigError.

    policies  those that judge its matches; each that reads documents itself gets a reader, which
              uses the run's tokenizer file if there is one
    """
    for policy in policies:
        if sees_rephrasings(policy):
            view = build_view(items, unit="word", seed=SEED, min_run=MIN_RUN, with_grams=False)
            rare = policy.rare_words(items)
            read = replace(view.items, read=(policy.known(rare),))
            return replace(view, rephrasings=rare, items=read)
    is_char = unit == "char"
    view = build_view(
        items,
        unit=unit,
        seed=CHAR_SEED if is_char else parameters.seed,
        min_run=CHAR_MIN_RUN if is_char else parameters.min_run,
        stride=CHAR_STRIDE if is_char else 1,
        with_variants=unit == "word" and any(policy.traits.sees_variants for policy in policies),
    )
    reading = [policy for policy in policies if reads_text(policy)]
    if not reading:
        return view
    tokenizer = view.tokenizer
    if tokenizer is None and parameters.unit not in BUILT_IN_UNITS:
        tokenizer = load_tokenizer(parameters.unit)
    readers = tuple(policy.reader(items, tokenizer) for policy in reading)
    known = tuple(reader.known for reader in readers)
    return replace(
        view, readers=readers, reads_with=tokenizer, items=replace(view.items, read=known)
    )
