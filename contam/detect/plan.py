"""Plan a run: its options, items, policies, and one token view per unit the policies need.

`scan`, `query` and `clean` take the same options, which are checked here.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict

from contam.benchmark.item_table import ItemTable
from contam.benchmark.items import ItemName
from contam.benchmark.mapping import parse_mapping
from contam.benchmark.named import gated_among
from contam.benchmark.read_files import read_benchmarks
from contam.corpus.columns import NAMEABLE
from contam.corpus.tokens import READING, settled
from contam.detect.match.token_view import SearchView, TokenView, build_view
from contam.detect.model import Matches
from contam.detect.policies.policy import get_policy, reads_text, sees_rephrasings, shortest_run
from contam.errors import ConfigError, PlanMemoryError, PolicyError, Public, Statement, UsageError
from contam.memory import trim
from contam.text.bpe import BUILT_IN_UNITS, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.benchmark.items import BenchItem, Benchmark
    from contam.benchmark.paths import BenchmarkFile
    from contam.detect.policies.policy import Policy


#: Of the units other than `char`, where nobody asks otherwise.
SEED = 5
MIN_RUN = 8
_LEAST_SEED = 2


class ItemOptions(TypedDict, total=False):
    """What `scan`, `query` and `clean` may be told of items and of how they are matched.

    policies  ids (`contam policies` lists them), id:preset, or policy files: ("contam",)
    mapping   part of an item -> field of the benchmark's rows, or `part=field,...`
    ignore    fields of the benchmark's rows that are no part of an item, as `--ignore`
    name      what to call the benchmark
    split     take rows of this split; rows without a split get this name
    include_path  folders with tasks of one's own, for benchmarks named lm-eval:TASK
    seed      shortest run, in tokens, that can lead to a match: 5
    min_run   every run of so many tokens is reported: 8
    """

    policies: str | Sequence[str]
    mapping: str | Mapping[str, str] | None
    ignore: str | Sequence[str]
    name: str | None
    split: str | None
    include_path: str | Sequence[str]
    seed: int
    min_run: int


class CorpusOptions(ItemOptions, total=False):
    """What `scan` and `clean` may be told of a corpus as well.

    unit     what a token is: "word", "char" or the path of a tokenizer.json
    text     column of the document text, where the usual names do not find it
    columns  "id", "url", "date" or "source" of a document -> the column that holds it
    exclude  patterns of shards to leave out on purpose, as `--exclude`
    lines    a document of plain text is a line, not a file
    """

    unit: str
    text: str | None
    columns: Mapping[str, str] | None
    exclude: str | Sequence[str]
    lines: bool


class QueryOptions(ItemOptions, total=False):
    """What `scan` and `query` may be told of their results as well.

    allow_missing  judge items although shards could not be read (recorded in the result)
    max_evidence   documents kept as evidence per item, 20; counts stay exact
    keep_text      whether the result holds the items' texts: it does
    """

    allow_missing: bool
    max_evidence: int
    keep_text: bool


class ScanOptions(CorpusOptions, QueryOptions, total=False):
    """What `scan` may be told: of items, of a corpus and of its results.

    every_hit  keep every document that a policy counts, not the best of each item alone, so that
               `clean` need not search again
    """

    every_hit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanParameters:
    """Everything that decides a run's answer, apart from corpus and benchmark.

    unit      of the word-like policies: "word", "char" or the path of a tokenizer.json
    columns   field of a document (id, url, date, source) -> the corpus column that holds it
    exclude   patterns of shards, ignore  fields of the benchmarks, that are left out on purpose
    lines     whether a document of plain text is a line, not a file
    seed      tokens of the grams that find candidates; min_run  run that is always reported
    every_hit  keep every document that a policy counts, to clean the corpus of them
    """

    policies: tuple[str, ...] = ("contam",)
    unit: str = "word"
    seed: int = SEED
    min_run: int = MIN_RUN
    max_evidence: int = 20
    allow_missing: bool = False
    keep_text: bool = True
    text: str | None = None
    columns: Mapping[str, str] | None = None
    exclude: tuple[str, ...] = ()
    lines: bool = False
    mapping: Mapping[str, str] | None = None
    ignore: tuple[str, ...] = ()
    name: str | None = None
    split: str | None = None
    include_path: tuple[str, ...] = ()
    every_hit: bool = False

    def __post_init__(self) -> None:
        if not self.policies:
            raise UsageError("no policy was asked for", hint="`contam policies` lists them")
        if len(set(self.policies)) != len(self.policies):
            raise UsageError("a policy is named twice", hint="name each policy once")
        if not _LEAST_SEED <= self.seed <= self.min_run:
            raise ConfigError(
                "seed {} and min_run {} do not fit: "
                "a seed has 2 tokens or more and is no longer than min_run",
                self.seed,
                self.min_run,
                hint="the defaults are 5 and 8",
            )
        if self.max_evidence < 1:
            raise ConfigError("max_evidence must be 1 or more", hint="the default is 20")

    @classmethod
    def of(cls, options: Mapping[str, Any], known: Collection[str], **settled: Any) -> Self:  # noqa: ANN401 - fields of several types
        """The parameters that the keywords of a call give.

        known    the keywords that the call takes
        settled  what it decides itself

        Raises TypeError for another keyword, UsageError or ConfigError for a value.
        """
        if unknown := sorted(options.keys() - known):
            raise TypeError(f"unexpected keyword argument {unknown[0]!r}")
        given = {key: _READ.get(key, _as_it_is)(value) for key, value in options.items()}
        return cls(**given, **settled)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    """One by one or with commas between."""
    return tuple(given.split(",") if isinstance(given, str) else given)


def _several(given: str | Sequence[str]) -> tuple[str, ...]:
    return tuple([given] if isinstance(given, str) else given)


def _fields(mapping: str | Mapping[str, str] | None) -> dict[str, str] | None:
    if isinstance(mapping, str):
        mapping = parse_mapping([mapping])
    return dict(mapping) if mapping else None


def _columns(columns: Mapping[str, str] | None) -> dict[str, str] | None:
    for name in columns or ():
        if name not in (*NAMEABLE, *READING):
            raise UsageError(
                "{!r} is not one of id, url, date and source",
                name,
                hint=Statement("known: {}", ", ".join(NAMEABLE)),
            )
    if not columns:
        return None
    found = {name: columns[name] for name in NAMEABLE if name in columns}
    return found | settled(columns)


def _as_it_is(value: Any) -> Any:  # noqa: ANN401 - fields of several types
    return value


#: How keywords are read that may be given in several ways.
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "policies": _names,
    "mapping": _fields,
    "ignore": _several,
    "include_path": _several,
    "columns": _columns,
    "exclude": _several,
}


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
