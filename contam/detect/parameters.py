"""Say what a run looks for and how: the options of `scan`, `query` and `clean`, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict

from contam.benchmark.mapping import parse_mapping
from contam.corpus.columns import NAMEABLE
from contam.corpus.tokens import READING, settled
from contam.errors import ConfigError, Statement, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

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
