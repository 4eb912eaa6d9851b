"""Define a log: items, columns of scores, set-up, the tool's numbers; make a benchmark of logs."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import orjson

from contam.benchmark.items import BenchItem
from contam.benchmark.keys import item_key
from contam.errors import InternalError, LogError, Place, Public, Statement
from contam.files.single import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.errors import Hint
    from contam.rescore import Bools, Floats


Setup = tuple[tuple[str, str], ...]
"""What was recorded, by name: "version", "few-shot", "prompt", "system prompt"."""

_NOTHING: Final[tuple[object, ...]] = (None, "", [], {})
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
_DIGITS: Final = 8


def setup_of(
    *,
    version: object = None,
    examples: object = None,
    prompt: Mapping[str, object] | None = None,
    system: object = None,
) -> Setup:
    """A set-up of what a tool records; None is what it does not.

    prompt  what the prompt is made of: its digest tells two prompts apart
    """
    found = {
        "version": _plain(version),
        "few-shot": _plain(examples),
        "prompt": _digest(prompt) if prompt is not None else "",
        "system prompt": _digest({"": system}) if system not in _NOTHING else "",
    }
    return tuple((name, value) for name, value in found.items() if value)


def words(setup: Setup) -> str:
    """A set-up as people read it: `5-shot, version 3, prompt 1f0c9a2b`."""
    parts = [f"{value}-shot" if name == "few-shot" else f"{name} {value}" for name, value in setup]
    return ", ".join(parts) or "not recorded"


def combined(setups: Sequence[Setup]) -> Setup:
    """The set-up of a group of tasks: what they share, and a digest where each has its own."""
    names = dict.fromkeys(name for setup in setups for name, _ in setup)
    found = []
    for name in names:
        values = [dict(setup).get(name, "") for setup in setups]
        alike = len(set(values)) == 1
        found.append((name, values[0] if alike else _digest(dict(enumerate(map(str, values))))))
    return tuple(found)


def _plain(value: object) -> str:
    """Versions are written as 3, 3.0 or "3"."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = "" if value is None or isinstance(value, dict | list) else str(value).strip()
    return text.removesuffix(".0")


def _digest(parts: Mapping[Any, object]) -> str:
    known = {name: value for name, value in parts.items() if value not in _NOTHING}
    if not known:
        return ""
    text = json.dumps(known, sort_keys=True, default=str)
    return hashlib.sha256(_ADDRESS.sub("", text).encode()).hexdigest()[:_DIGITS]


TOLERANCE: Final = 1e-6
"""How far a recomputed number may be from the tool's own; relative for numbers above 1."""

_HAIR: Final = 1e-12

TABLE: Final = "table"
"""The `tool` of logs that are plain tables."""

Kind = Literal["mean", "corpus", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedItem:
    """One item as a log shows it.

    item_id   the tool's own id, as text
    position  0-based place in the data set, where the tool tells it
    question  None where the log has only a prompt, or no text at all
    choices   texts of the options in the log's order, None where the log has none
    prompt    the whole text the model was given, kept only where the question is not told apart
    doc_hash  lm-eval's; equal across models of one task and useless across tools
    cluster   what it shares with other items, where a table's user names it
    """

    item_id: str
    position: int | None = None
    question: str | None = None
    passage: str | None = None
    choices: tuple[str, ...] | None = None
    answer: str | None = None
    prompt: str | None = None
    doc_hash: str | None = None
    cluster: str | None = None

    @property
    def as_asked(self) -> BenchItem:
        """Its texts, a prompt where there is no question."""
        return BenchItem(
            benchmark="",
            split="",
            item_id="",
            question=self.question if self.question is not None else self.prompt or "",
            choices=self.choices or (),
            passage=self.passage,
            answer=self.answer,
        )

    @property
    def content_key(self) -> str:
        """The key of question (or prompt), choices and passage, as `items.parquet` has it."""
        return item_key(self.as_asked)


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreColumn:
    """One metric over all items of a log.

    metric       as the tool's report names it: "exact_match,strict-match", "acc,none", "match"
    score        float64[n], after the tool's own reduction of repeats; nan where not scored, and
                 everywhere for a metric that no item has by itself
    repeats      int32[n], answers behind each score; 0 where not scored
    kind         "mean", "corpus" (needs its own function), "none" (nothing to score again: `note`)
    raw          per item what a corpus metric is made of; None for the other kinds, and None
                 in the place of an item that was not scored
    function     corpus metric of the raw values of some items
    reported     the tool's own number; reported_n the items it counted
    decimals     decimal places that the tool rounds this number to, None for a number in full
    note         why there is nothing to score again, or what is odd about the scores
    """

    metric: str
    score: Floats
    repeats: NDArray[np.int32]
    kind: Kind = "mean"
    raw: tuple[object, ...] | None = None
    function: Callable[[list[object]], float] | None = None
    reported: float | None = None
    reported_n: int | None = None
    decimals: int | None = None
    higher_is_better: bool | None = None
    note: str = ""

    @property
    def scored(self) -> Bools:
        """bool[n]: the items that count."""
        if self.kind == "corpus":
            return np.array([value is not None for value in self.raw or ()], np.bool_)
        return ~np.isnan(self.score)

    def adds_up(self) -> bool:
        """Whether the metric made anew from all rows is the number that the tool reports."""
        whole = np.ones(len(self.score), np.bool_)
        return self.reported is not None and close(
            self.aggregate(whole), self.reported, self.decimals
        )

    def aggregate(self, mask: Bools) -> float:
        """The metric over the scored items of a mask, nan when there is none.

        Raises LogError for a metric that cannot be made from its rows.
        """
        if len(mask) != len(self.score):
            raise InternalError(f"a mask of {len(mask)} for {len(self.score)} items")
        if self.kind == "none":
            raise LogError(f"{self.metric} cannot be scored again: {self.note}")
        if self.kind == "corpus":
            chosen = zip(self.raw or (), mask, strict=True)
            made_of = [value for value, wanted in chosen if wanted and value is not None]
            return self.function(made_of) if made_of and self.function else math.nan
        values = self.score[mask & self.scored]
        return math.fsum(values) / len(values) if len(values) else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupClaim:
    """A number that a tool reports for a group of tasks: which tasks, which metric."""

    group: str
    metric: str
    reported: float
    tasks: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Log:
    """One model's run of one benchmark.

    path        its file or folder; digest: SHA-256 of the file (of all its files), hex. A reader
                gives them where they are not those of the file it was given
    run_id      tells two runs of one model apart, None where the tool has nothing for it
    n_errors    items the tool failed on, whose score is nan
    group       the group of tasks it belongs to; claims: the numbers reported for its groups
    primary     the metric that the tool itself calls the main one, None where it names none
    setup       examples, prompt and version, as far as the tool records them
    roles       of a plain table: what its columns were taken for
    names_benchmark  whether `benchmark` is its own word, and not its folder's
    """

    tool: str
    path: str = ""
    digest: str = ""
    model: str
    benchmark: str
    items: tuple[LoggedItem, ...]
    columns: tuple[ScoreColumn, ...]
    tool_version: str | None = None
    split: str | None = None
    run_id: str | None = None
    notes: tuple[str, ...] = ()
    n_errors: int = 0
    group: str | None = None
    claims: tuple[GroupClaim, ...] = field(default=())
    primary: str | None = None
    setup: Setup = ()
    names_benchmark: bool = True
    roles: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for column in self.columns:
            if not len(column.score) == len(column.repeats) == len(self.items):
                raise InternalError(f"{self.path}: {column.metric} does not fit the items")

    @property
    def n_unscored(self) -> int:
        """Items without a score under some metric, those aside on which the tool failed."""
        unscored = [np.isnan(column.score) for column in self.columns if column.kind == "mean"]
        n = int(np.count_nonzero(np.any(unscored, axis=0))) if unscored else 0
        return max(0, n - self.n_errors)

    @property
    def is_table(self) -> bool:
        """Whether it is a plain table, which says of its scores only what its columns say."""
        return self.tool == TABLE

    def column(self, metric: str) -> ScoreColumn:
        """The column of a metric; LogError when the log has none."""
        for column in self.columns:
            if column.metric == metric:
                return column
        known = ", ".join(column.metric for column in self.columns)
        raise self.fault("no metric {!r}", metric, hint=Statement("it has {}", Public(known)))

    def fault(self, said: str, *facts: object, hint: Hint = ()) -> LogError:
        """What is wrong with it."""
        return LogError(f"{{}}: {said}", Place(self.path), *facts, hint=hint)


def self_check(log: Log) -> None:
    """Demand that every metric made anew from the rows is the number the tool reports.

    Raises LogError, with both numbers, when one is further off than `TOLERANCE` or counts other
    items. Metrics without a reported number, or that cannot be made anew, are passed over.
    """
    for column in log.columns:
        if column.kind == "none":
            continue
        n_scored = int(np.count_nonzero(column.scored))
        where = f"{log.path}: {column.metric} of {log.model} on {log.benchmark}"
        if column.reported_n is not None and column.reported_n != n_scored:
            said = "{}: the tool counts {} scored items, the log has {}"
            hint = "the log is not whole, or belongs to another run: copy it again"
            raise LogError(said, Place(where), column.reported_n, n_scored, hint=hint)
        if column.reported is None:
            continue
        if not column.adds_up():
            found = column.aggregate(np.ones(len(log.items), np.bool_))
            said = "{}: the tool reports {:.8g}, its rows give {:.8g}"
            hint = "the log is not whole, was edited, or belongs to another run"
            raise LogError(said, Place(where), column.reported, found, hint=hint)


def close(found: float, reported: float, decimals: int | None = None) -> bool:
    """Whether two numbers are the same to `TOLERANCE`; nan is close to nothing.

    decimals  places the second is rounded to: it may then be half a unit of the last place off
    """
    if decimals is not None:
        # Binary fractions do not hit half a unit exactly.
        return abs(found - reported) <= 0.5 * 10.0**-decimals + _HAIR
    return abs(found - reported) <= TOLERANCE * max(1.0, abs(reported))


def mean_column(
    metric: str,
    values: Sequence[object] | Floats,
    *,
    repeats: Sequence[int] | NDArray[np.int32] | None = None,
    reported: float | None = None,
    reported_n: int | None = None,
    higher_is_better: bool | None = None,
) -> ScoreColumn:
    """A metric that is the mean of its items' values; None or nan for an item without one.

    Values other than numbers and truth values cannot be averaged, and so not be scored again.
    Scores that are no shares are noted.
    """
    if not are_numbers(values):
        return no_column(metric, len(values), "its rows hold no plain numbers")
    score = np.array(values, np.float64)
    known = score[~np.isnan(score)]
    if not np.isfinite(known).all():
        raise LogError(f"{metric} has an infinite score", hint="see which row of the log it is")
    note = ""
    if len(known) and (known.min() < 0 or known.max() > 1):
        note = f"scores from {known.min():.6g} to {known.max():.6g}, not within 0 to 1"
    return ScoreColumn(
        metric=metric,
        score=score,
        repeats=np.array(~np.isnan(score) if repeats is None else repeats, np.int32),
        reported=reported,
        reported_n=reported_n,
        higher_is_better=higher_is_better,
        note=note,
    )


def are_numbers(values: Sequence[object] | Floats) -> bool:
    """Whether all values are numbers, truth values or None."""
    return all(value is None or isinstance(value, bool | int | float) for value in values)


def no_column(metric: str, n_items: int, note: str) -> ScoreColumn:
    """A metric that was logged and cannot be scored again, with the reason."""
    return ScoreColumn(
        metric=metric,
        score=np.full(n_items, np.nan),
        repeats=np.zeros(n_items, np.int32),
        kind="none",
        note=note,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class LoggedBenchmark:
    """Rows that the readers of benchmarks take, and what could not be made one.

    n_again   items that further logs hold as well
    without   (log, items in it whose question is not told apart from the prompt)
    """

    rows: tuple[dict[str, object], ...]
    n_again: int
    without: tuple[tuple[str, int], ...]


def benchmark_of(logs: Sequence[Log]) -> LoggedBenchmark:
    """All items that the logs hold, each once under its benchmark.

    Raises LogError when there are none, and for one id with two texts in a benchmark.
    """
    by_key: dict[tuple[str, str], None] = {}
    by_id: dict[tuple[str, str, str], str] = {}
    rows: list[dict[str, object]] = []
    n_again = 0
    without: Counter[str] = Counter()
    for log in logs:
        benchmark = log.benchmark if log.names_benchmark else ""
        own: set[str] = set()
        for item in log.items:
            if item.question is None or not item.question.strip():
                without[log.path] += 1
                continue
            key = item.content_key
            # Two equal items of one log are two items of the benchmark: it holds duplicates.
            if (benchmark, key) in by_key and key not in own:
                n_again += 1
                continue
            own.add(key)
            by_key[benchmark, key] = None
            name = (benchmark, log.split or "", item.item_id)
            if name in by_id:
                hint = "two versions, or two tools that count differently: take one at a time"
                facts = item.item_id, Public(benchmark), Place(by_id[name])
                raise log.fault("item {} of {} has another text in {}", *facts, hint=hint)
            by_id[name] = log.path
            rows.append(_row(item, benchmark, log.split))
    if not rows:
        hint = (
            "lm-eval samples, Inspect, HELM and OLMES logs hold the items, and tables with a "
            "column for the question (--columns question=COLUMN)"
        )
        raise LogError("these logs hold no items, only prompts or numbers", hint=hint)
    return LoggedBenchmark(rows=tuple(rows), n_again=n_again, without=tuple(without.items()))


def write_items(rows: Iterable[dict[str, object]], path: Path, *, overwrite: bool = False) -> None:
    """Write JSON lines, whole or not at all; OutputError when that cannot be done."""
    write_file(path, b"".join(orjson.dumps(row) + b"\n" for row in rows), overwrite=overwrite)


def _row(item: LoggedItem, benchmark: str, split: str | None) -> dict[str, object]:
    found = {
        # A table without ids names its items by their questions: readers make them an id.
        "id": item.item_id if item.item_id != item.question else None,
        "benchmark": benchmark,
        "split": split,
        "passage": item.passage,
        "question": item.question,
        "choices": list(item.choices) if item.choices else None,
        "answer": item.answer,
    }
    return {name: value for name, value in found.items() if value}
