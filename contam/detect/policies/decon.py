"""`decon-default`: one document's idf-weighted overlap with question, answer and passage.

The scoring is decon's (`decon_formulas`); what it is fed with is contam's evidence, so it is
approximate. The differences, all of them:

- A token is a word, and every gram has 5 of them. decon counts cl100k tokens, of which a text has
  about a third more, with grams of 5 for questions, 3 for answers and 4 for passages.
- Every gram is looked up. decon looks at one in ten, and then follows a cluster that ends after 11
  misses; here the grams of a question may stand anywhere in the document.
- An answer under 5 words counts as found (1) when it stands next to the question, else not (0); a
  longer one counts by its grams anywhere in the document, as does a passage. decon looks for them
  in windows after and before the question.
- idf is taken within one benchmark, where one row is one item. In decon each option is a row.

Pinned: an item that decon would not index (under 20 words in all, under 4 different ones, no
question, a question without a gram) is `not_checkable`; a document below the early gates scores 0,
as decon does not report it; the options of an item are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.detect.model import ANSWER, NOT_CHECKABLE, PASSAGE, QUESTION
from contam.detect.policies import decon_formulas as formulas
from contam.detect.policies.common import (
    PerItems,
    counted,
    judgements,
    passes,
    percent,
    unit_name,
)
from contam.detect.policies.segments import Segments, in_blocks
from contam.detect.policy_spec import PolicySpec
from contam.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.detect.model import Bools, Float64s, Int64s, Judgements, LaneItems, Pairs, Totals
    from contam.detect.policy import Policy

DECON_DEFAULT: Final = PolicySpec(
    id="decon-default",
    title="decon, idf-weighted overlap",
    description=(
        "The best document is scored by the idf-weighted share of the grams of question, answer"
        " and passage that it holds; the weights favour the question, and short items must match"
        " almost whole. Approximate: scored on words and their 5-grams in place of cl100k tokens,"
        " without decon's sampling, clusters and windows."
    ),
    source="Ai2 decon 0.3.0, behaviour of its simple method",
    confidence="source",
    approximate=True,
    unit="word",
    n=5,
    scope="one document",
    aggregation="idf overlap",
    parts=("passage", "question", "answer"),
    thresholds=((0.8, "contaminated"),),
    count_rule="documents that each score at least the threshold",
    too_short=(
        "an item under 20 words or under 4 different ones, or whose question has under 5, is"
        " not_checkable: decon does not index it or cannot find it"
    ),
    parameters=(
        ("ramp_start", 20.0),
        ("ramp_end", 50.0),
        ("least_tokens", 20),
        ("least_distinct", 4),
    ),
    presets=("olmo-web", "olmo-synth"),
)
SPECS: Final = (DECON_DEFAULT,)
PRESETS: Final[Mapping[str, Mapping[str, object]]] = {
    "olmo-web": {
        "thresholds": {"contaminated": 0.88},
        "parts": ["question", "answer"],
        "parameters": {"ramp_start": 25.0},
    },
    "olmo-synth": {
        "thresholds": {"contaminated": 0.78},
        "parameters": {"ramp_start": 5.0, "ramp_end": 26.0},
    },
}

# Overlaps arrive as 32-bit shares, so a sum that equals the threshold may miss it in the last bits.
_TOLERANCE: Final = 1e-6


class Facts(NamedTuple):
    """What scoring needs to know of each item, all of length n_items.

    indexed    bool     decon would index it and could find it
    n_question int64    words of the question
    n_words    int64    words of all judged parts
    n_distinct int64    how many of them differ
    weight     Weights  of its parts
    gate       float64  the least O_q that is looked at
    needed     float64  the base score that flags it
    """

    indexed: Bools
    n_question: Int64s
    n_words: Int64s
    n_distinct: Int64s
    weight: formulas.Weights
    gate: Float64s
    needed: Float64s


@dataclass(frozen=True, slots=True)
class Decon:
    """The score of the best document, 0..1, by decon's weights and length rule."""

    spec: PolicySpec
    _facts: PerItems[Facts] = field(default_factory=PerItems, repr=False, compare=False)

    def facts(self, items: LaneItems) -> Facts:
        """Weights, gate and needed base score of every item."""
        return self._facts.get(items, self._compute_facts)

    def _compute_facts(self, items: LaneItems) -> Facts:
        if items.seed != self.spec.n:
            raise PolicyError(
                f"policy {self.spec.id!r} weighs grams of {self.spec.n} words,"
                f" but the scan uses grams of {items.seed}",
                hint=f"scan with seed {self.spec.n}, or leave this policy out",
            )
        spec, threshold = self.spec, self.spec.threshold("contaminated")
        start, end = spec.number("ramp_start"), spec.number("ramp_end")
        n_words, n_distinct, n_grams, n_answer = in_blocks(items, spec.parts, self._counts)
        n_question = items.n_tokens[:, QUESTION].astype(np.int64)
        n_passage = self._judged_tokens(items, "passage", PASSAGE)
        length = n_question + n_answer + n_passage
        gate = formulas.early_gate(threshold)
        return Facts(
            indexed=(n_words >= spec.number("least_tokens"))
            & (n_distinct >= spec.number("least_distinct"))
            & (n_grams > 0),
            n_question=n_question,
            n_words=n_words,
            n_distinct=n_distinct,
            weight=formulas.weights(
                n_answer > 0,
                n_passage > 0,
                formulas.question_confidence(n_grams),
                formulas.answer_confidence(n_answer),
            ),
            gate=formulas.ramp(n_question, gate, start=start, end=end),
            needed=formulas.ramp(length, threshold, start=start, end=end),
        )

    def _counts(self, items: LaneItems) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Per item: words, different words, different question grams, different answer words."""
        judged = Segments.of(items, self.spec.parts)
        question = Segments.of(items, ("question",))
        answer = Segments.of(items, ("answer",))
        n_answer = answer.distinct(items.token_hash[answer.place])
        if "answer" not in self.spec.parts:
            n_answer = np.zeros(items.n_items, np.int64)
        return (
            judged.by_item(judged.length).sum(axis=1),
            judged.distinct_by_item(items.token_hash[judged.place]),
            question.distinct_grams(items.token_hash[question.place], self.spec.n),
            n_answer,
        )

    def _judged_tokens(self, items: LaneItems, name: str, column: int) -> Int64s:
        if name not in self.spec.parts:
            return np.zeros(items.n_items, np.int64)
        return items.n_tokens[:, column].astype(np.int64)

    def answer_overlap(self, pairs: Pairs, items: LaneItems) -> Float64s:
        """O_a of each document: by grams, or for an answer too short for one by standing near."""
        short = items.n_tokens[pairs.item, ANSWER] < self.spec.n
        by_grams = pairs.gram_share[:, ANSWER].astype(np.float64)
        return np.where(short, pairs.answer_near.astype(np.float64), by_grams)

    def score_pairs(self, pairs: Pairs, items: LaneItems) -> Float64s:
        """The reported score of each document; 0 below the early gates."""
        facts = self.facts(items)
        mine = pairs.item
        weight = formulas.Weights(*(part[mine] for part in facts.weight))
        o_q = pairs.gram_share[:, QUESTION].astype(np.float64)
        o_p = pairs.gram_share[:, PASSAGE].astype(np.float64)
        base = formulas.base_score(weight, o_q, self.answer_overlap(pairs, items), o_p)
        score = formulas.scaled_score(
            np.where(base > 1.0 - _TOLERANCE, 1.0, base),
            self.spec.threshold("contaminated"),
            facts.needed[mine],
        )
        looked_at = facts.indexed[mine] & (o_q >= facts.gate[mine] - _TOLERANCE)
        return np.where(looked_at, score, 0.0)

    def hits(self, pairs: Pairs, items: LaneItems, score: Float64s | None = None) -> Bools:
        """Documents that would flag the item by themselves."""
        score = self.score_pairs(pairs, items) if score is None else score
        threshold = self.spec.threshold("contaminated")
        return passes(self.spec, score, threshold, tolerance=_TOLERANCE)

    def judge(self, items: LaneItems, totals: Totals) -> Judgements:
        """Labels by the best document; not checkable where decon would not look."""
        indexed = self.facts(items).indexed
        return judgements(self.spec, totals.best_score, indexed, tolerance=_TOLERANCE)

    def reason(self, items: LaneItems, totals: Totals, judgement: Judgements, i: int) -> str:
        """The overlaps of the best document, its score and where the label begins."""
        facts = self.facts(items)
        word = unit_name(self.spec, items, i)
        threshold = self.spec.threshold("contaminated")
        if judgement.label[i] == NOT_CHECKABLE:
            return (
                f"{counted(int(facts.n_words[i]), word)} in all, {facts.n_distinct[i]:,} of them"
                f" different, {facts.n_question[i]:,} in the question; this policy needs"
                f" {int(self.spec.number('least_tokens'))},"
                f" {int(self.spec.number('least_distinct'))} and {self.spec.n}"
            )
        if judgement.score[i] == 0.0:
            least = percent(float(facts.gate[i]))
            asked = counted(int(facts.n_question[i]), word)
            return f"no document holds enough of the question: one of {asked} needs {least}"
        best = totals.best_pair.take(slice(i, i + 1))
        shares = [f"{percent(float(best.gram_share[0, QUESTION]))} of the question"]
        if facts.weight.answer[i] > 0:
            o_a = float(self.answer_overlap(best, items)[0])
            shares.append(f"{percent(o_a)} of the answer")
        if facts.weight.passage[i] > 0:
            shares.append(f"{percent(float(best.gram_share[0, PASSAGE]))} of the passage")
        return (
            f"the best document holds {' and '.join(shares)}, by rarity, and scores"
            f" {np.floor(judgement.score[i] * 1000 + 1e-3) / 1000:.3f};"
            f" this policy flags from {threshold:g}"
        )


def build(spec: PolicySpec) -> Policy:
    """The policy of this spec."""
    if "question" not in spec.parts or "choices" in spec.parts:
        raise PolicyError(
            f"policy {spec.id!r} judges a question with or without its answer and passage"
        )
    if not 0 <= spec.number("ramp_start") < spec.number("ramp_end"):
        raise PolicyError(f"policy {spec.id!r}: ramp_start must lie below ramp_end")
    return Decon(spec)
