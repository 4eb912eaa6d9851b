"""`gpt4-50char`: search three random 50-character pieces of each item verbatim.

Pinned, where the source leaves it open:

- The pieces are drawn from the passage and the question, each piece from inside one of them, every
  place equally likely, each draw by itself (two may coincide). The draw is seeded by the item's own
  characters and by the parameter `draw_seed`, so it depends neither on the item's place in a file
  nor on other items, and equal items get equal pieces.
- An item without 50 characters in a judged part is searched whole, as its question: letters and
  digits of it all in a row. The source searches the whole example; it leaves open what that is
  where a passage and a question are short each by itself. If the scan cannot see so short a run,
  the item is `not_checkable`.
- `n_documents` counts documents with any 50 characters of the item in a row, not only the three
  pieces; an item can be clean and have some.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from contam.detect.labels import CONTAMINATED, NOT_CHECKABLE
from contam.detect.model import QUESTION
from contam.detect.policies.common import (
    COUNTS_RUNS,
    PerItems,
    Segments,
    documents_hold,
    in_blocks,
    judgements,
    longest_runs,
    mixed,
    part_index,
    require_view,
)
from contam.detect.policies.policy_spec import PolicySpec
from contam.errors import PolicyError
from contam.facts import counted

if TYPE_CHECKING:
    from contam.detect.model import (
        Bools,
        Float64s,
        Int64s,
        Judgements,
        Matches,
        Totals,
        Uint64s,
        ViewItems,
    )
    from contam.detect.policies.policy import Policy
    from contam.detect.policies.policy_spec import PolicyTraits

GPT4_50CHAR: Final = PolicySpec(
    id="gpt4-50char",
    title="GPT-4, three 50-character substrings",
    description=(
        "Three substrings of 50 characters, letters and digits only, are drawn from an item's"
        " passage and question. The item is contaminated if any document contains one of them."
        " A shorter item is searched for as a whole. The draw is repeatable: it depends only on"
        " the item's text. The original keeps case; here case and accents are ignored."
    ),
    source="OpenAI 2023, GPT-4 Technical Report, appendix C",
    confidence="paper",
    unit="char",
    n=50,
    scope="any document",
    aggregation="share of windows",
    parts=("passage", "question"),
    thresholds=((0.0, "contaminated"),),
    comparison="more than",
    count_rule="documents with at least 50 letters and digits of a judged part in a row",
    too_short=(
        "an item without a judged part of 50 letters and digits is searched for as its whole"
        " question; if that is shorter than the shortest run that the scan finds, the item is"
        " not_checkable"
    ),
    parameters=(("n_substrings", 3), ("draw_seed", 0)),
)
SPECS: Final = (GPT4_50CHAR,)

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FACTOR: Final = np.uint64(0xBF58476D1CE4E5B9)


class Drawn(NamedTuple):
    """What is searched for each item.

    place    int64[n_items, draws]  where a piece starts in the flat arrays
    length   int64[n_items]         characters of a piece; 0 where nothing can be searched
    """

    place: Int64s
    length: Int64s


def content_keys(items: ViewItems, segments: Segments) -> Uint64s:
    """uint64[n_items]: a hash of the characters of the judged parts, in order."""
    spot = segments.offset.astype(np.uint64) * _STEP
    tokens = mixed(items.token_hash[segments.place] + spot)
    first = np.cumsum(segments.length) - segments.length
    totals = np.zeros(segments.length.size, np.uint64)
    filled = segments.length > 0
    if tokens.size:
        totals[filled] = np.add.reduceat(tokens, first[filled])
    keys = np.zeros(items.n_items, np.uint64)
    for column in segments.by_item(np.arange(segments.length.size)).T:
        keys = mixed(keys * _FACTOR + totals[column] + segments.length[column].astype(np.uint64))
    return keys


@dataclass(frozen=True, slots=True)
class Substrings:
    """A few pieces of fixed length, each found or not. The score is the share that was found."""

    spec: PolicySpec
    traits: ClassVar[PolicyTraits] = replace(COUNTS_RUNS, short_items="item")
    _pieces: PerItems[Drawn] = field(default_factory=PerItems, repr=False, compare=False)

    def drawn(self, items: ViewItems) -> Drawn:
        """The pieces of every item: drawn where one fits, else the whole question."""
        return Drawn(*in_blocks(items, self.spec.parts, self._drawn))

    def _drawn(self, items: ViewItems) -> Drawn:
        columns = part_index(self.spec.parts)
        segments = Segments.of(items, self.spec.parts)
        n_places = segments.by_item(segments.n_grams(self.spec.n))
        per_item: Int64s = n_places.sum(axis=1)
        seed = np.uint64(int(self.spec.number("draw_seed")))
        keys = content_keys(items, segments) + seed
        starts = items.token_start[:, columns]
        draws = []
        for _ in range(int(self.spec.number("n_substrings"))):
            keys = keys + _STEP
            choice = mixed(keys) % np.maximum(per_item, 1).astype(np.uint64)
            draws.append(_place_of(choice.astype(np.int64), n_places, starts))
        place = np.stack(draws, axis=1)
        whole = per_item == 0
        length = np.where(whole, items.n_tokens[:, QUESTION], self.spec.n).astype(np.int64)
        length[whole & (length < items.seed)] = 0
        place[whole] = items.token_start[whole, QUESTION, np.newaxis]
        return Drawn(place, length)

    def score_matches(self, matches: Matches, items: ViewItems) -> Float64s:
        """The longest run of the judged parts in each document, in characters; it only ranks."""
        require_view(self.spec, items)
        return longest_runs(self.spec, matches).astype(np.float64)

    def hits(self, matches: Matches, items: ViewItems, score: Float64s) -> Bools:
        """Documents with a run of the item that could fill a piece."""
        del score  # other documents count than those that score
        length = self._pieces.get(items, self.drawn).length[matches.item]
        longest = longest_runs(self.spec, matches)
        longest = np.where(length != self.spec.n, matches.longest[:, QUESTION], longest)
        return (length > 0) & (longest >= length)

    def judge(self, items: ViewItems, totals: Totals) -> Judgements:
        """Contaminated when any piece was found; not checkable where there is none to search."""
        pieces = self._pieces.get(items, self.drawn)
        checkable = pieces.length > 0
        return judgements(self.spec, self._found(pieces, totals).mean(axis=1), checkable)

    def reasons(
        self, items: ViewItems, totals: Totals, judgement: Judgements, rows: Int64s
    ) -> list[str]:
        """How many of the pieces were found, or how short the item is."""
        pieces = self._pieces.get(items, self.drawn)
        n_drawn = counted(pieces.place.shape[1], "drawn substring")
        reasons = []
        for label, n_question, length, n_found, n_documents in zip(
            judgement.label[rows].tolist(),
            items.n_tokens[rows, QUESTION].tolist(),
            pieces.length[rows].tolist(),
            self._found(pieces, totals).sum(axis=1)[rows].tolist(),
            totals.n_documents[rows].tolist(),
            strict=True,
        ):
            characters = counted(n_question, "character")
            if label == NOT_CHECKABLE:
                text = f"the question has {characters}; runs are seen from {items.seed}"
            elif length != self.spec.n:
                verdict = "stands" if label == CONTAMINATED else "does not stand"
                text = (
                    f"the whole question, {characters}, {verdict}"
                    " in the corpus; this policy searches so short an item whole"
                )
            else:
                held = f"{documents_hold(n_documents)} a run of {self.spec.n} characters or more"
                text = (
                    f"{n_found} of {n_drawn} of {self.spec.n} characters stand in the corpus,"
                    f" and {held}; this policy flags from 1"
                )
            reasons.append(text)
        return reasons

    def _found(self, pieces: Drawn, totals: Totals) -> Bools:
        """bool[n_items, draws]: which pieces stand in some document."""
        searched = pieces.length > 0
        found = np.zeros(pieces.place.shape, np.bool_)
        runs = totals.longest_at[pieces.place[searched]]
        found[searched] = runs >= pieces.length[searched, np.newaxis]
        return found


def _place_of(choice: Int64s, n_places: Int64s, starts: Int64s) -> Int64s:
    """int64[n_items]: the flat position of the chosen place, counted through an item's parts."""
    place = np.zeros(choice.size, np.int64)
    before = np.zeros(choice.size, np.int64)
    for column in range(n_places.shape[1]):
        inside = (choice >= before) & (choice < before + n_places[:, column])
        place[inside] = (starts[:, column] + choice - before)[inside]
        before += n_places[:, column]
    return place


def build(spec: PolicySpec) -> Policy:
    """The policy of this spec."""
    if "question" not in spec.parts:
        raise PolicyError(
            "policy {!r} searches short items by their question, which it does not judge",
            spec.id,
            hint='add "question" to its parts',
        )
    if spec.number("n_substrings") < 1 or spec.number("draw_seed") < 0:
        raise PolicyError("policy {!r} needs a substring to draw and a seed of 0 or more", spec.id)
    return Substrings(spec)
