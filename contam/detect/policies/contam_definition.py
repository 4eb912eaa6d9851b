"""Define `contam`: thresholds, parameters and constants of the matching."""

from __future__ import annotations

from typing import Final

from contam.detect.policies.policy_spec import PolicySpec, PolicyTraits
from contam.kernels.constants import named_constants
from contam.text.common_words import COMMON_WEIGHT, PAIR_WEIGHT, SHORT_WEIGHT, SINGLE_WEIGHT


def matching_constants() -> tuple[tuple[str, int | float], ...]:
    """Numbers of the matching that this policy's verdicts depend on, by name."""
    weights = {
        "COMMON_WEIGHT": COMMON_WEIGHT,
        "SHORT_WEIGHT": SHORT_WEIGHT,
        "PAIR_WEIGHT": PAIR_WEIGHT,
        "SINGLE_WEIGHT": SINGLE_WEIGHT,
    }
    return tuple({**weights, **named_constants()}.items())


TRAITS: Final = PolicyTraits(
    monotone=True,
    short_items="question",
    needs_weights=True,
    sees_variants=True,
    reads_text=False,
    ours=True,
    sufficient_share="run_share",
)
CONTAM: Final = PolicySpec(
    id="contam",
    title="contam's own: weighted coverage by the best single document",
    description=(
        "The share of the question that one document contains, aligned across edits, insertions"
        " and moved sentences. Common words, and wording that many items of the benchmark"
        " share, weigh little. A question with little content counts only together with its"
        " choices or its passage."
    ),
    source="this project, docs/adr",
    version="3",
    confidence="source",
    unit="word",
    n=8,
    scope="one document",
    aggregation="weighted coverage",
    parts=("passage", "question", "choices"),
    thresholds=((0.45, "suspect"), (0.75, "contaminated")),
    count_rule="documents that by themselves make the item suspect or contaminated",
    too_short=(
        "an item is not_checkable if its question has no tokens, or if its passage, its"
        " question and each of its choices all have fewer tokens than the seed; a question"
        " shorter than the seed is searched for together with its choices"
    ),
    # telling: weight from which a question has enough content by itself; least_telling: the share
    # of it that the matched text must weigh for a full score, and a whole question to be certain.
    # strictness, no_run: penalty for each share that is missing, for a question that weighs nothing
    # and for one whose longest run is half of the run it needs (no_run_beside: the most where its
    # passage or choices are in the document too).
    # run_weight: weight that a run needs, so that common wording needs a longer one.
    # least_support: share from which passage or choices count as being in the document.
    # word_characters: characters, in a script without spaces, that count as one word of a run.
    # half: share of a question's words that is enough for a run, from n tokens on; that is more
    # than a mere term; and that is at least suspect if it weighs half_weighs of telling.
    # few_weigh: weight that matched text needs if it is fewer than half of the question's words.
    # most_scattered: most other text in a stretch of words without a run.
    # certain_runs: a whole question of so many times n words is certain, whatever its weight.
    # borrowed_from: with a passage, share from which a question counts in full.
    # just_below: share of a threshold that keeps a score below it.
    # most_loose: most other text in a stretch of a certain match, unless it has a run of so many
    # times n words (loose_runs).
    # renumbered, renumbered_sure: of a question all of whose numbers differ, the share of its other
    # words that must be there to be suspect, and to be contaminated.
    # run_share, run_long, run_certain: a question is at least suspect, however many items share its
    # words, if this share of it is one run of so many times n words, or of so many times if it is a
    # stem whose passage is missing; edited_share: if this share of 2 n words or more is matched.
    parameters=(
        ("telling", 5.0),
        ("strictness", 2.5),
        ("no_run", 1.8),
        ("no_run_beside", 1.0),
        ("run_weight", 4.0),
        ("least_support", 0.3),
        ("word_characters", 2.0),
        ("few_weigh", 8.0),
        ("most_scattered", 0.4),
        ("least_telling", 0.5),
        ("half", 0.5),
        ("half_weighs", 0.4),
        ("certain_runs", 2.0),
        ("borrowed_from", 0.9),
        ("just_below", 0.99),
        ("most_loose", 0.25),
        ("loose_runs", 1.5),
        ("renumbered", 0.8),
        ("renumbered_sure", 0.95),
        ("run_share", 0.8),
        ("run_long", 1.5),
        ("run_certain", 2.0),
        ("edited_share", 0.9),
    ),
    constants=matching_constants(),
)
