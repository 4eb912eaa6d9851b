"""`decon-default`: apply decon's rules, from its source code, to each item by itself.

Rows, cleaning, windows, weights and length rule are decon's (`decon_rows`, `decon_tokens`). For
that the documents that matching finds are read again, with decon's cleaning and tokens. A cluster
begins at a gram of the question and reaches to both sides until too many grams in a row are none of
it. Answers are looked for behind a cluster, the passage before it, each in a window. What differs
from decon 0.3.0, all of it:

- Tokens. Given cl100k's `tokenizer.json` as the unit, they are decon's. Without one they are the
  pieces that cl100k makes before it applies its vocabulary, about a fifth fewer, each character of
  Han, kana and Hangul one of them: an item may be too short here that is not there.
- Nothing is sampled. decon looks at one gram in ten, passes over very common ones, and follows only
  rows that hold the gram it began with; so it misses some copies that are found here.
- Candidates. A document is read when it shares a run of `--seed` words of contam's own (5) with the
  item, be it in its question, passage, choices or answer.
- Rarity is counted within one benchmark, as if decon were given that benchmark alone; the parameter
  `rarity_within` set to `run` counts over all benchmarks of a run, as if it were given them all.
- Rows are made of items: one for each option, and for the answer where it is none of them. Rows
  with the same passage, question and answer count once, and all get the verdict.
- Sums of rarities have 64 bits. decon adds up 32 in an order that changes from run to run.
- decon leaves out a document that its tokenizer gives up on; here it is read.

An item that decon cannot find is `not_checkable`: no row with 20 tokens and 4 different words, no
question, a question under 5 tokens, or one whose grams are all in every row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from contam.detect.labels import CLEAN, NOT_CHECKABLE
from contam.detect.model import PASSAGE, QUESTION, ItemsRead
from contam.detect.policies.common import COUNTS_RUNS, judgements, passes, percent, require_view
from contam.detect.policies.decon_rows import (
    BENCHMARK,
    RUN,
    Weights,
    base_score,
    early_gate,
    numbered,
    read_rows,
    scaled_score,
)
from contam.detect.policies.decon_tokens import FileTokens, PieceTokens
from contam.detect.policies.policy_spec import PolicySpec
from contam.errors import PolicyError
from contam.facts import counted
from contam.kernels.decon import Beside, Questions, Rows, find_overlaps, new_gram_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.benchmark.items import BenchItem
    from contam.detect.model import (
        Bools,
        Float32s,
        Float64s,
        Int64s,
        Judgements,
        Matches,
        Totals,
        ViewItems,
    )
    from contam.detect.policies.decon_rows import TextGrams
    from contam.detect.policies.decon_tokens import Texts
    from contam.detect.policies.policy import Policy
    from contam.detect.policies.policy_spec import PolicyTraits
    from contam.text.bpe import FileTokenizer


DECON_DEFAULT: Final = PolicySpec(
    id="decon-default",
    title="decon, idf-weighted overlap",
    description=(
        "The best document is scored by decon's rules: the idf-weighted share of the question's"
        " 5-grams that are found together, of an answer's 3-grams in a window after them, and"
        " of the passage's 4-grams in a window before them. Short items must match completely,"
        " and each option is tried as the answer. With cl100k's tokenizer.json as --unit,"
        " tokens are decon's. Approximate without it: tokens are then the pieces that cl100k"
        " makes before it applies its vocabulary. Every gram is looked up; decon looks up one"
        " in ten."
    ),
    source="Ai2 decon 0.3.0, src/detect",
    confidence="source",
    approximate=True,
    unit="word",
    n=5,
    scope="one document",
    aggregation="idf overlap",
    parts=("passage", "question", "choices", "answer"),
    thresholds=((0.8, "contaminated"),),
    count_rule="documents that each score at least the threshold",
    too_short=(
        "an item is not_checkable if none of its rows has 20 tokens and 4 different words"
        " between spaces, if its question has under 5 tokens, or if every row of the benchmark"
        " has the same question"
    ),
    parameters=(
        ("ramp_start", 20.0),
        ("ramp_end", 50.0),
        ("least_tokens", 20),
        ("least_distinct", 4),
        ("question_misses", 11),
        ("answer_gram", 3),
        ("answer_window", 100),
        ("short_answer", 3),
        ("short_answer_window", 50),
        ("passage_gram", 4),
        ("passage_misses", 2),
        ("passage_window", 100),
        ("rarity_within", BENCHMARK),
    ),
    version="3",
    presets=("olmo-web", "olmo-synth"),
)
SPECS: Final = (DECON_DEFAULT,)
PRESETS: Final[Mapping[str, Mapping[str, object]]] = {
    "olmo-web": {
        "thresholds": {"contaminated": 0.88},
        "parts": ["question", "choices", "answer"],
        "parameters": {
            "ramp_start": 25.0,
            "answer_gram": 2,
            "answer_window": 20,
            "short_answer": 1,
            "short_answer_window": 20,
        },
    },
    "olmo-synth": {
        "thresholds": {"contaminated": 0.78},
        "parameters": {
            "ramp_start": 5.0,
            "ramp_end": 26.0,
            "answer_gram": 2,
            "answer_window": 50,
            "short_answer": 1,
        },
    },
}

# decon compares 32-bit scores; in the spec a threshold has 64.
_TOLERANCE: Final = 1e-6
_SCORE, _QUESTION, _ANSWER, _PASSAGE = range(4)
#: More tokens than lie between any two.
_NEVER: Final = 1 << 40


class DeconReader:
    """Reads documents by decon's rules. Threads may share it once it is made."""

    def __init__(
        self, spec: PolicySpec, items: Sequence[BenchItem], tokenizer: FileTokenizer | None
    ) -> None:
        self._tokens = PieceTokens() if tokenizer is None else FileTokens(tokenizer)
        self._spec, self._decon = spec, (rows := read_rows(items, spec, self._tokens))
        table = new_gram_table(rows.question.n_different)
        everywhere = np.zeros(len(rows.findable), np.int64)
        number, start, n_different = numbered(rows.questions, spec.n, everywhere, table)
        key = np.empty(n_different, np.uint64)
        key[table.number[table.key != 0]] = table.key[table.key != 0]
        self._questions = Questions(
            start=start,
            length=rows.questions.lengths,
            key=key[number],
            number=number,
            idf=rows.question.idf,
            least=np.maximum(early_gate(spec.threshold("contaminated")), rows.gate),
            misses=int(spec.number("question_misses")),
        )
        self._answers = self._beside("answer", rows.answers, rows.answer, _NEVER)
        misses = int(spec.number("passage_misses"))
        self._passages = self._beside("passage", rows.passages, rows.passage, misses)
        self._rows = Rows(
            first=rows.first,
            taken=rows.taken,
            informative=rows.informative,
            short=int(spec.number("short_answer")),
            short_window=int(spec.number("short_answer_window")),
        )
        has_answer = np.zeros(len(items), np.int64)
        np.maximum.at(has_answer, rows.item, rows.n_answer)
        self.known = ItemsRead(
            policy=spec.fingerprint(),
            checkable=rows.findable,
            figures={
                "tokens": rows.most_tokens,
                "words": rows.most_words,
                "question": rows.questions.lengths,
                "answer": has_answer,
                "passage": rows.passages.lengths,
                "pieces": np.full(len(items), tokenizer is None, np.int64),
            },
        )

    def read(self, texts: Sequence[bytes], items: Int64s, start: Int64s) -> Float32s:
        """Score, O_q, O_a and O_p of each of these items, float32[n, 4]: see `TextReader`."""
        found = np.zeros((len(items), 4), np.float32)
        possible = np.flatnonzero(self.known.checkable[items])
        edges = np.searchsorted(possible, start)
        wanted = np.flatnonzero(np.diff(edges))
        if len(wanted):
            tokens = self._tokens.of_documents([texts[at] for at in wanted.tolist()])
            edges = edges[np.append(wanted, len(texts))].astype(np.int64)
            found[possible] = self._scores(tokens, items[possible], edges)
        return found

    def _scores(self, tokens: Texts, items: Int64s, pair_start: Int64s) -> Float32s:
        """Score, O_q, O_a and O_p of the best row and place of each pair: float32[p, 4].

        tokens  of the documents;  items  int64[p], a document's from pair_start[i] on
        """
        found = find_overlaps(
            tokens.tokens,
            tokens.start,
            items,
            pair_start,
            self._spec.n,
            self._questions,
            self._answers,
            self._passages,
            self._rows,
        )
        weight = Weights(*(part[found.row] for part in self._decon.weight))
        base = base_score(weight, *found.share.T)
        needed = self._decon.needed[found.row]
        score = scaled_score(base, self._spec.threshold("contaminated"), needed)
        # The first of those that score most, of each pair.
        order = np.lexsort((-score, found.pair))
        order = order[np.diff(found.pair[order], prepend=-1) != 0]
        order = order[score[order] > 0]
        best = np.zeros((len(items), 4), np.float32)
        best[found.pair[order], _SCORE] = score[order]
        best[found.pair[order], _QUESTION:] = found.share[order]
        return best

    def _beside(self, part: str, texts: Texts, grams: TextGrams, misses: int) -> Beside:
        return Beside(
            tokens=texts.tokens,
            start=texts.start,
            idf=grams.idf,
            first=grams.start,
            n=int(self._spec.number(f"{part}_gram")),
            window=int(self._spec.number(f"{part}_window")),
            misses=misses,
        )


@dataclass(frozen=True, slots=True)
class Decon:
    """The score of the best document, 0..1, as decon reports it; 0 where it looks no further."""

    spec: PolicySpec
    traits: ClassVar[PolicyTraits] = replace(COUNTS_RUNS, reads_text=True)

    def reader(self, items: Sequence[BenchItem], tokenizer: FileTokenizer | None) -> DeconReader:
        """What reads documents for it."""
        return DeconReader(self.spec, items, tokenizer)

    def _number(self, items: ViewItems) -> int:
        """Which of the view's reading policies this is."""
        require_view(self.spec, items)
        fingerprint = self.spec.fingerprint()
        for number, known in enumerate(items.read):
            if known.policy == fingerprint:
                return number
        raise PolicyError(
            "policy {!r} reads the text of items and documents, and this search has none to give",
            self.spec.id,
            hint="search the corpus itself with `contam scan`",
        )

    def score_matches(self, matches: Matches, items: ViewItems) -> Float64s:
        """The reported score of each document; 0 below the early gates."""
        return matches.read[:, self._number(items), _SCORE].astype(np.float64)

    def hits(self, matches: Matches, items: ViewItems, score: Float64s) -> Bools:
        """Documents that would flag the item by themselves."""
        del matches, items  # the score decides
        threshold = self.spec.threshold("contaminated")
        return passes(self.spec, score, threshold, tolerance=_TOLERANCE)

    def judge(self, items: ViewItems, totals: Totals) -> Judgements:
        """Labels by the best document; not checkable where decon would not look."""
        checkable = items.read[self._number(items)].checkable
        return judgements(self.spec, totals.best_score, checkable, tolerance=_TOLERANCE)

    def reasons(
        self, items: ViewItems, totals: Totals, judgement: Judgements, rows: Int64s
    ) -> list[str]:
        """The figures of each of these items, in words."""
        number = self._number(items)
        return [self._reason(items, number, totals, judgement, i) for i in rows.tolist()]

    def _reason(
        self, items: ViewItems, number: int, totals: Totals, judgement: Judgements, i: int
    ) -> str:
        """The overlaps of the best document, its score and where the label begins."""
        figure = {name: int(column[i]) for name, column in items.read[number].figures.items()}
        unit = "piece of text" if figure["pieces"] else "token"
        if judgement.label[i] == NOT_CHECKABLE:
            return self._why_not(figure, unit)
        if judgement.score[i] == 0.0:
            return (
                "no document that was read holds enough of the question, of"
                f" {_counted(figure['question'], unit)}{self._unseen(totals, i, unit)}"
            )
        found = totals.best_match.read[i, number]
        shares = [f"{percent(float(found[_QUESTION]))} of the question"]
        if figure["answer"]:
            shares.append(f"{percent(float(found[_ANSWER]))} of an answer behind it")
        if figure["passage"]:
            shares.append(f"{percent(float(found[_PASSAGE]))} of the passage before it")
        return (
            f"the best document holds {' and '.join(shares)}, by rarity, and scores"
            f" {np.floor(judgement.score[i] * 1000 + 1e-3) / 1000:.3f};"
            f" this policy flags from {self.spec.threshold('contaminated'):g}"
            f"{self._too_far(totals, found, figure, i) if judgement.label[i] == CLEAN else ''}"
        )

    def _unseen(self, totals: Totals, i: int, unit: str) -> str:
        """Why decon finds nothing of an item of which a document holds the question or passage."""
        pair = totals.best_match
        if pair.item[i] >= 0 and pair.exact[i, QUESTION]:
            return (
                "; one document holds the whole question, but not as decon reads it: not in its own"
                f" tokens, or in a text of under {_counted(2 * self.spec.n, unit)}"
            )
        if pair.item[i] >= 0 and pair.exact[i, PASSAGE] and "passage" in self.spec.parts:
            return "; one document holds the whole passage, but decon begins with the question"
        return ""

    def _too_far(self, totals: Totals, found: Float32s, figure: Mapping[str, int], i: int) -> str:
        """Why decon's score is low although the best document holds the whole question."""
        if not totals.best_match.exact[i, QUESTION]:
            return ""
        text = "; the whole question stands there, but"
        sides = []
        if figure["answer"] and found[_ANSWER] < 1:
            window = self.spec.number("short_answer_window")
            if figure["answer"] > self.spec.number("short_answer"):
                window = max(window, 2 * figure["answer"], self.spec.number("answer_window"))
            sides.append(f"an answer in the {int(window)} tokens behind it")
        if figure["passage"] and found[_PASSAGE] < 1:
            window = max(2 * figure["passage"], self.spec.number("passage_window"))
            sides.append(f"the passage in the {int(window)} tokens before it")
        if sides:
            return f"{text} decon looks only for {' and '.join(sides)}"
        return f"{text} not in decon's own tokens"

    def _why_not(self, figure: Mapping[str, int], unit: str) -> str:
        least = int(self.spec.number("least_tokens"))
        least_words = int(self.spec.number("least_distinct"))
        if figure["tokens"] < least or figure["words"] < least_words or not figure["question"]:
            return (
                f"{_counted(figure['tokens'], unit)} in all, {figure['question']:,} of them in the"
                f" question, and {counted(figure['words'], 'different word')} between spaces;"
                f" decon takes an item from {least} and {least_words} on"
            )
        if figure["question"] < self.spec.n:
            return (
                f"the question has {_counted(figure['question'], unit)}; decon looks for"
                f" {self.spec.n} in a row"
            )
        return "every row of the benchmark asks this question, so decon gives it no weight"


def _counted(number: int, unit: str) -> str:
    if unit == "token":
        return counted(number, unit)
    return f"{number:,} {'piece' if number == 1 else 'pieces'} of text"


def build(spec: PolicySpec) -> Policy:
    """The policy of this spec."""
    if "question" not in spec.parts:
        raise PolicyError(
            "policy {!r} judges a question with or without its answers and passage", spec.id
        )
    if not 0 <= spec.number("ramp_start") < spec.number("ramp_end"):
        raise PolicyError("policy {!r}: ramp_start must lie below ramp_end", spec.id)
    if spec.parameter("rarity_within") not in {BENCHMARK, RUN}:
        raise PolicyError("policy {!r}: rarity_within is {} or {}", spec.id, BENCHMARK, RUN)
    for name in ("answer_gram", "passage_gram", "question_misses"):
        if spec.number(name) < 1:
            raise PolicyError("policy {!r}: {} must be 1 or more", spec.id, name)
    return Decon(spec)
