"""Policies that flag an item by the share seen: `llama3-8gram`, `palm-70`, `igmini-50`.

Which documents the pieces come from does not matter: those of one item may be in different
ones. Pinned, where the sources leave it open:

- A gram is inside one part; grams across the seam of passage and question are not counted,
  neither as seen nor as missing.
- An item none of whose judged parts has n tokens holds no gram and is `not_checkable`.
- A share that equals a threshold earns its label: 20 % is suspect and 80 % contaminated in
  `igmini-50`, 70 % contaminated in `palm-70`.
- A gram that occurs twice in an item counts twice, and covers its tokens at both places.
- `llama3-8gram` judges passage and question as one text: covered tokens over all tokens. The source
  gives no threshold but picks one per dataset and model; 0.4 is the upper end of what later work
  found useful with 8-grams, and a policy file may set another.
- `palm-70` judges three texts, and the highest share counts: the question, the prompt (passage and
  question) and the target (the answer).
- `igmini-50`: the project has published its search engine, not the code of its contamination
  figures, so the paper is all there is to go by. It judges passage and question as one text. A
  window of 50 letters and digits starts at every white-space separated word that has 50 left in
  its part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from contam.benchmark.items import PARTS
from contam.detect.labels import NOT_CHECKABLE
from contam.detect.policies.common import (
    COUNTS_RUNS,
    PerItems,
    Segments,
    documents_hold,
    flags_from,
    in_blocks,
    judgements,
    longest_runs,
    part_index,
    part_lengths,
    percent,
    require_view,
    unit_names,
)
from contam.detect.policies.policy_spec import PolicySpec
from contam.errors import InternalError
from contam.facts import counted

if TYPE_CHECKING:
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
    from contam.detect.policies.policy_spec import PolicyTraits

_TOO_SHORT: Final = "an item is not_checkable if none of its judged parts has n tokens"

LLAMA3_8GRAM: Final = PolicySpec(
    id="llama3-8gram",
    title="Llama 3, tokens in seen 8-grams",
    description=(
        "An item's score is the share of its words that are part of an 8-gram found in any"
        " document. Approximate: the original counts tokens of its own tokenizer, and chooses a"
        " threshold per dataset by the estimated performance gain; here tokens are words, and"
        " the threshold is 0.4 unless a policy file sets another."
    ),
    source="Llama Team 2024, The Llama 3 Herd of Models, section 5.1.4",
    confidence="paper",
    approximate=True,
    unit="word",
    n=8,
    scope="any document",
    aggregation="share of tokens",
    parts=("passage", "question"),
    thresholds=((0.4, "contaminated"),),
    count_rule="documents with a run of at least 8 words of a judged part",
    too_short=_TOO_SHORT,
)
PALM_70: Final = PolicySpec(
    id="palm-70",
    title="PaLM, 70 % of 8-grams",
    description=(
        "An item is contaminated if at least 70 % of the 8-grams of its question, its prompt or"
        " its target are found in any document. Approximate: known only from quotations, which"
        " do not name the unit; here it is words, the prompt is passage and question, and the"
        " target is the answer."
    ),
    source="Chowdhery et al. 2022, PaLM, section 8, as quoted by later work",
    confidence="secondary",
    approximate=True,
    unit="word",
    n=8,
    scope="any document",
    aggregation="share of grams",
    parts=("passage", "question", "answer"),
    thresholds=((0.7, "contaminated"),),
    count_rule="documents with a run of at least 8 words of a judged part",
    too_short=_TOO_SHORT,
)
IGMINI_50: Final = PolicySpec(
    id="igmini-50",
    title="Infini-gram mini, 50-character windows",
    description=(
        "An item's score is the share of its 50-character windows, one starting at each word,"
        " that are found in any document: under 20 % clean, from 20 % suspicious (here:"
        " suspect), from 80 % dirty (here: contaminated). Approximate: the original compares"
        " raw text; here only letters and digits count as characters, so spaces and punctuation"
        " are ignored."
    ),
    source="Xu et al. 2025, Infini-gram mini, section 4.1",
    confidence="paper",
    approximate=True,
    unit="char",
    n=50,
    scope="any document",
    aggregation="share of windows",
    parts=("passage", "question"),
    thresholds=((0.2, "suspect"), (0.8, "contaminated")),
    count_rule="documents with at least 50 letters and digits of a judged part in a row",
    too_short=_TOO_SHORT,
)
SPECS: Final = (LLAMA3_8GRAM, PALM_70, IGMINI_50)


_STANDS: Final = ("stands in the corpus", "stand in the corpus")


class SeenCounts(NamedTuple):
    """What was seen of what there is, int64[n_items, parts]: tokens, grams or windows."""

    seen: Int64s
    total: Int64s
    n_grams: Int64s


class Rated(NamedTuple):
    """What was found of all items; their best texts, int64[n_items], and the shares of those."""

    found: SeenCounts
    text: Int64s
    share: Float64s


@dataclass(frozen=True, slots=True)
class TokenShare:
    """The share of tokens that lie inside a seen gram."""

    spec: PolicySpec
    traits: ClassVar[PolicyTraits] = COUNTS_RUNS
    #: What is counted, tokens where it is "", and what is said of one and of several; {} is n.
    piece: ClassVar[str] = ""
    seen: ClassVar[tuple[str, str]] = (
        "lies in {}-grams of the corpus",
        "lie in {}-grams of the corpus",
    )
    _rated: PerItems[Rated] = field(default_factory=PerItems, repr=False, compare=False)

    def found(self, items: ViewItems, totals: Totals) -> SeenCounts:
        """Covered tokens and all tokens of each judged part."""
        segments = Segments.of(items, self.spec.parts)
        seen = segments.runs(totals) >= self.spec.n
        return SeenCounts(
            segments.by_item(segments.count(segments.covered(seen, self.spec.n))),
            segments.by_item(segments.length),
            segments.by_item(segments.n_grams(self.spec.n)),
        )

    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The texts of which each is rated as a whole; the highest share counts."""
        return (self.spec.parts,)

    def score_matches(self, matches: Matches, items: ViewItems) -> Float64s:
        """The share of the judged tokens inside long runs of each one document; it only ranks."""
        require_view(self.spec, items)
        columns = part_index(self.spec.parts)
        covered: Int64s = matches.covered[:, columns].sum(axis=1, dtype=np.int64)
        n_tokens: Int64s = items.n_tokens[:, columns].sum(axis=1, dtype=np.int64)
        return covered / np.maximum(n_tokens[matches.item], 1)

    def hits(self, matches: Matches, items: ViewItems, score: Float64s) -> Bools:
        """Documents that hold at least one of the item's grams."""
        del items, score  # other documents count than those that score
        return longest_runs(self.spec, matches) >= self.spec.n

    def judge(self, items: ViewItems, totals: Totals) -> Judgements:
        """Labels by the share that was seen; not checkable where no part holds a gram."""
        rated = self._rated.get(items, lambda every: self._rate(every, totals), totals)
        return judgements(self.spec, rated.share, rated.found.n_grams.sum(axis=1) > 0)

    def _rate(self, items: ViewItems, totals: Totals) -> Rated:
        found = SeenCounts(
            *in_blocks(items, self.spec.parts, lambda block: self.found(block, totals))
        )
        return Rated(found, *self._best_text(found))

    def reasons(
        self, items: ViewItems, totals: Totals, judgement: Judgements, rows: Int64s
    ) -> list[str]:
        """What was seen of what there is, in how many documents, and where labels begin."""
        found, text, share = self._rated.get(items, lambda every: self._rate(every, totals), totals)
        thresholds = flags_from(self.spec)
        texts = self._columns_of_texts()
        known: dict[tuple[object, ...], str] = {}
        reasons = []
        for label, names, seen, total, rated, n_documents, lengths, token in zip(
            judgement.label[rows].tolist(),
            text[rows].tolist(),
            found.seen[rows].tolist(),
            found.total[rows].tolist(),
            share[rows].tolist(),
            totals.n_documents[rows].tolist(),
            items.n_tokens[rows].tolist(),
            unit_names(self.spec, items, rows),
            strict=True,
        ):
            if label == NOT_CHECKABLE:
                short = part_lengths(self.spec, lengths, token)
                reasons.append(f"{short}; this policy needs {self.spec.n}")
                continue
            mine, columns = texts[names]
            n_seen = sum([seen[column] for column in mine])
            present = [column for column in columns if lengths[column]]
            n_total = sum([total[column] for column in mine])
            figures = (n_seen, n_total, rated, n_documents, token, *present)
            reason = known.get(figures)
            if reason is None:
                run = f"a run of {counted(self.spec.n, token)} or more"
                where = f"; {documents_hold(n_documents)} {run}" if n_seen else ""
                parts = " and ".join([PARTS[column] for column in present])
                pieces = counted(n_total, self.piece.format(self.spec.n) or token)
                were_seen = self.seen[n_seen != 1].format(self.spec.n)
                reason = known[figures] = (
                    f"{n_seen:,} of {pieces} of the {parts} ({percent(rated)})"
                    f" {were_seen}{where}; {thresholds}"
                )
            reasons.append(reason)
        return reasons

    def _columns_of_texts(self) -> list[tuple[list[int], list[int]]]:
        """Of each text, its places among the judged parts and its columns, as it names them."""
        judged = part_index(self.spec.parts)
        return [
            (
                [judged.index(column) for column in part_index(names)],
                [PARTS.index(name) for name in names],
            )
            for names in self.texts()
        ]

    def _best_text(self, found: SeenCounts) -> tuple[Int64s, Float64s]:
        """Which text has the highest share, int64[n_items], and that share, float64[n_items]."""
        columns = part_index(self.spec.parts)
        shares = []
        for names in self.texts():
            mine = [columns.index(column) for column in part_index(names)]
            total = found.total[:, mine].sum(axis=1)
            share = found.seen[:, mine].sum(axis=1) / np.maximum(total, 1)
            # A text without a piece must not be the one that a reason talks about.
            shares.append(np.where(total > 0, share, -1.0))
        table = np.stack(shares)
        return table.argmax(axis=0), np.maximum(table.max(axis=0), 0.0)


@dataclass(frozen=True, slots=True)
class GramShare(TokenShare):
    """The share of grams that were seen, in whichever of question, prompt and target is highest."""

    piece: ClassVar[str] = "{}-gram"
    seen: ClassVar[tuple[str, str]] = _STANDS

    def found(self, items: ViewItems, totals: Totals) -> SeenCounts:
        """Seen grams and all grams of each judged part."""
        segments = Segments.of(items, self.spec.parts)
        seen = segments.by_item(segments.count(segments.runs(totals) >= self.spec.n))
        n_grams = segments.by_item(segments.n_grams(self.spec.n))
        return SeenCounts(seen, n_grams, n_grams)

    def texts(self) -> tuple[tuple[str, ...], ...]:
        """Question, prompt and target, as far as the spec judges their parts."""
        prompt = ("passage", "question")
        wanted = (("question",), prompt, ("choices",), ("answer",))
        return tuple(text for text in wanted if set(text) <= set(self.spec.parts)) or (
            self.spec.parts,
        )


@dataclass(frozen=True, slots=True)
class WindowShare(TokenShare):
    """The share of windows, one from each word on, that were seen."""

    piece: ClassVar[str] = "{}-character window"
    seen: ClassVar[tuple[str, str]] = _STANDS

    def found(self, items: ViewItems, totals: Totals) -> SeenCounts:
        """Seen windows and all windows of each judged part."""
        if items.word_start is None:
            raise InternalError("the character lane does not say where words start")
        segments = Segments.of(items, self.spec.parts)
        fits = segments.offset + self.spec.n <= segments.length[segments.segment]
        windows = fits & items.word_start[segments.place]
        seen = segments.by_item(segments.count(windows & (segments.runs(totals) >= self.spec.n)))
        n_windows = segments.by_item(segments.count(windows))
        return SeenCounts(seen, n_windows, n_windows)


def build(spec: PolicySpec) -> Policy:
    """The policy of this spec."""
    kinds = {PALM_70.id: GramShare, IGMINI_50.id: WindowShare}
    return kinds.get(spec.base, TokenShare)(spec)
