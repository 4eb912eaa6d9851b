"""`contam`: our own definition. An item is judged by its best single document.

The score is the share of the question's wording that stands in the document, each token weighed
by how much it says: common words and wording that many items of the benchmark share weigh little.
A question that says little by itself (a short or generic stem) is judged together with the choices
and the passage it needs; a passage or an answer alone never contaminates an item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.detect.model import (
    CHOICES,
    CLEAN,
    CONTAMINATED,
    NOT_CHECKABLE,
    PARTS,
    PASSAGE,
    QUESTION,
    SUSPECT,
    Judgements,
)
from contam.detect.policies.common import PerItems
from contam.detect.policy_spec import PolicySpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.detect.model import Bools, Float64s, LaneItems, Pairs, Totals
    from contam.detect.policy import Policy

CONTAM: Final = PolicySpec(
    id="contam",
    title="contam's own: weighted coverage by the best single document",
    description=(
        "The share of the question that stands in one document, aligned over edits, insertions and"
        " moved sentences. Common words and wording shared by many items of the benchmark weigh"
        " little; a stem that says little counts only together with its choices or its passage."
    ),
    source="this project, docs/adr",
    confidence="source",
    unit="word",
    n=8,
    scope="one document",
    aggregation="weighted coverage",
    parts=("passage", "question", "choices"),
    thresholds=((0.45, "suspect"), (0.75, "contaminated")),
    count_rule="documents that by themselves make the item suspect or contaminated",
    too_short=(
        "an item is not_checkable when neither passage, question nor any one choice has as many"
        " tokens as a seed; a question shorter than that is looked for beside its choices"
    ),
    # telling: what a question's words must weigh to speak for themselves.
    # strictness, no_run: what is lost for each share not found, of a question that weighs nothing
    # and of one found without a run of n words.
    # least_support: passage or choices stand in the document from this share on.
    parameters=(
        ("telling", 5.0),
        ("strictness", 2.5),
        ("no_run", 1.0),
        ("least_support", 0.3),
    ),
)
SPECS: Final = (CONTAM,)
PRESETS: Final[Mapping[str, Mapping[str, object]]] = {}


def build(spec: PolicySpec) -> Policy:
    """The policy that a spec of this module declares."""
    return WeightedCoverage(spec)


def part_weights(items: LaneItems) -> Float64s:
    """Summed token weights of every part, float64[n, 4]."""
    sums = np.concatenate([[0.0], np.cumsum(items.token_weight.astype(np.float64))])
    result: Float64s = sums[items.token_start + items.n_tokens] - sums[items.token_start]
    return result


#: A question of which this share stands there is short of a full score for another reason.
NEARLY_ALL = 0.9
_WEIGHTS: Final[PerItems[Float64s]] = PerItems()


@dataclass(frozen=True, slots=True)
class WeightedCoverage:
    """The default policy at work."""

    spec: PolicySpec

    def score_pairs(self, pairs: Pairs, items: LaneItems) -> Float64s:
        """Weighted share of what makes the item itself that stands in the document."""
        weights = _WEIGHTS.get(items, part_weights)[pairs.item]
        coverage = pairs.coverage.astype(np.float64)
        telling = self.spec.number("telling")
        question = coverage[:, QUESTION]
        own = weights[:, QUESTION]
        lack = np.maximum(telling - own, 0.0)
        # What a stem lacks is taken from its passage or its choices, the better found one first,
        # and only where they stand in the document at all.
        passage_first = coverage[:, PASSAGE] >= coverage[:, CHOICES]
        one = np.where(passage_first, PASSAGE, CHOICES)
        rows = np.arange(len(pairs))
        support = coverage[rows, one]
        lent = np.where(
            support >= self.spec.number("least_support"), np.minimum(lack, weights[rows, one]), 0.0
        )
        found = own * question + lent * support
        score = found / np.maximum(own + lent, 1e-9)
        # What still lacks must be made good by standing there whole; so must the want of a run.
        words = items.n_tokens[pairs.item, QUESTION]
        no_run = pairs.longest[:, QUESTION] < np.minimum(self.spec.n, words)
        strictness = self.spec.number("strictness") * (lack - lent) / telling
        strictness = strictness + self.spec.number("no_run") * no_run
        score = np.maximum(score - strictness * (1.0 - score), 0.0)
        # Little that is found proves little, however large a share of the item it is.
        score = np.minimum(score, found / (0.5 * telling))
        # A whole question, word for word, is a leak; one that could be asked of anything, a doubt.
        stem = (items.n_tokens[pairs.item, PASSAGE] > 0) & (own < 0.5 * telling)
        whole = pairs.exact[:, QUESTION] & (words >= self.spec.n) & ~(stem & (lent == 0.0))
        certain = whole & ((own >= 0.5 * telling) | (words >= 2 * self.spec.n))
        score = np.where(whole, np.maximum(score, self.spec.threshold("suspect")), score)
        score = np.where(certain, 1.0, score)
        # Half of a telling question, word for word, is at least a doubt.
        half = (2 * pairs.covered[:, QUESTION] >= words) & (found >= 0.4 * telling)
        score = np.where(half, np.maximum(score, self.spec.threshold("suspect")), score)
        # Another question on the same passage shares its wording: only nearly all of it counts.
        borrowed = (lent > 0.0) & passage_first & (question < NEARLY_ALL)
        # Few words may stand anywhere: without choices, passage or answer, they stay a doubt.
        alone = (words < self.spec.n) & (lent == 0.0) & ~pairs.answer_near
        below = 0.99 * self.spec.threshold("contaminated")
        score = np.where(alone | borrowed, np.minimum(score, below), score)
        result: Float64s = np.where(question > 0.0, np.minimum(score, 1.0), 0.0)
        return result

    def hits(self, pairs: Pairs, items: LaneItems) -> Bools:
        """Documents that reach the lowest threshold."""
        result: Bools = self.score_pairs(pairs, items) >= self.spec.thresholds[0][0]
        return result

    def judge(self, items: LaneItems, totals: Totals) -> Judgements:
        """Labels by the best document's score; too short is never clean."""
        label = np.full(items.n_items, CLEAN, np.int8)
        score = totals.best_score
        label[score >= self.spec.threshold("suspect")] = SUSPECT
        label[score >= self.spec.threshold("contaminated")] = CONTAMINATED
        if items.stretch is not None:
            label[(label == CLEAN) & (items.stretch < items.seed)] = NOT_CHECKABLE
        return Judgements(label=label, score=score)

    def reason(self, items: LaneItems, totals: Totals, judgement: Judgements, i: int) -> str:
        """One sentence with the figures behind the label of item i."""
        pair = totals.best_pair
        if judgement.label[i] == NOT_CHECKABLE:
            stretch = 0 if items.stretch is None else int(items.stretch[i])
            return (
                f"too short to judge: words in its longest text: {stretch}, "
                f"and a search needs {items.seed} together"
            )
        if pair.item[i] < 0:
            return "no document shares enough of its wording to be looked at"
        share = float(pair.coverage[i, QUESTION])
        words = int(items.n_tokens[i, QUESTION])
        longest = int(pair.longest[i, QUESTION])
        if share == 0.0 and longest > 0:
            return (
                f"a run of {longest} of its question's {words} words stands in a document: "
                "too little, or too common, to tell it from chance"
            )
        if share == 0.0:
            other = int(pair.longest[i].max())
            return (
                "its question was not found where other parts of it stand; "
                f"the longest run of those has {other} words"
            )
        if pair.exact[i, QUESTION]:
            text = f"the whole question ({words} words) stands in one document, word for word"
        else:
            text = (
                f"{share:.0%} of what the question says stands in one document "
                f"(longest run {longest} of {words} words)"
            )
        if pair.answer_near[i]:
            text += ", and its answer beside it"
        support = max(PASSAGE, CHOICES, key=lambda part: float(pair.coverage[i, part]))
        if pair.coverage[i, support] >= self.spec.number("least_support"):
            text += f", with {pair.coverage[i, support]:.0%} of its {PARTS[support]}"
        if judgement.label[i] != CONTAMINATED and (share >= NEARLY_ALL or pair.exact[i, QUESTION]):
            few = words < CONTAM.n
            text += (
                "; but so few words may stand anywhere"
                if few
                else ("; but that wording says little, or many items share it")
            )
        elif judgement.label[i] == CLEAN:
            text += "; too little, or too common, to tell it from chance"
        return text
