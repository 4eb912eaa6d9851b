"""Index a benchmark as decon does: which rows it takes, their grams and rarities.

A row is a question with one answer: an item with options is as many rows. Rarity is counted over
the rows of one benchmark, as if decon were given that benchmark alone, or over all of a run.

The formulas of decon 0.3.0 (weights, gates, ramp and confidence) are one function each. They take
and return arrays (or numbers) element by element, in 32-bit numbers and in decon's order of
operations: a score that must be exactly 1 misses it where decon's does. O_q, O_a and O_p are the
idf-weighted shares, 0..1, of a question's, answer's and passage's grams that were found.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.benchmark.item_table import ItemTable
from contam.kernels.decon import GramTable, count_words, new_gram_table, number_grams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from contam.benchmark.items import BenchItem
    from contam.detect.model import Bools, Float32s, Float64s, Int32s, Int64s
    from contam.detect.policies.decon_tokens import FileTokens, PieceTokens, Texts
    from contam.detect.policies.policy_spec import PolicySpec


#: Over which rows a gram is rare.
BENCHMARK: Final = "benchmark"
RUN: Final = "run"
#: Rarities that add up to no more than this add up to nothing.
_ROUNDING: Final = 1e-5
_FULL_QUESTION_GRAMS: Final = np.float32(20)
_FULL_ANSWER_TOKENS: Final = np.float32(4)
_ONE: Final = np.float32(1)
_HALF: Final = np.float32(0.5)
#: Of a question with answer and passage, with an answer alone, and with a passage alone.
_QAP: Final = (np.float32(0.7), np.float32(0.2), np.float32(0.1))
_QA: Final = (np.float32(0.75), np.float32(0.25))
_QP: Final = (np.float32(0.85), np.float32(0.15))


class Weights(NamedTuple):
    """How much each part counts in the base score; they add up to 1 where any part is found."""

    question: Float32s
    answer: Float32s
    passage: Float32s


def _single(value: ArrayLike) -> Float32s:
    return np.asarray(value, np.float32)


def ramp(length: ArrayLike, value: ArrayLike, *, start: float, end: float) -> Float32s:
    """What a text of this many tokens must reach: 1 up to `start`, `value` from `end`, linear."""
    tokens, goal = _single(length), _single(value)
    way = (tokens - _single(start)) / _single(end - start)
    between = _ONE - (_ONE - goal) * way
    return np.where(tokens <= start, _ONE, np.where(tokens >= end, goal, between))


def early_gate(threshold: float) -> Float32s:
    """The least O_q that is looked at: with no more, even answer and passage could not help."""
    question, answer, passage = _QAP
    gate: Float32s = np.maximum(
        np.float32(0), (np.float32(threshold) - (answer + passage)) / question
    )
    return gate


def question_confidence(n_distinct_grams: ArrayLike) -> Float32s:
    """0.5 for a question without grams, rising to 1 at 20 different ones."""
    grams = _single(n_distinct_grams)
    confidence: Float32s = np.minimum(_ONE, _HALF + grams / _FULL_QUESTION_GRAMS * _HALF)
    return confidence


def answer_confidence(n_distinct_tokens: ArrayLike) -> Float32s:
    """0.5 for an empty answer, rising to 1 at 4 different tokens."""
    tokens = _single(n_distinct_tokens)
    confidence: Float32s = np.minimum(_ONE, _HALF + tokens / _FULL_ANSWER_TOKENS * _HALF)
    return confidence


def weights(
    has_answer: ArrayLike, has_passage: ArrayLike, c_question: ArrayLike, c_answer: ArrayLike
) -> Weights:
    """Weights by what an item has; what a low confidence frees goes to the other parts."""
    answer, passage = np.broadcast_arrays(
        np.asarray(has_answer, np.bool_), np.asarray(has_passage, np.bool_)
    )
    c_q, c_a = _single(c_question), _single(c_answer)
    freed = _QAP[0] * (_ONE - c_q)
    answer_share = _QAP[1] + freed * _HALF
    passage_share = _QAP[2] + freed * _HALF
    kinds = [answer & passage, answer & ~passage, ~answer & passage]
    zero = np.zeros_like(c_q)
    return Weights(
        question=np.select(kinds, [_QAP[0] * c_q, _QA[0] * c_q, _QP[0] * c_q], _ONE),
        answer=np.select(
            kinds, [answer_share * c_a, _QA[1] + _QA[0] * (_ONE - c_q), zero], np.float32(0)
        ),
        passage=np.select(
            kinds,
            [passage_share + answer_share * (_ONE - c_a), zero, _QP[1] + _QP[0] * (_ONE - c_q)],
            np.float32(0),
        ),
    )


def base_score(weight: Weights, o_q: ArrayLike, o_a: ArrayLike, o_p: ArrayLike) -> Float32s:
    """The weighted sum, at most 1; a part that exists but was not found counts 0 at its weight."""
    total = (
        _single(o_q) * weight.question
        + _single(o_a) * weight.answer
        + _single(o_p) * weight.passage
    )
    capped: Float32s = np.minimum(_ONE, total)
    return capped


def scaled_score(base: ArrayLike, threshold: float, needed: ArrayLike) -> Float32s:
    """The reported score: shrunk for short items so that it passes `threshold` at `needed`.

    A base of exactly 1 stays 1 however short the item is.
    """
    raw, least = _single(base), np.float32(threshold)
    shrink = np.minimum(_ONE, least / np.maximum(_single(needed), least))
    return np.where(raw == _ONE, _ONE, raw * shrink)


@dataclass(frozen=True, slots=True, eq=False)
class TextGrams:
    """The different grams of m texts, each text's as they come in it.

    idf     float64[k], how rare each is
    start   int64[m + 1], where each text's begin;  total  float64[m], sums of idf
    n_different  of all texts
    """

    idf: Float64s
    start: Int64s
    total: Float64s
    n_different: int

    def text(self, at: int) -> Float64s:
        """The rarities of one text's grams."""
        return self.idf[self.start[at] : self.start[at + 1]]


def numbered(
    texts: Texts, n: int, group: Int64s, table: GramTable | None = None
) -> tuple[Int32s, Int64s, int]:
    """Numbers of the different grams of m texts, int32[k], int64[m + 1] where each one's begin.

    group  int64[m]: equal grams of different groups have different numbers, unless it is 0
    table  takes them up;  the third result is how many there are
    """
    start = np.empty(len(group) + 1, np.int64)
    if table is None:
        table = new_gram_table(int(texts.start[-1] - texts.start[0]))
    numbers, n_different = number_grams(texts.tokens, texts.start, n, group, table, start)
    return numbers, start, n_different


def text_grams(texts: Texts, n: int, counted: Int64s, group: Int64s) -> TextGrams:
    """The grams of n tokens of m texts.

    counted  int64[m], rows that have the text;  group  int64[m], the benchmark of each
    """
    numbers, start, n_different = numbered(texts, n, group)
    owner = np.repeat(np.arange(len(group)), np.diff(start))
    rows = np.bincount(numbers, weights=counted[owner], minlength=1)[numbers]
    # A text that no row counts has no rarity; nothing is ever asked of it.
    idf = np.log(np.maximum(_all_rows(counted, group)[owner], 1) / np.maximum(rows, 1))
    return TextGrams(idf, start, _sums(idf, owner, len(group)), n_different)


def _all_rows(counted: Int64s, group: Int64s) -> Float64s:
    """The rows of each text's benchmark."""
    of_group: Float64s = np.bincount(group, weights=counted, minlength=1).astype(np.float64)
    return of_group[group]


def _sums(values: Float64s, owner: Int64s, n_owners: int) -> Float64s:
    return np.bincount(owner, weights=values, minlength=n_owners).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeconRows:
    """The items as decon knows them: n items, r rows.

    questions, passages, answers  the texts of n items, of n and of r rows
    question, passage, answer     their grams
    n_answer     tokens, int64[r]
    informative  bool[r], a short answer has a token that is not everywhere
    item         int64[r], the item of each row;  first  int64[n + 1], where an item's rows begin
    taken        bool[r], decon indexes the row
    findable     bool[n], there is such a row, and its question can be found
    most_tokens, most_words  int64[n], tokens that are no space and different words of the item's
                 fullest row; of words no more are counted than decon asks tokens
    weight       Weights of each row;  gate  float32[n];  needed  float32[r]
    """

    questions: Texts
    passages: Texts
    answers: Texts
    question: TextGrams
    passage: TextGrams
    answer: TextGrams
    n_answer: Int64s
    informative: Bools
    item: Int64s
    first: Int64s
    taken: Bools
    findable: Bools
    most_tokens: Int64s
    most_words: Int64s
    weight: Weights
    gate: Float32s
    needed: Float32s


def answers_of(
    choices: Sequence[str], answer: str | None, index: int | None, parts: Sequence[str]
) -> list[str]:
    """The answers of an item's rows: its options, else its answer; one row without, if neither.

    index  of the right one among the choices, if that is known
    """
    options = list(choices) if "choices" in parts else []
    if "answer" in parts and answer and (not options or index is None) and answer not in options:
        options.append(answer)
    return options or [""]


def read_rows(
    items: Sequence[BenchItem], spec: PolicySpec, tokens: FileTokens | PieceTokens
) -> DeconRows:
    """Rows, grams and rarities of all items."""
    table, n = ItemTable.of(items), len(items)
    benchmarks, asked = table.column("benchmark"), table.column("question")
    passages = [passage or "" for passage in table.column("passage")]
    choices, stated, right = map(table.column, ("choices", "answer", "answer_index"))
    options = [answers_of(*one, spec.parts) for one in zip(choices, stated, right, strict=True)]
    item_of = np.repeat(np.arange(n), [len(some) for some in options])
    answers = [answer for some in options for answer in some]
    read = passages if "passage" in spec.parts else [""] * n
    texts, words = tokens.of_items([*asked, *read, *answers])
    question, passage, answer = (
        texts.some(0, n),
        texts.some(n, 2 * n),
        texts.some(2 * n, len(texts.start)),
    )
    # A row's texts, by number.
    of_row = np.stack([item_of, n + item_of, 2 * n + np.arange(len(item_of))], axis=1)

    least, least_words = int(spec.number("least_tokens")), int(spec.number("least_distinct"))
    solid = np.concatenate([[0], np.cumsum(texts.tokens != tokens.space)])[texts.start]
    n_solid = np.diff(solid)[of_row].sum(axis=1)
    n_words = count_words(
        words.tokens.view(np.uint64), words.start, of_row, max(least, least_words)
    )
    taken = (n_solid >= least) & (n_words >= least_words) & (question.lengths[item_of] > 0)
    own_row = _first_of_their_kind(benchmarks, list(map(add, passages, asked)), options, taken)
    rows_of = np.bincount(item_of, weights=own_row, minlength=n).astype(np.int64)

    within_run = spec.parameter("rarity_within") == RUN
    group = _groups([""] * n if within_run else benchmarks)
    question_grams = text_grams(question, spec.n, rows_of, group)
    threshold = spec.threshold("contaminated")
    start, end = spec.number("ramp_start"), spec.number("ramp_end")
    informative, different = _tokens_of_answers(
        texts,
        np.concatenate([rows_of, rows_of, own_row]),
        np.concatenate([group, group, group[item_of]]),
        2 * n,
    )
    return DeconRows(
        questions=question,
        passages=passage,
        answers=answer,
        question=question_grams,
        passage=text_grams(passage, int(spec.number("passage_gram")), rows_of, group),
        answer=text_grams(answer, int(spec.number("answer_gram")), own_row, group[item_of]),
        n_answer=answer.lengths,
        informative=informative,
        item=item_of,
        first=np.searchsorted(item_of, np.arange(n + 1)).astype(np.int64),
        taken=taken,
        findable=(np.bincount(item_of[taken], minlength=n) > 0) & (question_grams.total > 0),
        most_tokens=_most(n_solid, item_of, n),
        most_words=_most(n_words, item_of, n),
        weight=weights(
            answer.lengths > 0,
            passage.lengths[item_of] > 0,
            question_confidence(np.diff(question_grams.start)[item_of]),
            answer_confidence(different),
        ),
        gate=ramp(question.lengths, early_gate(threshold), start=start, end=end),
        needed=ramp(
            (question.lengths + passage.lengths)[item_of] + different,
            threshold,
            start=start,
            end=end,
        ),
    )


def _groups(names: Sequence[str]) -> Int64s:
    """A number from 0 for each name, int64[n]; equal names have equal ones."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)


def _most(values: Int64s, item_of: Int64s, n_items: int) -> Int64s:
    most = np.zeros(n_items, np.int64)
    np.maximum.at(most, item_of, values)
    return most


def _first_of_their_kind(
    benchmarks: Sequence[str], texts: Sequence[str], options: Sequence[Sequence[str]], taken: Bools
) -> Int64s:
    """1 for rows taken that have no copy before them, else 0: int64[r].

    The texts of a row are compared end to end;  texts  passage and question of each item
    """
    seen: set[tuple[str, str]] = set()
    is_taken = iter(taken.tolist())
    first = []
    for benchmark, text, answers in zip(benchmarks, texts, options, strict=True):
        for answer in answers:
            key = (benchmark, text + answer)
            is_first = next(is_taken) and key not in seen
            first.append(is_first)
            if is_first:
                seen.add(key)
    return np.array(first, np.int64)


def _tokens_of_answers(
    texts: Texts, counted: Int64s, group: Int64s, first: int
) -> tuple[Bools, Int64s]:
    """Whether the rarities of an answer's different tokens add up to more than 0, and their number.

    A token's rarity is counted over fields, so one in most of a benchmark's fields is below 0.

    counted, group  int64[m], as `text_grams` takes them, of all texts;  first  the first answer
    """
    fields = text_grams(texts, 1, counted, group)
    different = np.diff(fields.start)[first:]
    # Every row has three fields.
    return fields.total[first:] - different * np.log(3.0) > _ROUNDING, different
