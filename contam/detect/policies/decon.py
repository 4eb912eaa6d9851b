"""`decon-default`: apply decon's rules, from its source code, to each item by itself.

Rows, cleaning, windows, weights and length rule are decon's (`decon_rows`, `decon_tokens`,
`decon_formulas`). For that the documents that matching finds are read again, with decon's cleaning
and tokens. A cluster begins at a gram of the question and reaches to both sides until too many
grams in a row are none of it. Answers are looked for behind a cluster, the passage before it, each
in a window. What differs from decon 0.3.0, all of it:

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
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from contam.detect.labels import CLEAN, NOT_CHECKABLE
from contam.detect.model import PASSAGE, QUESTION, ItemsRead
from contam.detect.policies import decon_formulas as formulas
from contam.detect.policies.common import COUNTS_RUNS, judgements, passes, percent
from contam.detect.policies.decon_rows import BENCHMARK, RUN, numbered, read_rows
from contam.detect.policies.decon_tokens import FileTokens, PieceTokens, Texts
from contam.detect.policies.policy_spec import PolicySpec
from contam.detect.policies.segments import require_view
from contam.errors import PolicyError
from contam.facts import counted
from contam.kernels.decon import Questions, find_clusters, find_grams, new_gram_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.benchmark.items import BenchItem
    from contam.detect.model import (
        Bools,
        Float32s,
        Float64s,
        Int32s,
        Int64s,
        Judgements,
        Matches,
        Totals,
        ViewItems,
    )
    from contam.detect.policies.decon_rows import DeconRows
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


class DeconReader:
    """Reads documents by decon's rules. Threads may share it once it is made."""

    def __init__(
        self, spec: PolicySpec, items: Sequence[BenchItem], tokenizer: FileTokenizer | None
    ) -> None:
        self._tokens = PieceTokens() if tokenizer is None else FileTokens(tokenizer)
        rows = read_rows(items, spec, self._tokens)
        self._scorer = Scorer(spec, rows)
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

    def read(self, text: str, items: Sequence[int]) -> Float32s:
        """Score, O_q, O_a and O_p of each of these items, float32[n, 4]."""
        wanted = np.array(items, np.int64)
        if not self.known.checkable[wanted].any():
            return np.zeros((len(items), 4), np.float32)
        return self._scorer.scores(self._tokens.of_document(text), wanted)


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
        return [self._reason(items, totals, judgement, i) for i in rows.tolist()]

    def _reason(self, items: ViewItems, totals: Totals, judgement: Judgements, i: int) -> str:
        """The overlaps of the best document, its score and where the label begins."""
        number = self._number(items)
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


class Cluster(NamedTuple):
    """Where a question stands in a document.

    first, last  the outermost of its grams, numbered by their first token
    share        O_q, of the rarity of all its grams
    """

    first: int
    last: int
    share: float


class Scorer:
    """decon's rules over the rows of all items. Threads may share it."""

    def __init__(self, spec: PolicySpec, rows: DeconRows) -> None:
        self.spec, self.rows = spec, rows
        self._table = new_gram_table(rows.question.n_different)
        everywhere = np.zeros(len(rows.findable), np.int64)
        number, start, _ = numbered(rows.questions, spec.n, everywhere, self._table)
        self._questions = Questions(
            start=start,
            number=number,
            idf=rows.question.idf,
            least=np.maximum(formulas.early_gate(spec.threshold("contaminated")), rows.gate),
            misses=int(spec.number("question_misses")),
        )

    def scores(self, tokens: Int64s, items: Int64s) -> Float32s:
        """Score, O_q, O_a and O_p of the best row and place of each item: float32[n, 4]."""
        n = self.spec.n
        best = np.zeros((len(items), 4), np.float32)
        if len(tokens) < 2 * n:
            return best
        place, number = find_grams(tokens, n, self._table)
        at = np.flatnonzero(self.rows.findable[items])
        found = find_clusters(place, number, len(tokens) - n + 1, items[at], self._questions)
        for number, *where in zip(*(part.tolist() for part in found), strict=True):
            item = at[number]
            scores = self._score(tokens, int(items[item]), Cluster(*where))
            if scores[0] > best[item, 0]:
                best[item] = scores
        return best

    def _score(self, tokens: Int64s, item: int, cluster: Cluster) -> tuple[float, ...]:
        """Score, O_q, O_a and O_p of the item's best row at a cluster."""
        rows = self.rows
        o_p = self._passage(tokens, item, cluster.first)
        end = cluster.last + self.spec.n - 1
        # Where grams of the question recur behind it, the answer may begin before the end.
        end -= max(0, end - cluster.first + 1 - int(rows.questions.lengths[item]))
        mine = np.arange(rows.first[item], rows.first[item + 1])
        mine = mine[rows.taken[mine]]
        o_a = np.array([self._answer(tokens, row, end + 1) for row in mine], np.float32)
        weight = formulas.Weights(*(part[mine] for part in rows.weight))
        base = formulas.base_score(weight, cluster.share, o_a, o_p)
        score = formulas.scaled_score(base, self.spec.threshold("contaminated"), rows.needed[mine])
        best = int(score.argmax())
        return float(score[best]), cluster.share, float(o_a[best]), float(o_p)

    def _answer(self, tokens: Int64s, row: int, begin: int) -> np.float32:
        """O_a of a row's answer behind the question."""
        answer = self.rows.answers.text(row)
        if len(answer) <= self.spec.number("short_answer"):
            end = begin + int(self.spec.number("short_answer_window"))
            return np.float32(self.rows.informative[row] and _stands(tokens, answer, begin, end))
        window = max(2 * len(answer), int(self.spec.number("answer_window")))
        _, which = _hits(
            answer, tokens[begin : begin + window], int(self.spec.number("answer_gram"))
        )
        return _share(self.rows.answer.text(row), which)

    def _passage(self, tokens: Int64s, item: int, question: int) -> np.float32:
        """O_p of the item's passage before the question's first token."""
        passage = self.rows.passages.text(item)
        end = question - 1
        begin = max(0, end - max(2 * len(passage), int(self.spec.number("passage_window"))))
        if not len(passage) or end <= begin:
            return np.float32(0)
        places, which = _hits(passage, tokens[begin:end], int(self.spec.number("passage_gram")))
        # Read leftwards: misses before the first gram are free, later ones end it.
        broken = np.flatnonzero(np.diff(places) - 1 > self.spec.number("passage_misses"))
        return _share(
            self.rows.passage.text(item), which[broken[-1] + 1 :] if len(broken) else which
        )


def _hits(text: Int64s, window: Int64s, n: int) -> tuple[Int32s, Int32s]:
    """Where grams of the text stand in the window, and which of its different ones."""
    table = new_gram_table(len(text))
    numbered(Texts(text, np.array([0, len(text)])), n, np.zeros(1, np.int64), table)
    return find_grams(window, n, table)


def _share(idf: Float64s, which: Int32s) -> np.float32:
    """The share of the rarity of all grams that these hold; 0 where none is rare."""
    total = idf.sum()
    there = np.zeros(len(idf), np.bool_)
    there[which] = True
    return np.float32(idf[there].sum() / total if total > 0 else 0)


def _stands(tokens: Int64s, answer: Int64s, begin: int, end: int) -> bool:
    """Whether the answer stands there whole, begun in tokens[begin:end]."""
    end = min(end, len(tokens) - len(answer) + 1)
    if end <= begin:
        return False
    found = np.ones(end - begin, np.bool_)
    for step, token in enumerate(answer):
        found &= tokens[begin + step : end + step] == token
    return bool(found.any())
