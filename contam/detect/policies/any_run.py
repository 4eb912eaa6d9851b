"""Policies that flag an item for one run of n words, such as `gpt3-test` and `openr1-8`.

Words are contam's: letters and digits in a row, case, accents and width folded. What differs from
the originals, or is pinned where they leave it open:

- A run is inside one part. The originals join some parts first; a gram across the seam is not
  text that anybody wrote, and is not searched.
- Choices and answers are not judged: the originals search the prompt they build, without options.
- An item none of whose judged parts has n words holds no gram. The originals call it clean; here it
  is `not_checkable`. (The body of the GPT-3 paper also speaks of an overlap with the whole of a
  shorter example; its appendix, which gives the method and the figures, does not.)
- `lmeval-13`: the original deletes punctuation and splits at white space, so `well-known` is one
  word there and two here, and two tokens of mere punctuation are no words in either. What is
  searched is set task by task there: the question in most, the passage alone in some, the question
  between `Question:` and `Answer:` in others. Here it is passage and question in all.
- `openr1-8`: the original splits at white space and keeps punctuation, so `mill,` is not `mill`
  there, and it looks at the problem of a training row, not at its solution. Here all of a document.
- Nothing is forgiven for being frequent: GPT-3 skipped grams of more than 10 documents when it cut
  its training set, not when it rated test items, and an item on a thousand pages is the worst leak.
- `gpt3-test`: N is the 5th percentile of the benchmark's item lengths, counted in white-space
  separated words of the judged parts together, linear between neighbours, rounded down, and kept
  within 8 and 13. It is set per benchmark, so the same item may be judged differently elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from contam.detect.labels import CLEAN, CONTAMINATED, NOT_CHECKABLE
from contam.detect.model import Judgements
from contam.detect.policies.common import (
    COUNTS_RUNS,
    PerItems,
    Segments,
    documents_hold,
    in_blocks,
    longest_runs,
    part_index,
    part_lengths,
    require_view,
    unit_names,
)
from contam.detect.policies.policy_spec import PolicySpec
from contam.errors import PolicyError, Statement
from contam.facts import counted

if TYPE_CHECKING:
    from contam.detect.model import Bools, Float64s, Int64s, Matches, Totals, ViewItems
    from contam.detect.policies.policy import Policy
    from contam.detect.policies.policy_spec import PolicyTraits

_COUNT_RULE: Final = "documents with a run of at least n words of a judged part"
_TOO_SHORT: Final = "an item is not_checkable if none of its judged parts has n words"

GPT3_TEST: Final = PolicySpec(
    id="gpt3-test",
    title="GPT-3 test-set overlap",
    description=(
        "An item is contaminated if any document contains N words of it in a row, ignoring case"
        " and punctuation. N is set per benchmark: the 5th percentile of its item lengths in"
        " words, but at least 8 and at most 13. The original judges whole examples; here the"
        " passage and the question are judged."
    ),
    source="Brown et al. 2020, Language Models are Few-Shot Learners, appendix C",
    confidence="paper",
    unit="word",
    n=13,
    scope="any document",
    aggregation="any run",
    parts=("passage", "question"),
    thresholds=((13.0, "contaminated"),),
    count_rule=_COUNT_RULE.replace("n words", "N words"),
    too_short=_TOO_SHORT.replace("n words", "N words"),
    parameters=(("least_n", 8), ("length_percentile", 5.0)),
)
LMEVAL_13: Final = PolicySpec(
    id="lmeval-13",
    title="lm-evaluation-harness, 13 words",
    description=(
        "An item is contaminated if any document contains 13 words in a row of its passage or"
        " question. Approximate: the original deletes ASCII punctuation and splits at white"
        " space, so well-known is one word; here it is two, and accents and character width are"
        " ignored. In the original each task chooses the text to search for, usually the"
        " question alone."
    ),
    source="EleutherAI lm-evaluation-harness, lm_eval/decontamination",
    confidence="source",
    approximate=True,
    unit="word",
    n=13,
    scope="any document",
    aggregation="any run",
    parts=("passage", "question"),
    thresholds=((13.0, "contaminated"),),
    count_rule=_COUNT_RULE,
    too_short=_TOO_SHORT,
)
OPENR1_8: Final = PolicySpec(
    id="openr1-8",
    title="Open-R1 and s1, 8 words",
    description=(
        "An item is contaminated if any document contains 8 words in a row of its question."
        " Approximate: the original splits at white space and keeps punctuation, so mill"
        " followed by a comma is not the word mill; here punctuation is ignored, and more"
        " copies are found. The original compares with the problem of a training row; here the"
        " whole document is searched."
    ),
    source="Hugging Face open-r1, scripts/decontaminate.py, after the s1 project",
    confidence="source",
    approximate=True,
    unit="word",
    n=8,
    scope="any document",
    aggregation="any run",
    parts=("question",),
    thresholds=((8.0, "contaminated"),),
    count_rule=_COUNT_RULE,
    too_short=_TOO_SHORT,
)
NEMO_13: Final = PolicySpec(
    id="nemo-13",
    title="NeMo Curator, 13 words, or 8 to 12 of a short item",
    description=(
        "An item is contaminated if any document contains 13 words in a row of its passage or"
        " question; one whose longest part has 8 to 12 words is searched for whole. Approximate:"
        " the original splits at white space, and forgives a gram that more than 10 documents have;"
        " here none is forgiven."
    ),
    source="NVIDIA NeMo Curator, TaskDecontamination, after Megatron-LM",
    confidence="source",
    approximate=True,
    unit="word",
    n=13,
    scope="any document",
    aggregation="any run",
    parts=("passage", "question"),
    thresholds=((13.0, "contaminated"),),
    count_rule=_COUNT_RULE.replace("n words", "as many words as flag the item"),
    too_short="an item is not_checkable if none of its judged parts has least_n words",
    parameters=(("least_n", 8),),
)
SPECS: Final = (GPT3_TEST, LMEVAL_13, OPENR1_8, NEMO_13)


@dataclass(frozen=True, slots=True)
class AnyRun:
    """One run of n tokens in any document is enough. The score is the longest run, in tokens."""

    spec: PolicySpec
    traits: ClassVar[PolicyTraits] = COUNTS_RUNS
    _needed: PerItems[Int64s] = field(default_factory=PerItems, repr=False, compare=False)

    def needed(self, items: ViewItems) -> Int64s:
        """int64[n_items]: the run length from which each item is flagged."""
        return self._needed.get(items, self._lengths)

    def _lengths(self, items: ViewItems) -> Int64s:
        return np.full(items.n_items, self.spec.n, np.int64)

    def score_matches(self, matches: Matches, items: ViewItems) -> Float64s:
        """The longest run of the judged parts in each document, in tokens."""
        require_view(self.spec, items)
        return longest_runs(self.spec, matches).astype(np.float64)

    def hits(self, matches: Matches, items: ViewItems, score: Float64s) -> Bools:
        """Documents with a run that would flag the item."""
        return score >= self.needed(items)[matches.item]

    def judge(self, items: ViewItems, totals: Totals) -> Judgements:
        """Contaminated from the needed run length; not checkable where no part is that long."""
        needed = self.needed(items)
        (longest,) = in_blocks(
            items, self.spec.parts, lambda block: (self._longest(block, totals),)
        )
        label = np.where(longest >= needed, CONTAMINATED, CLEAN).astype(np.int8)
        checkable = items.n_tokens[:, part_index(self.spec.parts)].max(axis=1) >= needed
        label[~checkable] = NOT_CHECKABLE
        return Judgements(label=label, score=np.where(checkable, longest, 0).astype(np.float64))

    def _longest(self, items: ViewItems, totals: Totals) -> Int64s:
        segments = Segments.of(items, self.spec.parts)
        best: Int64s = segments.by_item(segments.longest(segments.runs(totals))).max(axis=1)
        return best

    def reasons(
        self, items: ViewItems, totals: Totals, judgement: Judgements, rows: Int64s
    ) -> list[str]:
        """The longest run, its documents and the length that flags."""
        # Many items have the same figures, and those the same sentence.
        known: dict[tuple[object, ...], str] = {}
        found = []
        for label, word, needed, longest, n_documents, lengths in zip(
            judgement.label[rows].tolist(),
            unit_names(self.spec, items, rows),
            self.needed(items)[rows].tolist(),
            judgement.score[rows].astype(np.int64).tolist(),
            totals.n_documents[rows].tolist(),
            items.n_tokens[rows].tolist(),
            strict=True,
        ):
            figures = (
                (word, needed, *lengths)
                if label == NOT_CHECKABLE
                else (label, word, needed, longest, n_documents)
            )
            text = known.get(figures)
            if text is None:
                if label == NOT_CHECKABLE:
                    short = part_lengths(self.spec, lengths, word)
                    text = f"{short}; this policy needs a run of {counted(needed, word)}"
                elif label == CONTAMINATED:
                    text = (
                        f"{documents_hold(n_documents)} a run of at least"
                        f" {counted(needed, word)}, which this policy flags;"
                        f" the longest has {longest:,}"
                    )
                else:
                    run = (
                        f"the longest run found has {counted(longest, word)}"
                        if longest
                        else f"no run of {counted(items.seed, word)} or more was found"
                    )
                    text = f"{run}; this policy flags from {needed}"
                known[figures] = text
            found.append(text)
        return found


@dataclass(frozen=True, slots=True)
class ShortWhole(AnyRun):
    """An item shorter than n is searched for whole, down to `least_n` tokens."""

    traits: ClassVar[PolicyTraits] = replace(COUNTS_RUNS, least_run="least_n")

    def _lengths(self, items: ViewItems) -> Int64s:
        least = _least(self.spec, items)
        longest: Int64s = (
            items.n_tokens[:, part_index(self.spec.parts)].max(axis=1).astype(np.int64)
        )
        return np.minimum(np.maximum(longest, least), self.spec.n)


@dataclass(frozen=True, slots=True)
class Gpt3Test(AnyRun):
    """N follows the benchmark's own item lengths: their 5th percentile, within 8..13."""

    traits: ClassVar[PolicyTraits] = replace(COUNTS_RUNS, least_run="least_n")

    def _lengths(self, items: ViewItems) -> Int64s:
        least = _least(self.spec, items)
        n_words = items.n_words[:, part_index(self.spec.parts)].sum(axis=1)
        rank = self.spec.number("length_percentile")
        needed = np.full(items.n_items, self.spec.n, np.int64)
        for benchmark in np.unique(items.benchmark):
            mine = items.benchmark == benchmark
            chosen = int(np.floor(np.percentile(n_words[mine], rank)))
            needed[mine] = min(max(chosen, least), self.spec.n)
        return needed


def _least(spec: PolicySpec, items: ViewItems) -> int:
    """The shortest run that may flag. PolicyError where the scan does not see it, or above n."""
    least = int(spec.number("least_n"))
    if least < items.seed or least > spec.n:
        raise PolicyError(
            "policy {!r}: least_n is {}, outside {}..{}",
            spec.id,
            least,
            items.seed,
            spec.n,
            hint=Statement("the scan sees runs from {} words", items.seed),
        )
    return least


def build(spec: PolicySpec) -> Policy:
    """The policy of this spec."""
    kinds = {GPT3_TEST.id: Gpt3Test, NEMO_13.id: ShortWhole}
    return kinds.get(spec.base, AnyRun)(spec)
