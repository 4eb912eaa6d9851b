"""Index a benchmark as decon does: which rows it takes, their grams and rarities.

A row is a question with one answer: an item with options is as many rows. Rarity is counted over
the rows of one benchmark, as if decon were given that benchmark alone, or over all of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from contam.detect.policies import decon_formulas as formulas
from contam.detect.policies.decon_tokens import clean
from contam.detect.policies.segments import mixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.benchmark.items import BenchItem
    from contam.detect.model import Bools, Float32s, Float64s, Int64s, Uint64s
    from contam.detect.policies.decon_tokens import FileTokens, PieceTokens
    from contam.detect.policies.policy_spec import PolicySpec

#: Over which rows a gram is rare.
BENCHMARK: Final = "benchmark"
RUN: Final = "run"
#: Texts whose grams are sorted together.
_AT_ONCE: Final = 1 << 12
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


def gram_keys(tokens: Int64s, n: int) -> Uint64s:
    """uint64[tokens - n + 1]: a hash of every n tokens in a row."""
    n_grams = max(len(tokens) - n + 1, 0)
    keys = np.full(n_grams, n, np.uint64)
    values = tokens.astype(np.uint64)
    for step in range(n if n_grams else 0):
        keys = mixed(keys + values[step : step + n_grams] + _ODD)
    return keys


#: Rarities that add up to nothing may add up to this much, in one order and not in another.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class TextGrams:
    """The different grams of m texts, one text's behind the other's.

    key, idf  uint64[k], ascending within a text, and float64[k], how rare each is
    start     int64[m + 1], where each text's begin;  total  float64[m], sums of idf
    """

    key: Uint64s
    idf: Float64s
    start: Int64s
    total: Float64s

    @classmethod
    def of(cls, texts: Sequence[Int64s], n: int, counted: Int64s, group: Int64s) -> Self:
        """The grams of n tokens of these texts.

        counted  int64[m], rows that have the text;  group  int64[m], the benchmark of each
        """
        owner, key = _different(texts, n)
        owned = mixed(key + group[owner].astype(np.uint64) * _ODD)
        _, number = np.unique(owned, return_inverse=True)
        rows = _by_group(counted[owner], number)
        all_rows = _by_group(counted, group)[owner]
        # A text that no row counts has no rarity; nothing is ever asked of it.
        idf = np.log(np.maximum(all_rows, 1) / np.maximum(rows, 1))
        start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(texts)))])
        return cls(key, idf, start.astype(np.int64), _sums(idf, owner, len(texts)))

    def text(self, at: int) -> tuple[Uint64s, Float64s]:
        """Keys and rarities of one text."""
        mine = slice(self.start[at], self.start[at + 1])
        return self.key[mine], self.idf[mine]


def _different(texts: Sequence[Int64s], n: int) -> tuple[Int64s, Uint64s]:
    """The owner of each different gram, and the gram; both ascend."""
    owners, keys = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for begin in range(0, len(texts), _AT_ONCE):
        some = texts[begin : begin + _AT_ONCE]
        key = gram_keys(np.concatenate(some), n)
        token_owner = np.repeat(np.arange(len(some)), _lengths(some))
        owner = token_owner[: len(key)]
        within = owner == token_owner[n - 1 :]
        owner, key = owner[within], key[within]
        order = np.lexsort((key, owner))
        owner, key = owner[order], key[order]
        fresh = np.ones(len(key), np.bool_)
        fresh[1:] = (key[1:] != key[:-1]) | (owner[1:] != owner[:-1])
        owners.append(owner[fresh] + begin)
        keys.append(key[fresh])
    return np.concatenate(owners), np.concatenate(keys)


def _by_group(values: Int64s, group: Int64s) -> Int64s:
    """The sum of the values of each one's group, int64[n]."""
    total = np.bincount(group, weights=values, minlength=1)
    of_each: Int64s = total[group].astype(np.int64)
    return of_each


def _sums(values: Float64s, owner: Int64s, n_owners: int) -> Float64s:
    return np.bincount(owner, weights=values, minlength=n_owners).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeconRows:
    """The items as decon knows them: n items, r rows.

    question, passage  Grams of n texts each;  answer  of r
    n_question, n_passage, n_answer  tokens, int64[n], int64[n] and int64[r]
    answers      the tokens of each row's answer
    informative  bool[r], a short answer has a token that is not everywhere
    item         int64[r], the item of each row;  first  int64[n + 1], where an item's rows begin
    taken        bool[r], decon indexes the row
    findable     bool[n], there is such a row, and its question can be found
    most_tokens, most_words  int64[n], tokens that are no space and different words of the item's
                 fullest row
    weight       Weights of each row;  gate  float32[n];  needed  float32[r]
    """

    question: TextGrams
    passage: TextGrams
    answer: TextGrams
    n_question: Int64s
    n_passage: Int64s
    n_answer: Int64s
    answers: list[Int64s]
    informative: Bools
    item: Int64s
    first: Int64s
    taken: Bools
    findable: Bools
    most_tokens: Int64s
    most_words: Int64s
    weight: formulas.Weights
    gate: Float32s
    needed: Float32s


def answers_of(item: BenchItem, parts: Sequence[str]) -> list[str]:
    """The answers of an item's rows: its options, else its answer; one row without, if neither."""
    options = list(item.choices) if "choices" in parts else []
    if (
        "answer" in parts
        and item.answer
        and (not options or item.answer_index is None)
        and item.answer not in options
    ):
        options.append(item.answer)
    return options or [""]


def read_rows(
    items: Sequence[BenchItem], spec: PolicySpec, tokens: FileTokens | PieceTokens
) -> DeconRows:
    """Rows, grams and rarities of all items."""
    passages: list[str] = []
    questions: list[str] = []
    benchmarks: list[str] = []
    owner: list[int] = []
    cleaned: list[str] = []
    raw: list[tuple[str, str, str, str]] = []
    for at, item in enumerate(items):
        passages.append(clean(item.passage or "") if "passage" in spec.parts else "")
        questions.append(clean(item.question))
        benchmarks.append(item.benchmark)
        for answer in answers_of(item, spec.parts):
            owner.append(at)
            cleaned.append(clean(answer))
            raw.append((item.benchmark, item.passage or "", item.question, answer))
    question, passage = tokens.of_items(questions), tokens.of_items(passages)
    n_question, n_passage = _lengths(question), _lengths(passage)
    group = _groups(benchmarks, str(spec.parameter("rarity_within")))
    item_of = np.array(owner, np.int64)
    answer_tokens = tokens.of_items(cleaned)
    n_answer = _lengths(answer_tokens)

    solid = [_solid(part, tokens.space) for part in (question, passage, answer_tokens)]
    n_solid = (solid[0] + solid[1])[item_of] + solid[2]
    words = [{*q.split(), *p.split()} for q, p in zip(questions, passages, strict=True)]
    n_words = np.array(
        [
            len(words[at]) + len(set(answer.split()) - words[at])
            for at, answer in zip(owner, cleaned, strict=True)
        ],
        np.int64,
    )
    taken = (n_solid >= spec.number("least_tokens")) & (n_words >= spec.number("least_distinct"))
    taken &= n_question[item_of] > 0
    counted = taken & _first_of_its_kind(raw, taken)
    rows_of = np.bincount(item_of[counted], minlength=len(items)).astype(np.int64)

    own_row = counted.astype(np.int64)
    question_grams = TextGrams.of(question, spec.n, rows_of, group)
    threshold = spec.threshold("contaminated")
    start, end = spec.number("ramp_start"), spec.number("ramp_end")
    different = _different_tokens(answer_tokens)
    n_grams = np.diff(question_grams.start)
    return DeconRows(
        question=question_grams,
        passage=TextGrams.of(passage, int(spec.number("passage_gram")), rows_of, group),
        answer=TextGrams.of(
            answer_tokens, int(spec.number("answer_gram")), own_row, group[item_of]
        ),
        n_question=n_question,
        n_passage=n_passage,
        n_answer=n_answer,
        answers=answer_tokens,
        informative=_informative(
            (question, passage, answer_tokens), (rows_of, own_row), (group, group[item_of])
        ),
        item=item_of,
        first=np.searchsorted(item_of, np.arange(len(items) + 1)).astype(np.int64),
        taken=taken,
        findable=(np.bincount(item_of[taken], minlength=len(items)) > 0)
        & (question_grams.total > 0),
        most_tokens=_most(n_solid, item_of, len(items)),
        most_words=_most(n_words, item_of, len(items)),
        weight=formulas.weights(
            n_answer > 0,
            n_passage[item_of] > 0,
            formulas.question_confidence(n_grams[item_of]),
            formulas.answer_confidence(different),
        ),
        gate=formulas.ramp(n_question, formulas.early_gate(threshold), start=start, end=end),
        needed=formulas.ramp(
            n_question[item_of] + different + n_passage[item_of], threshold, start=start, end=end
        ),
    )


def _groups(benchmarks: Sequence[str], within: str) -> Int64s:
    """Which items are counted together, int64[n]; benchmarks  of each."""
    if within == RUN:
        return np.zeros(len(benchmarks), np.int64)
    return np.unique(np.array(benchmarks), return_inverse=True)[1].astype(np.int64)


def _lengths(texts: Sequence[Int64s]) -> Int64s:
    return np.array([len(tokens) for tokens in texts], np.int64)


def _solid(texts: Sequence[Int64s], space: int) -> Int64s:
    """Tokens of each text that are no space."""
    return np.array([np.count_nonzero(tokens != space) for tokens in texts], np.int64)


def _different_tokens(texts: Sequence[Int64s]) -> Int64s:
    return np.bincount(_different(texts, 1)[0], minlength=len(texts)).astype(np.int64)


def _most(values: Int64s, item_of: Int64s, n_items: int) -> Int64s:
    most = np.zeros(n_items, np.int64)
    np.maximum.at(most, item_of, values)
    return most


def _first_of_its_kind(raw: Sequence[tuple[str, str, str, str]], taken: Bools) -> Bools:
    """Which rows have no copy before them: the texts of a row are compared end to end."""
    seen: set[tuple[str, str]] = set()
    first = np.zeros(len(raw), np.bool_)
    for at, (benchmark, *texts) in enumerate(raw):
        key = (benchmark, "".join(texts))
        first[at] = taken[at] and key not in seen
        if taken[at]:
            seen.add(key)
    return first


def _informative(
    texts: tuple[list[Int64s], list[Int64s], list[Int64s]],
    counts: tuple[Int64s, Int64s],
    groups: tuple[Int64s, Int64s],
) -> Bools:
    """Whether the rarities of an answer's different tokens add up to more than 0, for each row.

    A token's rarity is counted over fields, so one in most of a benchmark's fields is below 0.
    """
    keys, weights = [], []
    for part, (counted, group) in zip(
        texts, zip((counts[0], *counts), (groups[0], *groups), strict=True), strict=True
    ):
        owner, key = _different(part, 1)
        keys.append(mixed(key + group[owner].astype(np.uint64) * _ODD))
        weights.append(counted[owner])
    known, number = np.unique(np.concatenate(keys), return_inverse=True)
    fields = np.bincount(number, weights=np.concatenate(weights), minlength=len(known))
    owner, _ = _different(texts[2], 1)
    mine = number[len(number) - len(owner) :]
    all_rows = _by_group(counts[1], groups[1])[owner]
    idf: Float64s = np.log(np.maximum(all_rows, 1) / np.maximum(fields[mine], 1))
    return _sums(idf, owner, len(texts[2])) > _ROUNDING
