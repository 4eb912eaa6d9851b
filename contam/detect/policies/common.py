"""Share code among published policies: labels from scores, and wording of figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from weakref import ref

import numpy as np

from contam.benchmark.items import PARTS
from contam.detect.labels import LABELS, NOT_CHECKABLE
from contam.detect.model import Judgements, ViewItems
from contam.detect.policies.policy_spec import PolicyTraits
from contam.detect.policies.segments import part_index
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contam.detect.model import Bools, Float64s, Int32s, Int64s, Totals
    from contam.detect.policies.policy_spec import PolicySpec

Fact = TypeVar("Fact")

COUNTS_RUNS: Final = PolicyTraits(
    monotone=False,
    short_items="none",
    needs_weights=False,
    sees_variants=False,
    reads_text=False,
)
"""Traits of a rule that counts runs of n tokens as they stand, wherever they are."""


def judgements(
    spec: PolicySpec, score: Float64s, checkable: Bools, *, tolerance: float = 0.0
) -> Judgements:
    """Labels by the spec's thresholds; what is not checkable is labelled so and scores 0."""
    label = np.zeros(score.shape[0], np.int8)
    for threshold, name in spec.thresholds:
        label[passes(spec, score, threshold, tolerance=tolerance)] = LABELS.index(name)
    label[~checkable] = NOT_CHECKABLE
    return Judgements(label=label, score=np.where(checkable, score, 0.0))


def passes(spec: PolicySpec, score: Float64s, threshold: float, *, tolerance: float = 0.0) -> Bools:
    """Which scores earn the label of this threshold."""
    if spec.comparison == "more than":
        return score > threshold + tolerance
    return score >= threshold - tolerance


class PerItems(Generic[Fact]):
    """Remembers what was computed for the items last asked about; threads may share it.

    It does not hold items and totals themselves: those of a large set take gigabytes.
    """

    _last: tuple[ref[ViewItems], ref[Totals] | None, Fact] | None = None

    def __getstate__(self) -> dict[str, object]:
        """Nothing: a policy read from the file of a plan computes it again."""
        return {}

    def get(
        self, items: ViewItems, compute: Callable[[ViewItems], Fact], totals: Totals | None = None
    ) -> Fact:
        """The remembered value for these very items (and totals), else `compute(items)`."""
        last = self._last
        if last is not None and last[0]() is items and (last[1] and last[1]()) is totals:
            return last[2]
        value = compute(items)
        # One assignment, so no thread sees a half.
        self._last = (ref(items), None if totals is None else ref(totals), value)
        return value


def documents_hold(number: int) -> str:
    """`no document holds`, `1 document holds`, `3 documents hold`."""
    if number == 0:
        return "no document holds"
    return f"{counted(number, 'document')} {'holds' if number == 1 else 'hold'}"


def part_lengths(spec: PolicySpec, n_tokens: Sequence[int], unit: str) -> str:
    """How long the judged parts of an item are: `the question has 3 words`.

    n_tokens  of each of its parts, in PARTS order;  unit  see `unit_names`
    """
    lengths = [
        f"the {PARTS[column]} has {counted(n_tokens[column], unit)}"
        for column in part_index(spec.parts)
        if n_tokens[column]
    ]
    return " and ".join(lengths) or f"there is no text in its {' or '.join(spec.parts)}"


def unit_names(
    spec: PolicySpec, items: ViewItems, rows: Int32s | Int64s, parts: Iterable[str] | None = None
) -> list[str]:
    """What a token of these items is called: without spaces between words, a character.

    parts   the parts that are looked at; those that the policy judges where none are named
    """
    if spec.unit != "word":
        return ["character"] * len(rows)
    columns = part_index(spec.parts if parts is None else parts)
    # Column by column: to take some of the columns at once is slower.
    n_single = sum((items.n_single[rows, column] for column in columns), np.zeros(len(rows), int))
    n_tokens = sum((items.n_tokens[rows, column] for column in columns), np.zeros(len(rows), int))
    kind = np.where(n_single == 0, 0, np.where(n_single == n_tokens, 1, 2))
    return [_UNIT_NAMES[at] for at in kind.tolist()]


_UNIT_NAMES: Final = ("word", "character", "word or character")


def percent(share: float) -> str:
    """A share in percent, rounded down: 79.96 % must not read like the 80 % it misses."""
    tenths = math.floor(share * 1000.0 + 1e-6) / 10.0
    return f"{tenths:.0f} %" if tenths.is_integer() else f"{tenths:.1f} %"


def flags_from(spec: PolicySpec) -> str:
    """How the thresholds are said in a reason, for scores that are shares."""
    word = "above" if spec.comparison == "more than" else "from"
    return "this policy says " + " and ".join(
        f"{name} {word} {percent(score)}" for score, name in spec.thresholds
    )
