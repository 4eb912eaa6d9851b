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

from contam.benchmark.items import BenchItem
from contam.benchmark.keys import item_key
from contam.errors import InternalError, LogError, Place, Public, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.errors import Hint
    from contam.rescore import Bools, Floats

    Aggregate = Callable[[list[object]], float]


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
    question  None where the log has only a prompt, or no text at all
    choices   texts of the options in the log's order, None where the log has none
    prompt    the whole text the model was given, kept only where the question is not told apart
    doc_hash  lm-eval's; equal across models of one task and useless across tools
    cluster   what it shares with other items, where a table's user names it
    """

    item_id: str
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


def binary_f1(values: list[object]) -> float:
    """F1 of label 1 over [gold, predicted] pairs; 0 when there is neither a hit nor a miss."""
    counts = Counter(map(_labels, values))
    if not {label for pair in counts for label in pair} <= {"0", "1"}:
        raise ValueError("F1 over other labels than 0 and 1")
    hits = counts["1", "1"]
    wrong = counts["0", "1"] + counts["1", "0"]
    return 2 * hits / (2 * hits + wrong) if hits or wrong else 0.0


def matthews(values: list[object]) -> float:
    """Matthews correlation, for any number of labels, over [gold, predicted] pairs."""
    counts = Counter(map(_labels, values))
    n = counts.total()
    gold: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    right = 0
    for (truth, guess), number in counts.items():
        gold[truth] += number
        answers[guess] += number
        right += number if truth == guess else 0
    together = sum(gold[label] * answers[label] for label in gold)
    spread = (n * n - sum(k * k for k in answers.values())) * (
        n * n - sum(k * k for k in gold.values())
    )
    return (right * n - together) / math.sqrt(spread) if spread else 0.0


def perplexity(values: list[object]) -> float:
    """Inverse geometric mean of likelihoods given as logarithms."""
    return math.exp(-math.fsum(map(_number, values)) / len(values))


def weighted_perplexity(values: list[object]) -> float:
    """The same over [log likelihood, length] pairs, per unit of length."""
    return math.exp(-_per_unit(values))


def bits_per_byte(values: list[object]) -> float:
    """Bits a byte takes, over [log likelihood, bytes] pairs."""
    return -_per_unit(values) / math.log(2)


def brier(values: list[object]) -> float:
    """Mean squared distance of [gold, probabilities] pairs from certainty."""
    total = []
    for value in values:
        gold, chances = _pair(value)
        if not isinstance(chances, list):
            raise ValueError("no list of probabilities")  # noqa: TRY004 - a value, not a type, of a log
        known = [_number(chance) for chance in chances]
        place = int(_number(gold))
        total.append(math.fsum((p - (i == place)) ** 2 for i, p in enumerate(known)))
    return math.fsum(total) / len(total)


def median(values: list[object]) -> float:
    """The middle value; of an even number, the upper one of the two in the middle."""
    return sorted(map(_number, values))[len(values) // 2]


CORPUS: Final[dict[str, Aggregate]] = {
    "f1": binary_f1,
    "matthews_corrcoef": matthews,
    "mcc": matthews,
    "perplexity": perplexity,
    "weighted_perplexity": weighted_perplexity,
    "word_perplexity": weighted_perplexity,
    "byte_perplexity": weighted_perplexity,
    "bits_per_byte": bits_per_byte,
    "brier_score": brier,
    "median": median,
}
"""Name of an aggregation, or of the metric that has it by default -> its function."""

ELSEWHERE: Final = frozenset({"bleu", "chrf", "ter", "sacrebleu", "rouge"})
"""Metrics whose only definition is another package."""


def _per_unit(values: list[object]) -> float:
    pairs = [tuple(map(_number, _pair(value))) for value in values]
    return math.fsum(a for a, _ in pairs) / math.fsum(b for _, b in pairs)


def _pair(value: object) -> tuple[object, object]:
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 - a pair has two
        raise ValueError(f"expected a pair, found {value!r}")
    return value[0], value[1]


def _labels(value: object) -> tuple[str, str]:
    gold, answers = _pair(value)
    return str(gold), str(answers)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, found {value!r}")  # noqa: TRY004 - the same
    return float(value)


Weighting = Literal["micro", "macro", "unknown"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskGroup:
    """One group number of one run.

    logs       the runs of its tasks, () when one is missing
    weighting  "micro" weighs items alike, "macro" tasks alike; "unknown" when it cannot be told
    note       why it cannot be scored again, or that both ways gave the reported number
    """

    name: str
    model: str
    metric: str
    reported: float
    logs: tuple[Log, ...]
    weighting: Weighting
    note: str = ""

    def aggregate(self, masks: Sequence[Bools]) -> float:
        """The group's number over a mask of items per log; nan when a task has no item left."""
        if self.weighting == "unknown":
            raise LogError("group {} cannot be scored again: {}", self.name, Public(self.note))
        return _average(self.logs, self.metric, masks, self.weighting)


def find_groups(logs: Iterable[Log]) -> tuple[TaskGroup, ...]:
    """All group numbers that the logs' own results files report, by model, run and group."""
    runs: dict[tuple[str, str | None], list[Log]] = {}
    for log in logs:
        if log.claims:
            runs.setdefault((log.model, log.run_id), []).append(log)
    found = []
    for (model, _), members in runs.items():
        by_task = {log.benchmark: log for log in members}
        claims = dict.fromkeys(claim for log in members for claim in log.claims)
        for claim in claims:
            missing = [task for task in claim.tasks if task not in by_task]
            chosen = tuple(by_task[task] for task in claim.tasks if task in by_task)
            weighting, note = _weighting(chosen, claim.metric, claim.reported, missing)
            found.append(
                TaskGroup(
                    name=claim.group,
                    model=model,
                    metric=claim.metric,
                    reported=claim.reported,
                    logs=() if missing else chosen,
                    weighting=weighting,
                    note=note,
                )
            )
    return tuple(found)


def _weighting(
    logs: Sequence[Log], metric: str, reported: float, missing: Sequence[str]
) -> tuple[Weighting, str]:
    if missing:
        return "unknown", f"no log of {', '.join(missing)}"
    columns = {log.benchmark: [c for c in log.columns if c.metric == metric] for log in logs}
    without = [task for task, own in columns.items() if not own or own[0].kind != "mean"]
    if without:
        return "unknown", f"no mean of {metric} in {', '.join(without)}"
    masks = [np.ones(len(log.items), np.bool_) for log in logs]
    fits: list[Weighting] = [
        way for way in ("micro", "macro") if close(_average(logs, metric, masks, way), reported)
    ]
    if not fits:
        return "unknown", f"neither way of averaging its tasks gives the reported {reported:.6g}"
    return fits[0], "" if len(fits) == 1 else "both ways of averaging give the reported number"


def _average(logs: Sequence[Log], metric: str, masks: Sequence[Bools], way: str) -> float:
    means, weights = [], []
    for log, mask in zip(logs, masks, strict=True):
        column = log.column(metric)
        means.append(column.aggregate(mask))
        weights.append(int(np.count_nonzero(mask & column.scored)) if way == "micro" else 1)
    if way == "micro":
        # A task without an item left weighs nothing.
        means = [mean if weight else 0.0 for mean, weight in zip(means, weights, strict=True)]
    total = sum(weights)
    return (
        math.fsum(m * w for m, w in zip(means, weights, strict=True)) / total if total else math.nan
    )
