"""`contam`, our own policy: judge an item by its best single document.

The score is the share of the question's wording that the document contains, each token weighted
by its content: common words and wording that many items of the benchmark share weigh little.
A question with little content (a short or generic stem) is judged together with its choices and
its passage; a passage alone never contaminates an item, and a long answer alone makes it suspect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from contam.benchmark.items import PARTS
from contam.detect.labels import CLEAN, CONTAMINATED, NOT_CHECKABLE, SUSPECT
from contam.detect.model import ANSWER, CHOICES, PASSAGE, QUESTION, Judgements
from contam.detect.policies.common import question_words, unit_names
from contam.detect.policies.contam_definition import CONTAM, TRAITS, Numbers
from contam.facts import counted, several
from contam.kernels.constants import ANSWER_RUN, LEAST_WEIGHT

if TYPE_CHECKING:
    from contam.detect.model import (
        Bools,
        Float64s,
        Int8s,
        Int32s,
        Int64s,
        Matches,
        Totals,
        ViewItems,
    )
    from contam.detect.policies.policy import Policy
    from contam.detect.policies.policy_spec import PolicySpec, PolicyTraits

SPECS: Final = (CONTAM,)


def build(spec: PolicySpec) -> Policy:
    """The policy that a spec of this module declares."""
    return WeightedCoverage(spec, Numbers.of(spec))


_SCATTERED: Final = "; but scattered, in a stretch of which {share:.0%} is other text"


def _renumbered(matches: Matches, most: float) -> Bools:
    """Whether all numbers of a question differ, and fewer than `most` of its other words match."""
    return (matches.renumbered > 0.0) & (matches.renumbered < most)


class Asked(NamedTuple):
    """What a run tells of the question of each match.

    words      int32[m], its words
    run        float64[m], tokens in a row that are a phrase in its script: n words; in a script
               without spaces, where n characters are a phrase, as many characters as n words have
    no_chance  float64[m], tokens in a row that are unlikely to match by chance: a phrase, or half
               of the question. Never more than that has
    """

    words: Int32s
    run: Float64s
    no_chance: Float64s


@dataclass(frozen=True, slots=True)
class WeightedCoverage:
    """The default policy at work."""

    spec: PolicySpec
    numbers: Numbers
    traits: ClassVar[PolicyTraits] = TRAITS

    def score_matches(self, matches: Matches, items: ViewItems) -> Float64s:
        """Weighted share of the item that the document contains, after all rules; 0..1."""
        weights, coverage = items.part_weight[matches.item], matches.coverage.astype(np.float64)
        numbers, threshold = self.numbers, self.spec.threshold
        informative = numbers.telling
        little = numbers.least_telling * informative
        question, own = coverage[:, QUESTION], weights[:, QUESTION]
        lack = np.maximum(informative - own, 0.0)
        # A stem borrows the weight it lacks from its passage or its choices, whichever matches
        # better, and only if the document contains them at all.
        passage_first = coverage[:, PASSAGE] >= coverage[:, CHOICES]
        lender = np.where(passage_first, PASSAGE, CHOICES)
        rows = np.arange(len(matches))
        support = coverage[rows, lender]
        beside = support >= numbers.least_support
        lent = np.where(beside, np.minimum(lack, weights[rows, lender]), 0.0)
        found = own * question + lent * support
        score = found / np.maximum(own + lent, LEAST_WEIGHT)
        # The score drops for weight that is still missing, and for a missing run.
        words = (asked := self.asked(matches, items)).words
        no_run = self._missing_run(matches, asked, own, support)
        missing = (lack - lent) / informative
        # Both together are worse than their sum: few scattered words prove nothing.
        penalty = (numbers.strictness * missing + no_run) * (1.0 + missing * no_run)
        score = np.maximum(score - penalty * (1.0 - score), 0.0)
        # Little matched weight proves little, however large a share of the item it is.
        score = np.minimum(score, found / little)
        # A stem belongs to its passage: if none of that is there, it is another item's stem.
        copied = matches.exact[:, QUESTION] & (words >= self.spec.n) & (own >= little)
        stem = (
            (items.n_tokens[matches.item, PASSAGE] > 0)
            & (own < informative)
            & (lent == 0.0)
            & ~copied
        )
        # A whole question, word for word, is a leak; one with little content is suspect.
        whole = matches.exact[:, QUESTION] & (words >= self.spec.n) & ~stem
        certain = whole & ((own >= little) | (words >= numbers.certain_runs * self.spec.n))
        # Half of a question with enough content, word for word, is at least suspect.
        half = matches.covered[:, QUESTION] >= numbers.half * words
        half &= found >= numbers.half_weighs * informative
        # So is nearly all of a long question, however many items share its words.
        shared = self._nearly_whole(matches, asked, stem)
        # And a short one with its answer beside it, where nothing else could tell it from chance.
        short = self._short_whole(matches, items, words) & matches.answer_near
        least = whole | half | shared | short
        score = np.where(least, np.maximum(score, threshold("suspect")), score)
        score = np.where(certain, 1.0, score)
        # Another question on the same passage shares its wording: only nearly all of it counts.
        borrowed = (lent > 0.0) & passage_first & (question < numbers.borrowed_from)
        # A few words may be anywhere: without choices, passage or answer they stay suspect.
        alone = (words < self.spec.n) & (lent == 0.0) & ~matches.answer_near
        below = numbers.just_below * threshold("contaminated")
        score = np.where(alone | borrowed, np.minimum(score, below), score)
        # Text of another item, or with other numbers and other words, drops the label one step.
        has_competitor = matches.competing_item >= 0
        long = matches.longest[:, QUESTION] >= numbers.run_certain * asked.run
        another = has_competitor | (_renumbered(matches, numbers.renumbered) & ~long)
        another &= score < threshold("contaminated")
        # So does a match with little content and no run, or one scattered in other text.
        unsure = (
            has_competitor
            | _renumbered(matches, numbers.renumbered_sure)
            | self._loose(matches, asked)
        )
        unsure |= (no_run > 0.0) & (own < informative) & ~beside
        score = np.where(unsure, np.minimum(score, below), score)
        chance = (stem & ~shared) | another | self._few(matches, words, found)
        chance |= self._scattered(matches, asked) & ~beside
        clean = numbers.just_below * threshold("suspect")
        score = np.where(chance, np.minimum(score, clean), score)
        score = np.where(question > 0.0, np.minimum(score, 1.0), 0.0)
        # Who knows a solution word for word may know the item.
        told = np.where(self._told(matches, items), threshold("suspect"), 0.0)
        return np.maximum(score, told)

    def asked(self, matches: Matches, items: ViewItems) -> Asked:
        """What a run tells of the question of each match."""
        words = question_words(matches, items.n_tokens)
        run = self.spec.n * self._words_of(items, matches, QUESTION)
        return Asked(words, run, self._at_most_half(run, words))

    def _words_of(self, items: ViewItems, matches: Matches, part: int) -> Float64s:
        """Tokens that say as much as a word, in the script of this part of a match, float64[m]."""
        own = items.n_tokens[matches.item, part]
        single = items.n_single[matches.item, part] / np.maximum(own, 1)
        result: Float64s = 1.0 + (self.numbers.word_characters - 1.0) * single
        return result

    def _informative_run_lengths(self, words: Int32s, own: Float64s) -> Float64s:
        """The same for questions whose words weigh `own`: common wording needs longer runs."""
        n, numbers = self.spec.n, self.numbers
        average = own / np.maximum(words, 1)
        needed = numbers.run_weight / np.maximum(average, LEAST_WEIGHT)
        return self._at_most_half(np.clip(needed, n, numbers.word_characters * n), words)

    def _at_most_half(self, needed: Float64s, words: Int32s) -> Float64s:
        half = np.maximum(np.ceil(self.numbers.half * words), self.spec.n)
        result: Float64s = np.minimum(np.minimum(np.ceil(needed), half), words)
        return result

    def _told(self, matches: Matches, items: ViewItems) -> Bools:
        """Whether the document contains a long run of the answer alone."""
        if PARTS[ANSWER] not in self.spec.parts:
            return np.zeros(len(matches), np.bool_)
        words = self._words_of(items, matches, ANSWER)
        return (matches.told > 0) & (matches.told >= ANSWER_RUN * words)

    def _short_whole(self, matches: Matches, items: ViewItems, words: Int32s) -> Bools:
        """Whether a short question without passage and choices is there, word for word."""
        alone = (items.n_tokens[matches.item][:, [PASSAGE, CHOICES]] == 0).all(axis=1)
        alone &= matches.item >= 0
        result: Bools = matches.exact[:, QUESTION] & (words < self.spec.n) & alone
        return result & (words >= items.seed)

    def _few(self, matches: Matches, words: Int32s, found: Float64s) -> Bools:
        """Whether only a few words with little content match: a term, not a copy.

        Weights alone do not show it: words with little content weigh little where missing, too.
        """
        few = matches.aligned[:, QUESTION] < self.numbers.half * words
        return few & (found < self.numbers.few_weigh)

    def _loose(self, matches: Matches, asked: Asked) -> Bools:
        """Whether short runs are scattered in so much other text that the match is unsure."""
        run = self.numbers.loose_runs * asked.run
        result: Bools = matches.scattered > self.numbers.most_loose
        return result & (matches.longest[:, QUESTION] < run)

    def _nearly_whole(self, matches: Matches, asked: Asked, stem: Bools) -> Bools:
        """Whether the document contains nearly all of a long question, counted in words.

        Wording that many items share weighs next to nothing: a question made of such wording would
        always be clean if only weights counted.
        """
        words, run, numbers = asked.words, asked.run, self.numbers
        longest = matches.longest[:, QUESTION]
        long = (longest >= numbers.run_long * run) & ~stem
        long |= longest >= numbers.run_certain * run
        edited = (longest >= run) & (words >= numbers.certain_runs * run) & ~stem
        edited &= matches.aligned[:, QUESTION] >= numbers.edited_share * words
        return (long & (longest >= numbers.run_share * words)) | edited

    def _scattered(self, matches: Matches, asked: Asked) -> Bools:
        """Whether words of a question are scattered in other text, without a run."""
        short = matches.longest[:, QUESTION] < asked.no_chance
        return short & (matches.scattered > self.numbers.most_scattered)

    def _missing_run(
        self, matches: Matches, asked: Asked, own: Float64s, support: Float64s
    ) -> Float64s:
        """Penalty for each share that is missing: the shorter the longest run, the higher.

        own  what the words of each question weigh
        """
        longest = matches.longest[:, QUESTION]
        needed = self._informative_run_lengths(asked.words, own)
        missing = np.clip((needed - longest) / np.maximum(needed, 1.0), 0.0, 1.0)
        lost = self.numbers.no_run * 2.0 * missing
        # Scattered words are less likely by chance if passage or choices are there, too.
        beside = support >= self.numbers.least_support
        lost = np.where(beside, np.minimum(lost, self.numbers.no_run_beside), lost)
        return np.where(longest < asked.no_chance, lost, 0.0)

    def hits(self, matches: Matches, items: ViewItems, score: Float64s) -> Bools:
        """Documents that reach the lowest threshold."""
        del matches, items  # the score decides
        return score >= self.spec.thresholds[0][0]

    def judge(self, items: ViewItems, totals: Totals) -> Judgements:
        """Labels by the best document's score; too short is never clean."""
        label = np.full(items.n_items, CLEAN, np.int8)
        score = totals.best_score
        label[score >= self.spec.threshold("suspect")] = SUSPECT
        label[score >= self.spec.threshold("contaminated")] = CONTAMINATED
        label[(label == CLEAN) & (items.stretch < items.seed)] = NOT_CHECKABLE
        # Whatever else of it was found: an item without a question cannot be called clean.
        label[(label == CLEAN) & (items.n_tokens[:, QUESTION] == 0)] = NOT_CHECKABLE
        # Nor one that is there, every word, and too common to be told from chance.
        best = totals.best_match
        words = question_words(best, items.n_tokens)
        label[(label == CLEAN) & self._short_whole(best, items, words)] = NOT_CHECKABLE
        return Judgements(label=label, score=score)

    def reasons(
        self, items: ViewItems, totals: Totals, judgement: Judgements, rows: Int64s
    ) -> list[str]:
        """One sentence for each with the figures behind its label."""
        label = judgement.label[rows]
        best = totals.best_match
        words = question_words(best, items.n_tokens)
        found = (label != NOT_CHECKABLE) & (best.item[rows] >= 0)
        found |= self._short_whole(best, items, words)[rows]
        compared = rows[found]
        texts = iter(
            self._compared(
                items,
                best.take(compared),
                judgement.label[compared],
                judgement.score[compared],
            )
        )
        others = iter(self._not_compared(items, label[~found], rows[~found]))
        return [next(texts if there else others) for there in found.tolist()]

    def _not_compared(self, items: ViewItems, label: Int8s, rows: Int64s) -> list[str]:
        """Why there is no document to speak of."""
        units = unit_names(self.spec, items, rows, PARTS[:ANSWER])
        return [
            "no document shares enough of its wording to be compared"
            if of_item != NOT_CHECKABLE
            else f"there is nothing to look for: {several(unit)} in its question: 0"
            if stretch >= items.seed
            else f"too short to judge: {several(unit)} in its longest text: {stretch}, "
            f"and a search needs {items.seed} together"
            for of_item, unit, stretch in zip(
                label.tolist(), units, items.stretch[rows].tolist(), strict=True
            )
        ]

    def _compared(
        self, items: ViewItems, best: Matches, label: Int8s, score: Float64s
    ) -> list[str]:
        """The figures of the best document of each item, and what they lack."""
        asked = self.asked(best, items)
        support = np.where(best.coverage[:, PASSAGE] >= best.coverage[:, CHOICES], PASSAGE, CHOICES)
        supported = best.coverage[np.arange(len(best)), support]
        units = unit_names(self.spec, items, best.item, ["question"])
        other_units = unit_names(self.spec, items, best.item, ["passage", "choices", "answer"])
        doubts = self._doubts(items, best, asked, label, score)
        told = self._told_texts(items, best, label)
        least = self.numbers.least_support
        texts = []
        for place, (share, longest, n_words, whole, variant, answer, beside) in enumerate(
            zip(
                best.coverage[:, QUESTION].tolist(),
                best.longest[:, QUESTION].tolist(),
                asked.words.tolist(),
                best.exact[:, QUESTION].tolist(),
                best.variant_words.tolist(),
                best.answer_near.tolist(),
                supported.tolist(),
                strict=True,
            )
        ):
            question = counted(n_words, units[place])
            if share == 0.0 and longest > 0:
                text = (
                    f"a run of {longest} of its question's {question} is in a document: "
                    "too little, or too common, to tell it from chance"
                )
            elif share == 0.0 and told[place]:
                text = f"its question is not there, but {told[place]}"
            elif share == 0.0:
                other = counted(max(best.longest[place].tolist()), other_units[place])
                text = (
                    "its question was not found near its other parts;"
                    f" their longest run has {other}"
                )
            else:
                text = (
                    f"the whole question ({question}) is in one document, word for word"
                    if whole
                    else f"{share:.0%} of the question is in one document "
                    f"(longest run {longest} of {question})"
                )
                if variant:
                    text += " once its punctuation is left out"
                if answer:
                    text += ", with its answer next to it"
                if beside >= least:
                    text += f", with {beside:.0%} of its {PARTS[support[place]]}"
                text += doubts[place]
                if told[place]:
                    text += f"; and {told[place]}"
            texts.append(text)
        return texts

    def _told_texts(self, items: ViewItems, best: Matches, label: Int8s) -> list[str]:
        """What is said of the answers that make items suspect, "" of others."""
        told = np.where(self._told(best, items) & (label == SUSPECT), best.told, 0)
        units = unit_names(self.spec, items, best.item, [PARTS[ANSWER]])
        return [
            f"{counted(n, unit)} of its answer in a row are in one document:"
            " a leaked solution, or wording that others use too"
            if n
            else ""
            for n, unit in zip(told.tolist(), units, strict=True)
        ]

    def _doubts(
        self, items: ViewItems, best: Matches, asked: Asked, label: Int8s, score: Float64s
    ) -> list[str]:
        """Why the best document of each item does not make it contaminated, "" where it does."""
        numbers, threshold = self.numbers, self.spec.threshold
        share, words = best.coverage[:, QUESTION], asked.words
        clean, has_competitor = label == CLEAN, best.competing_item >= 0
        nearly = (share.astype(np.float64) >= numbers.borrowed_from) | best.exact[:, QUESTION]
        alone = np.maximum(best.coverage[:, PASSAGE], best.coverage[:, CHOICES]) == 0.0
        alone &= items.n_tokens[best.item, PASSAGE] > 0
        enough = clean & (share >= threshold("suspect"))
        sure = share >= threshold("contaminated")
        raised = score <= threshold("suspect")
        raised &= self._nearly_whole(best, asked, np.zeros(len(best), np.bool_))
        cases: list[tuple[Bools, str]] = [
            (label == CONTAMINATED, ""),
            (clean & nearly & alone, "; but nothing of the passage that it is asked of"),
            (
                clean & has_competitor,
                "; but that is the text of another item, {other}, which stands there whole",
            ),
            (
                has_competitor,
                "; but most of that is the text of another item, {other}, which stands there",
            ),
            (
                enough & _renumbered(best, numbers.renumbered),
                "; but all its numbers are others there, and some of its words",
            ),
            (
                enough & (best.aligned[:, QUESTION] < numbers.half * words),
                "; but fewer than half of its words do, and they say little",
            ),
            (enough & self._scattered(best, asked), _SCATTERED),
            (
                ~clean & _renumbered(best, numbers.renumbered_sure),
                "; but all its numbers are others there",
            ),
            (nearly & (words < CONTAM.n), "; but so few words may stand anywhere"),
            (nearly, "; but that wording says little, or many items share it"),
            (clean, "; too little, or too common, to tell it from chance"),
            (sure & self._loose(best, asked), _SCATTERED),
            (raised, "; nearly all of its words do, but many items share them"),
        ]
        # The first that holds says why.
        case = np.select([holds for holds, _ in cases], [*range(len(cases))], 0).tolist()
        sentences = [cases[at][1] for at in case]
        others = best.competing_item.tolist()
        return [
            # An id is looked up where it is told: each costs as much as many.
            text.format(other=items.item_ids[other] if "{other}" in text else "", share=share)
            for text, other, share in zip(sentences, others, best.scattered.tolist(), strict=True)
        ]
