"""Define `contam`: thresholds, parameters and constants of the matching."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
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


@dataclass(frozen=True, slots=True)
class Numbers:
    """The parameters of the rule. Weights are those of words; runs are in times n words.

    telling          weight from which a question has enough content by itself
    strictness       penalty for each share of that weight that is missing
    no_run           penalty for a question whose longest run is half of the run that it needs
    no_run_beside    the most of it where the passage or the choices are in the document too
    run_weight       weight that a run needs: common wording needs a longer one
    least_support    share from which passage or choices count as being in the document
    word_characters  characters that count as one word of a run, in a script without spaces
    few_weigh        weight that matched text needs if it is fewer than half of the words
    most_scattered   most other text in a stretch of words without a run
    least_telling    share of `telling` that the matched text must weigh for a full score, and a
                     whole question to be certain
    half             share of a question's words that is enough for a run, and more than a term
    half_weighs      share of `telling` from which half of a question is at least suspect
    certain_runs     a whole question this long is certain, whatever its weight
    borrowed_from    share from which a question with a passage counts in full
    just_below       share of a threshold that keeps a score below it
    most_loose       most other text in a stretch of a certain match...
    loose_runs       ...unless it has a run this long
    renumbered       share of other words that must be there for a question all of whose numbers
                     differ to be suspect...
    renumbered_sure  ...and to be contaminated
    run_share        share of a question in one run that makes it at least suspect, however many
                     items share its words, if the run is...
    run_long         ...this long...
    run_certain      ...or this long, for a stem whose passage is missing
    edited_share     share of the words that does so as well, of a question of `certain_runs`
    """

    telling: float = 5.0
    strictness: float = 2.5
    no_run: float = 1.8
    no_run_beside: float = 1.0
    run_weight: float = 4.0
    least_support: float = 0.3
    word_characters: float = 2.0
    few_weigh: float = 8.0
    most_scattered: float = 0.4
    least_telling: float = 0.5
    half: float = 0.5
    half_weighs: float = 0.4
    certain_runs: float = 2.0
    borrowed_from: float = 0.9
    just_below: float = 0.99
    most_loose: float = 0.25
    loose_runs: float = 1.5
    renumbered: float = 0.8
    renumbered_sure: float = 0.95
    run_share: float = 0.8
    run_long: float = 1.5
    run_certain: float = 2.0
    edited_share: float = 0.9

    @classmethod
    def of(cls, spec: PolicySpec) -> Numbers:
        """Those of a definition, as a file may have changed them."""
        return cls(**{field.name: spec.number(field.name) for field in fields(cls)})


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
        " choices or its passage. A long answer alone makes an item suspect."
    ),
    source="this project, docs/adr",
    version="4",
    confidence="source",
    unit="word",
    n=8,
    scope="one document",
    aggregation="weighted coverage",
    parts=("passage", "question", "choices", "answer"),
    thresholds=((0.45, "suspect"), (0.75, "contaminated")),
    count_rule="documents that by themselves make the item suspect or contaminated",
    too_short=(
        "an item is not_checkable if its question has no tokens, or if its passage, its"
        " question and each of its choices all have fewer tokens than the seed; a question"
        " shorter than the seed is searched for together with its choices"
    ),
    parameters=tuple(asdict(Numbers()).items()),
    constants=matching_constants(),
)
