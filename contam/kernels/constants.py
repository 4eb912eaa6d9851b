"""Name every number of the matching that can decide a `contam` verdict.

They are compiled into the kernels, so a policy file cannot change them; the fingerprint of `contam`
holds their values.  What a policy can choose are its parameters; what a run can choose (unit, seed,
min_run) is in its record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# Wording that many items share.

#: Wording shared by this many items of one benchmark says next to nothing: this share of itself.
TEMPLATE_OWNERS: Final = 16.0
TEMPLATE_FLOOR: Final = 0.03
#: A gram that more items of one benchmark, or more places in all, hold is common: a run of fewer
#: than min_run tokens of such grams alone proves nothing and is not looked at.
COMMON_OWNERS: Final = 16
COMMON_PLACES: Final = 512

# Variants: an item without its punctuation.

#: An item is read otherwise where its question has so much fewer words then, and so many fewer.
LEAST_LOST: Final = 0.05
LEAST_WORDS_LOST: Final = 2
#: Letters that make a word of its own; `2`, `x`, `pm` and `kg` beside each other are no word.
LEAST_LETTERS: Final = 3
#: A variant counts where it finds so much more of the question than the item as it is.
READING_LEAD: Final = 0.1

# Which runs of a part are aligned.

#: A part whose runs weigh less than this share of it is not aligned, unless its reported runs hold
#: this share of its tokens: what many items share weighs little, however much of it stands there.
WORTH_ALIGNING: Final = 0.10
WORTH_ALIGNING_TOKENS: Final = 0.75
#: A match without a long run is reported from this coverage of a part on.
LEAST_REPORTED: Final = 0.3
#: What a part weighs at least, so that shares of nothing are shares.
LEAST_WEIGHT: Final = 1e-9
#: Runs lie in one place where no more tokens stand between them than the part has (no more than
#: the first) and the second.
MOST_GAP: Final = 400
MORE_GAP: Final = 32
#: A place holds the question from this coverage on; it counts towards a split copy from this.
PLACE_SHARE: Final = 0.5
SPLIT_SHARE: Final = 0.2
#: A question is split where its best place holds less.
UNSPLIT_SHARE: Final = 0.75

# Chains of runs.

#: Most runs of one place that are considered for chains, and most chains made of them.
MOST_RUNS: Final = 48
MOST_CHAINS: Final = 12
#: Most document tokens between two runs of a chain: these, and two for each item token between.
MOST_BETWEEN: Final = 24
#: What each token costs by which a gap is longer on one side, in token weights.
SHIFT_COST: Final = 0.01
#: An open end is looked for over half as many tokens again as the item has there, and so many.
END_REACH: Final = 12
#: A further chain must add this share; beyond this much none is looked for.
LEAST_GAIN: Final = 0.03
ENOUGH_MATCHED: Final = 0.97

# Token by token, between runs and at their ends.

#: What skipping one item token or one document token costs, in token weights.
SKIP_ITEM: Final = 0.16
SKIP_DOC: Final = 0.06
#: Largest stretch that is aligned, in tokens of either side.
MOST_ITEM: Final = 160
MOST_DOC: Final = 320
#: An open end is given up where the best alignment falls this far behind the best so far.
MOST_DROP: Final = 2.5
#: Weights are added as whole numbers of this share: ways that are worth the same then are equal.
WEIGHT_SHARES: Final = 1 << 20
#: How far a matched stretch is believed: lone tokens match by chance.
SURE_BLOCK: Final = 3
PAIR_WORTH: Final = 0.85
LONE_WORTH: Final = 0.6

# What stands around the runs.

#: How far around its choices or passage a question without runs is looked for, in tokens, and
#: how long it may be: a longer one has runs of its own where it stands.
STEM_REACH: Final = 60
MOST_STEM: Final = 40
#: Edited, it is looked for in twice as many tokens as it has, and so many; this share must match.
STEM_SLACK: Final = 24
STEM_SHARE: Final = 0.6
#: A question of which less is left was not found there.
LEAST_QUESTION: Final = 0.2
#: Choices are looked for in half as many tokens again as they have, and so many; this share must
#: match.
CHOICES_SLACK: Final = 40
CHOICES_SHARE: Final = 0.5
#: The wrong choices are listed where this share of their tokens stands there.
LISTED_SHARE: Final = 0.4
#: An answer with runs of its own stands by the question from this coverage on, so near.
ANSWER_SHARE: Final = 0.6
ANSWER_DISTANCE: Final = 300
#: How far behind a question its answer is looked for, in tokens.
ANSWER_REACH: Final = 60
#: An answer this long is told apart from chance wherever it stands in that reach.
SURE_ANSWER: Final = 3
#: Most tokens between a question, or a word such as "answer", and a short answer.
CLOSE: Final = 3

# An answer without its question.

#: So many tokens of an answer in a row tell it, or so many letters and digits, if they weigh so
#: much. A pair of tokens that was among so many before it says nothing again.
ANSWER_RUN: Final = 13
ANSWER_LETTERS: Final = 65
ANSWER_WEIGHT: Final = 5.0
SEEN_WITHIN: Final = 256

# Another item's text.

#: A question stands there whole from this coverage on; a token lost to a slip is no other question.
RIVAL_WHOLE: Final = 0.97
#: What a whole question must hold of the text that another item matches, to be its competitor
#: there.
RIVAL_SHARE: Final = 0.8
#: How much less of the other question must stand there: what is as good is no better.
RIVAL_LEAD: Final = 0.1

# The same question with other numbers.

#: Fewer numbers than these differ by chance.
LEAST_NUMBERS: Final = 2


def named_constants() -> Mapping[str, int | float]:
    """Every number above, by name."""
    known = globals().items()
    return {name: value for name, value in known if name.isupper() and type(value) is not bool}
