"""Compute metrics over whole sets of answers, and the numbers of groups of tasks.

F1, Matthews, perplexity and Brier take the per-item values as the tool logs them. A value of
another shape is a ValueError. lm-eval does not record whether a group weighs its tasks by size or
counts each once; the reported number shows it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from contam.errors import LogError, Public
from contam.rescore.logs.model import close

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contam.rescore import Bools
    from contam.rescore.logs.model import Log

    Aggregate = Callable[[list[object]], float]


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
