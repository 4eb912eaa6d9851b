"""The arithmetic of decon 0.3.0: weights, gates, ramp and confidence, one function each.

All take and return arrays (or numbers) element by element. O_q, O_a and O_p are the idf-weighted
shares, 0..1, of a question's, answer's and passage's grams that one document holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from contam.detect.model import Float64s

_FULL_QUESTION_GRAMS = 20
_FULL_ANSWER_TOKENS = 4


class Weights(NamedTuple):
    """How much each part counts in the base score; they add up to 1 where any part is found."""

    question: Float64s
    answer: Float64s
    passage: Float64s


def ramp(length: ArrayLike, value: ArrayLike, *, start: float, end: float) -> Float64s:
    """What a text of this many tokens must reach: 1 up to `start`, `value` from `end`, linear."""
    tokens = np.asarray(length, np.float64)
    goal = np.asarray(value, np.float64)
    way = np.clip((tokens - start) / (end - start), 0.0, 1.0)
    return 1.0 - (1.0 - goal) * way


def early_gate(threshold: float) -> float:
    """The least O_q that is looked at: with no more, even answer and passage could not help."""
    return max(0.0, (threshold - 0.3) / 0.7)


def question_confidence(n_distinct_grams: ArrayLike) -> Float64s:
    """0.5 for a question without grams, rising to 1 at 20 different ones."""
    grams = np.asarray(n_distinct_grams, np.float64)
    return np.minimum(1.0, 0.5 + 0.5 * grams / _FULL_QUESTION_GRAMS)


def answer_confidence(n_distinct_tokens: ArrayLike) -> Float64s:
    """0.5 for an empty answer, rising to 1 at 4 different tokens."""
    tokens = np.asarray(n_distinct_tokens, np.float64)
    return np.minimum(1.0, 0.5 + 0.5 * tokens / _FULL_ANSWER_TOKENS)


def weights(
    has_answer: ArrayLike, has_passage: ArrayLike, c_question: ArrayLike, c_answer: ArrayLike
) -> Weights:
    """Weights by what an item has; what a low confidence frees goes to the other parts."""
    answer, passage = np.broadcast_arrays(
        np.asarray(has_answer, np.bool_), np.asarray(has_passage, np.bool_)
    )
    c_q, c_a = np.asarray(c_question, np.float64), np.asarray(c_answer, np.float64)
    freed = 0.7 * (1.0 - c_q)
    answer_share = 0.2 + freed / 2
    kinds = [answer & passage, answer & ~passage, ~answer & passage]
    zero = np.zeros_like(c_q)
    return Weights(
        question=np.select(kinds, [0.7 * c_q, 0.75 * c_q, 0.85 * c_q], 1.0),
        answer=np.select(kinds, [answer_share * c_a, 0.25 + 0.75 * (1.0 - c_q), zero], 0.0),
        passage=np.select(
            kinds,
            [0.1 + freed / 2 + answer_share * (1.0 - c_a), zero, 0.15 + 0.85 * (1.0 - c_q)],
            0.0,
        ),
    )


def base_score(weight: Weights, o_q: ArrayLike, o_a: ArrayLike, o_p: ArrayLike) -> Float64s:
    """The weighted sum, at most 1; a part that exists but was not found counts 0 at its weight."""
    total = (
        weight.question * np.asarray(o_q, np.float64)
        + weight.answer * np.asarray(o_a, np.float64)
        + weight.passage * np.asarray(o_p, np.float64)
    )
    return np.minimum(1.0, total)


def scaled_score(base: ArrayLike, threshold: float, needed: ArrayLike) -> Float64s:
    """The reported score: shrunk for short items so that it passes `threshold` at `needed`.

    A base of exactly 1 stays 1 however short the item is.
    """
    raw = np.asarray(base, np.float64)
    shrink = np.minimum(1.0, threshold / np.maximum(needed, threshold))
    return np.where(raw == 1.0, 1.0, raw * shrink)
