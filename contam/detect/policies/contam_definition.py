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
    # telling: what a question's words must weigh to speak for themselves; least_telling: the share
    # of it that what is found must weigh for a full score, or a whole question to be certain.
    # strictness, no_run: what is lost for each share not found, of a question that weighs nothing
    # and of one whose longest run is half as long as a run must be (no_run_beside: at most, where
    # its passage or choices stand there too).
    # run_weight: what a run must weigh, so that common wording needs a longer one.
    # least_support: passage or choices stand in the document from this share on.
    # word_characters: characters of a script without spaces that make a run of one word; half
    # a question in one run is a run all the same, from n tokens on.
    # half: the share of a question's words that is a run all the same, is no mere term, and is at
    # least a doubt where it weighs half_weighs of telling.
    # few_weigh: what is found must weigh, where it is fewer than half of the question's words.
    # most_scattered: other text, of the stretch over which words without a run may lie.
    # certain_runs: a whole question of so many times n words is certain, whatever it weighs.
    # borrowed_from: beside a passage, a question counts in full from this share on.
    # just_below: the share of a threshold that keeps a score below it.
    # most_loose: other text, of the stretch over which what is certain may lie, unless a run has so
    # many times n words (loose_runs).
    # renumbered, renumbered_sure: of a question whose numbers are all others there, this share of
    # the other words must stand there to be a doubt, and to be certain.
    # run_share, run_long, run_certain: a question is at least a doubt, whoever shares its words,
    # where this share of them stands in a row, so many times n of them, or so many times where it
    # is a stem whose passage is missing; edited_share: where this share of 2 n words or more does.
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
