"""Compute metrics over whole sets of answers: F1, Matthews, perplexity, Brier.

Each takes the per-item values as the tool logs them. A value of another shape is a ValueError.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

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
