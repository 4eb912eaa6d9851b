"""Score one document against an item as decon does: clusters, and what stands near.

A cluster begins at a gram of the question and reaches to both sides until too many grams in a row
are none of it. Answers are looked for behind a cluster, the passage before it, each in a window.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.detect.policies import decon_formulas as formulas
from contam.detect.policies.decon_rows import gram_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.detect.model import Bools, Float32s, Float64s, Int64s, Uint64s
    from contam.detect.policies.decon_rows import DeconRows, TextGrams
    from contam.detect.policies.policy_spec import PolicySpec


#: Grams of questions are told from others by so many bits first.
_HEAD_BITS: Final = 24
_BELOW_HEAD: Final = np.uint64(64 - _HEAD_BITS)
#: Shares that are added up in another order may differ by as much.
_ROUNDING: Final = 1e-5


class Cluster(NamedTuple):
    """Where a question stands in a document.

    first, last  the outermost of its grams, numbered by their first token
    grams        which of the question's different grams stand there
    """

    first: int
    last: int
    grams: frozenset[int]


def clusters(
    positions: list[int], grams: list[int], n_grams: int, most_misses: int
) -> Iterator[Cluster]:
    """The clusters of one question, from left to right.

    positions, grams  where grams of the question stand, ascending, and which of them
    n_grams           grams of the document
    most_misses       grams in a row that end a cluster when none of them is new to it
    """
    at = after = 0
    while at < len(positions):
        if positions[at] < after:
            at += 1
            continue
        seen = {grams[at]}
        left, _ = _walk(positions, grams, (at, -1, -1), seen, most_misses)
        right, end = _walk(positions, grams, (at, 1, n_grams), seen, most_misses)
        yield Cluster(positions[left], positions[right], frozenset(seen))
        after = end + 1


def _walk(
    positions: list[int],
    grams: list[int],
    way: tuple[int, int, int],
    seen: set[int],
    most_misses: int,
) -> tuple[int, int]:
    """Follow a cluster to one side, noting its grams.

    way  (the seed's number, 1 or -1, the place behind the document's last gram on that side)

    Returns the number of the outermost place that belongs to it, and the last gram looked at.
    """
    seed, step, limit = way
    outermost = seed
    misses = 0
    place = positions[seed]
    following = seed + step
    while 0 <= following < len(positions):
        gap = abs(positions[following] - place) - 1
        if misses + gap >= most_misses:
            break
        misses += gap
        place = positions[following]
        if grams[following] not in seen:
            seen.add(grams[following])
            misses = 0
        outermost = following
        following += step
    end = place + step * (most_misses - misses)
    return outermost, min(end, limit - 1) if step > 0 else max(end, limit + 1)


@dataclass(eq=False)
class DeconDocument:
    """The tokens of a document, and its grams of every length that was asked for.

    place, number  where grams of questions stand, ascending, and which of them: see `Scorer`
    """

    tokens: Int64s
    place: Int64s
    number: Int64s
    _keys: dict[int, Uint64s] = field(default_factory=dict)

    def keys(self, n: int) -> Uint64s:
        """The hash of every n tokens in a row, by place."""
        if n not in self._keys:
            self._keys[n] = gram_keys(self.tokens, n)
        return self._keys[n]


class Scores(NamedTuple):
    """What a document holds of an item: score, O_q, O_a and O_p of the best row and place."""

    score: float
    question: float
    answer: float
    passage: float


NOTHING = Scores(0.0, 0.0, 0.0, 0.0)


class Scorer:
    """decon's rules over the rows of all items. Threads may share it.

    The different grams of all questions are numbered, in the order of their keys.
    """

    def __init__(self, spec: PolicySpec, rows: DeconRows) -> None:
        self.spec, self.rows = spec, rows
        self._grams, self._number = np.unique(rows.question.key, return_inverse=True)
        self._heads = np.zeros(1 << _HEAD_BITS, np.bool_)
        self._heads[self._grams >> _BELOW_HEAD] = True
        gate = formulas.early_gate(spec.threshold("contaminated"))
        self._gate = np.maximum(gate, rows.gate)

    def scores(self, tokens: Int64s, items: Sequence[int]) -> list[Scores]:
        """The best that a document of these tokens holds of each item."""
        n = self.spec.n
        found = [NOTHING] * len(items)
        if len(tokens) < 2 * n:
            return found
        keys = gram_keys(tokens, n)
        place = np.flatnonzero(self._heads[keys >> _BELOW_HEAD])
        number = np.searchsorted(self._grams, keys[place])
        known = number < len(self._grams)
        known[known] = self._grams[number[known]] == keys[place[known]]
        document = DeconDocument(tokens, place[known], number[known])
        for at in self._likely(document, np.array(items, np.int64)).tolist():
            found[at] = self._score(document, items[at])
        return found

    def _likely(self, document: DeconDocument, items: Int64s) -> Int64s:
        """The places of items so much of whose questions may stand there that decon goes on."""
        rows = self.rows.question
        first, length = rows.start[items], rows.start[items + 1] - rows.start[items]
        owner = np.repeat(np.arange(len(items)), length)
        gram = np.arange(len(owner)) + (first - np.cumsum(length) + length)[owner]
        there = np.isin(self._number[gram], document.number)
        weight = np.bincount(owner, weights=rows.idf[gram] * there, minlength=len(items))
        least = self._gate[items] * rows.total[items]
        likely: Int64s = np.flatnonzero(
            self.rows.findable[items] & (weight >= least * (1 - _ROUNDING))
        )
        return likely

    def _score(self, document: DeconDocument, item: int) -> Scores:
        """The best that the document holds of an item."""
        rows, n = self.rows, self.spec.n
        _, idf = rows.question.text(item)
        mine = self._number[rows.question.start[item] : rows.question.start[item + 1]]
        at = np.minimum(np.searchsorted(mine, document.number), len(mine) - 1)
        own = mine[at] == document.number
        places, which = document.place[own], at[own]
        there = np.zeros(len(idf), np.bool_)
        there[which] = True
        if not self._passes(idf, there, item):
            return NOTHING
        best = NOTHING
        n_grams = len(document.tokens) - n + 1
        misses = int(self.spec.number("question_misses"))
        for cluster in clusters(places.tolist(), which.tolist(), n_grams, misses):
            there[:] = False
            there[list(cluster.grams)] = True
            if self._passes(idf, there, item):
                scores = self._score_rows(document, item, cluster, _share(idf, there))
                best = max(best, scores, key=lambda found: found.score)
        return best

    def _passes(self, idf: Float64s, there: Bools, item: int) -> bool:
        """Whether so much of the question stands there that decon goes on."""
        return bool(_share(idf, there) >= self._gate[item])

    def _score_rows(
        self, document: DeconDocument, item: int, cluster: Cluster, o_q: np.float32
    ) -> Scores:
        rows = self.rows
        o_p = self._passage(document, item, cluster.first)
        end = cluster.last + self.spec.n - 1
        # Where grams of the question recur behind it, the answer may begin before the end.
        end -= max(0, end - cluster.first + 1 - int(rows.n_question[item]))
        mine = np.arange(rows.first[item], rows.first[item + 1])
        mine = mine[rows.taken[mine]]
        o_a = np.array([self._answer(document, row, end + 1) for row in mine], np.float32)
        weight = formulas.Weights(*(part[mine] for part in rows.weight))
        base = formulas.base_score(weight, o_q, o_a, o_p)
        score = formulas.scaled_score(base, self.spec.threshold("contaminated"), rows.needed[mine])
        best = int(score.argmax())
        return Scores(float(score[best]), float(o_q), float(o_a[best]), float(o_p))

    def _answer(self, document: DeconDocument, row: int, begin: int) -> np.float32:
        """O_a of a row's answer behind the question."""
        rows, length = self.rows, int(self.rows.n_answer[row])
        if length == 0:
            return np.float32(0)
        if length <= self.spec.number("short_answer"):
            end = begin + int(self.spec.number("short_answer_window"))
            found = rows.informative[row] and _stands(
                document.tokens, rows.answers[row], begin, end
            )
            return np.float32(found)
        window = max(2 * length, int(self.spec.number("answer_window")))
        n = int(self.spec.number("answer_gram"))
        end = min(begin + window, len(document.tokens))
        return _overlap(rows.answer, row, document.keys(n)[begin : max(end - n + 1, begin)])

    def _passage(self, document: DeconDocument, item: int, question: int) -> np.float32:
        """O_p of the item's passage before the question's first token."""
        length = int(self.rows.n_passage[item])
        n = int(self.spec.number("passage_gram"))
        end = question - 1
        begin = max(0, end - max(2 * length, int(self.spec.number("passage_window"))))
        keys, idf = self.rows.passage.text(item)
        total = self.rows.passage.total[item]
        if length == 0 or end - begin < n or total == 0:
            return np.float32(0)
        window = document.keys(n)[begin : end - n + 1][::-1]
        at = np.searchsorted(keys, window)
        known = at < len(keys)
        known[known] = keys[at[known]] == window[known]
        hits = np.flatnonzero(known)
        # Misses before the first gram of the passage are free; later ones end it.
        gaps = np.diff(hits) - 1
        broken = np.flatnonzero(gaps > self.spec.number("passage_misses"))
        hits = hits[: broken[0] + 1] if len(broken) else hits
        return np.float32(idf[np.unique(at[hits])].sum() / total)


def _share(idf: Float64s, there: Bools) -> np.float32:
    """The weight share of the grams that stand there; 1 where all do."""
    return np.float32(idf[there].sum() / idf.sum())


def _stands(tokens: Int64s, answer: Int64s, begin: int, end: int) -> bool:
    """Whether the answer stands there whole, begun in tokens[begin:end]."""
    end = min(end, len(tokens) - len(answer) + 1)
    if end <= begin:
        return False
    found = np.ones(end - begin, np.bool_)
    for step, token in enumerate(answer):
        found &= tokens[begin + step : end + step] == token
    return bool(found.any())


def _overlap(grams: TextGrams, row: int, window: Uint64s) -> np.float32:
    """The weight share of a text's grams that stand anywhere in the window."""
    keys, idf = grams.text(row)
    total = grams.total[row]
    if total == 0 or len(window) == 0:
        return np.float32(0)
    there = np.isin(keys, window)
    return np.float32(idf[there].sum() / idf.sum())


def as_scores(found: list[Scores]) -> Float32s:
    """float32[k, 4] of k scores."""
    return np.array(found, np.float32).reshape(-1, len(NOTHING))
