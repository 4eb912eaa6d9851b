"""`contam-meaning`: flag an item that a document has in other words.

A document is looked at where enough of the question's rare words come together, in any order,
within one and a half times its length. It counts if a static embedding finds the texts alike, if
the question's numbers are there, and if no other item fits the place better. In a question of up to
64 words fewer rare words are enough where its words stand in order, and those that are replaced
have like words in their places. The policy never says more than `suspect`: it is for people to look
at, and `contam show` marks what agrees.

Thresholds and model belong together, so the digests of the model are among the parameters: with
other files nothing is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from contam.detect.labels import NOT_CHECKABLE, SUSPECT
from contam.detect.meaning.rare_words import NEXT_BEST, NUMBERS, SIMILARITY, WORDS, RareWords
from contam.detect.meaning.vectors import load_embedder
from contam.detect.model import ItemsRead
from contam.detect.policies.common import judgements
from contam.detect.policies.policy_spec import PolicySpec, PolicyTraits
from contam.errors import PolicyError, Public
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.benchmark.items import BenchItem
    from contam.detect.model import (
        Bools,
        Float64s,
        Int64s,
        Judgements,
        Matches,
        Totals,
        ViewItems,
    )
    from contam.detect.policies.policy import Policy

CONTAM_MEANING: Final = PolicySpec(
    id="contam-meaning",
    title="contam's own: rare words, word vectors and numbers, for rephrased questions",
    description=(
        "A question is suspect if a document has it in other words: enough of its rare words"
        " together, in any order, word vectors that are alike, its numbers, and no other item that"
        " fits the place better; or, of up to 64 words, its words in their order, some of them"
        " replaced by like ones. Measured on labelled text, it finds 76 % of natural rephrasings"
        " (contam 29 %) and 85 % of questions with synonyms (contam 78 %), and flags 0.2 % of items"
        " that are not there; of what it flags and contam does not, about half is right, and most"
        " of the rest are other items of a family. So it never says contaminated. Questions in"
        " other scripts than Latin are not checkable, and translations are not found. It needs the"
        " extra `meaning`, and searches corpora, not indexes."
    ),
    version="2",
    source="this project, docs/adr",
    confidence="source",
    unit="word",
    n=4,
    scope="one document",
    aggregation="similarity of word vectors",
    parts=("question",),
    thresholds=((0.7, "suspect"),),
    count_rule="documents that by themselves make the item suspect",
    too_short=(
        "an item that is not found is not_checkable if its question has under 4 different rare"
        " words in Latin letters"
    ),
    # rare_from: length of a word's vector from which the word is rare; that is its weight, too.
    # least_words: rare words that a question and a window need; share: of the weight of a
    # question's rare words that a window needs. A window reaches over window_factor times the
    # question's words, and window_more.
    # least_length: of the question's words, how many the part with rare words reaches over.
    # least_evidence: rare words and numbers together that agree. numbers: share of the question's
    # numbers that stand there; other_numbers: of so many, how many others may. In code, where
    # numbers are examples, they may all differ, and code_similarity is enough.
    # In order: less_words and less_share are enough of the rare words where `in_order` of all words
    # stand in their order, in questions of fewest_in_order to most_in_order words. A word weighs as
    # much as its vector is long, from light to heavy, a number number_weighs; words are like from a
    # cosine of `near` on, and a word between them costs `skip`. So many words must have pairs,
    # weigh word_by_word by their likeness, and none without a pair weigh more than `missing`; the
    # text is of about the same length (shorter, longer). From same_words on nothing is in other
    # words. No other item may fit as well, nor two come as_close. Examples of code are left out.
    # better_by: by so much another item must fit a place better to take it; most_alike: no more
    # items than these may fit a place as well, but for `alike`.
    # weights, tokenizer: SHA-256 of the model's files.
    parameters=(
        ("rare_from", 10),
        ("least_words", 4),
        ("share", 0.45),
        ("window_factor", 1.5),
        ("window_more", 8),
        ("least_length", 0.4),
        ("least_evidence", 5),
        ("less_words", 2),
        ("less_share", 0.55),
        ("in_order", 0.5),
        ("fewest_in_order", 8),
        ("most_in_order", 64),
        ("near", 0.15),
        ("skip", 0.5),
        ("light", 2),
        ("heavy", 20),
        ("number_weighs", 12),
        ("pairs", 0.8),
        ("word_by_word", 0.65),
        ("missing", 13),
        ("shorter", 0.85),
        ("longer", 1.1),
        ("same_words", 0.98),
        ("as_close", 0.1),
        ("numbers", 0.66),
        ("other_numbers", 0.34),
        ("code_similarity", 0.74),
        ("better_by", 0.03),
        ("alike", 0.2),
        ("most_alike", 2),
        ("weights", "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"),
        ("tokenizer", "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"),
    ),
)
#: Which model it is, and what holds for one model only.
_MODEL: Final = ("weights", "tokenizer")
_OF_MODEL: Final = ("rare_from", "code_similarity")
SPECS: Final = (CONTAM_MEANING,)
#: It needs more than is always installed.
OPTIONAL: Final = True


@dataclass(frozen=True, slots=True)
class Meaning:
    """The similarity of the best document that has the question in other words, 0..1."""

    spec: PolicySpec
    traits: ClassVar[PolicyTraits] = PolicyTraits(
        monotone=False,
        short_items="none",
        needs_weights=False,
        sees_variants=False,
        reads_text=False,
        rephrasings=True,
        ours=True,
    )

    def rare_words(self, items: Sequence[BenchItem]) -> RareWords:
        """What a search needs of the items. Raises ContamError without the model."""
        return RareWords.of(items, self.spec, load_embedder(self.spec))

    def known(self, rare: RareWords) -> ItemsRead:
        """What judging and reasons need of the items."""
        return ItemsRead(
            policy=self.spec.fingerprint(),
            checkable=rare.checkable,
            figures={
                "words": rare.n_words.astype(np.int64),
                "numbers": np.array([len(numbers) for numbers in rare.numbers], np.int64),
            },
        )

    def score_matches(self, matches: Matches, items: ViewItems) -> Float64s:
        """The similarity of each document that passed the other tests."""
        del items
        return matches.read[:, 0, SIMILARITY].astype(np.float64).round(4)

    def hits(self, matches: Matches, items: ViewItems, score: Float64s) -> Bools:
        """Every match: only those that make the item suspect are kept."""
        del matches, items
        return score > 0.0

    def judge(self, items: ViewItems, totals: Totals) -> Judgements:
        """Labels by the best document; not checkable without enough rare words."""
        (known,) = items.read
        found = totals.best_match.item >= 0
        judged = judgements(self.spec, totals.best_score, known.checkable | found)
        # What a search kept has passed; of code, and word by word, from a lower similarity on.
        judged.label[found] = SUSPECT
        return judged

    def reasons(
        self, items: ViewItems, totals: Totals, judgement: Judgements, rows: Int64s
    ) -> list[str]:
        """The figures of each of these items, in words."""
        return [self._reason(items, totals, judgement, i) for i in rows.tolist()]

    def _reason(self, items: ViewItems, totals: Totals, judgement: Judgements, i: int) -> str:
        (known,) = items.read
        words, numbers = int(known.figures["words"][i]), int(known.figures["numbers"][i])
        if judgement.label[i] == NOT_CHECKABLE:
            return (
                f"its question has {counted(words, 'rare word')}; this policy needs"
                f" {int(self.spec.number('least_words'))} to find it in other words"
            )
        best = totals.best_match
        if best.item[i] < 0:
            return "no document has it in other words"
        found = best.read[i, 0]
        text = (
            f"a document has it in other words: similarity {judgement.score[i]:.2f};"
            f" {int(found[WORDS]):,} of its {counted(words, 'rare word')}"
        )
        if numbers:
            text += f" and {int(found[NUMBERS])} of its {counted(numbers, 'number')}"
        text += " are there together"
        other = int(best.competing_item[i])
        if other >= 0:
            text += f"; next best item {items.item_ids[other]}, similarity {found[NEXT_BEST]:.2f}"
        return text


def check_changes(start: PolicySpec, changes: Mapping[str, object]) -> None:
    """Refuse another model without thresholds of its own. Raises PolicyError.

    changes  the fields that a policy file gives, whatever their values
    """
    given = changes.get("parameters")
    own: Mapping[str, object] = given if isinstance(given, Mapping) else {}
    if all(own.get(name, start.parameter(name)) == start.parameter(name) for name in _MODEL):
        return
    lacking = [name for name in _OF_MODEL if name not in own]
    if lacking or "thresholds" not in changes:
        raise PolicyError(
            "thresholds belong to a model, and the file names another one without {}",
            Public(", ".join([*(() if "thresholds" in changes else ("thresholds",)), *lacking])),
            hint="measure them with that model on labelled pairs, and write them there",
        )


def build(spec: PolicySpec) -> Policy:
    """The policy of this spec."""
    if spec.parts != ("question",):
        raise PolicyError("policy {!r} judges questions", spec.id)
    if spec.thresholds[-1][1] != "suspect":
        raise PolicyError("policy {!r} says no more than suspect: people decide", spec.id)
    return Meaning(spec)
