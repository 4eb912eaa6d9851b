"""Score one document against an item as decon does: clusters, and what stands near.

A cluster begins at a gram of the question and reaches to both sides until too many grams in a row
are none of it. Answers are looked for behind a cluster, the passage before it, each in a window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.detect.policies import decon_formulas as formulas
from contam.detect.policies.decon_rows import numbered
from contam.detect.policies.decon_tokens import Texts
from contam.kernels.decon import Questions, find_clusters, find_grams, new_gram_table

if TYPE_CHECKING:
    from contam.detect.model import Float32s, Float64s, Int32s, Int64s
    from contam.detect.policies.decon_rows import DeconRows
    from contam.detect.policies.policy_spec import PolicySpec


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
