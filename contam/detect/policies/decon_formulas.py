"""The formulas of decon 0.3.0: weights, gates, ramp and confidence, one function each.

All take and return arrays (or numbers) element by element, in 32-bit numbers and in decon's order
of operations: a score that must be exactly 1 misses it where decon's does. O_q, O_a and O_p are
the idf-weighted shares, 0..1, of a question's, answer's and passage's grams that were found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from contam.detect.model import Float32s

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
    needed: Float32s = np.where(tokens <= start, _ONE, np.where(tokens >= end, goal, between))
    return needed


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
