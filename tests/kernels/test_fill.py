"""Alignment of a stretch: sound, and worth as much as the best there is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import constants, fill
from tests.kernels.support import FEW, frozen, u64s
from tests.twins import stretch

COSTS = (float(constants.SKIP_ITEM), float(constants.SKIP_DOC))
GUARD = -7
AROUND = 9  # a token that no text of FEW holds

sides = st.lists(FEW, max_size=9)
shares = st.sampled_from((0.0, 0.03, 0.1, 0.25, 0.6, 1.0))


def aligned(
    a: list[int], weights: list[float], b: list[int], mode: int, margin: int = 2
) -> list[tuple[int, int]]:
    """Matched (item, document) tokens of two stretches inside longer texts, from their beginnings."""
    fence = [AROUND] * margin
    item = (
        u64s(fence + a + fence),
        frozen([1.0] * margin + weights + [1.0] * margin, np.float32),
        margin,
        len(a),
    )
    doc = (u64s(fence + b + fence), margin, len(b))
    scratch = fill.new_fill_scratch()
    matched = scratch.matched
    matched[:] = GUARD
    n = fill.fill_stretch(item, doc, mode, scratch)
    assert (matched[n:] == GUARD).all()
    return [(x - margin, y - margin) for x, y in matched[:n].tolist()]


def is_sound(pairs: list[tuple[int, int]], a: list[int], b: list[int]) -> bool:
    rising = all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    return rising and set(pairs) <= set(stretch.equal_pairs(a, b))


@given(sides, sides, st.data())
@example([1], [1], None)
@example([], [1], None)
@example([2**64 - 1] * 4, [2**64 - 1] * 2, None)
def test_between_two_anchors_the_choice_is_worth_the_most(a, b, more):
    weights = (
        more.draw(st.lists(shares, min_size=len(a), max_size=len(a))) if more else [1.0] * len(a)
    )
    pairs = aligned(a, weights, b, 0)
    assert is_sound(pairs, a, b)
    worth = stretch.worth(pairs, weights, (len(a), len(b)), COSTS)
    assert worth == pytest.approx(stretch.best_worth(a, weights, b, COSTS, True), abs=1e-4)


#: Mostly different tokens, so that most of a long stretch leads nowhere and is left out.
MANY = st.integers(2**63 - 12, 2**63 + 12).map(lambda n: (n * 0x9E3779B97F4A7C15) % 2**64)
STRETCHES = st.tuples(sides, sides) | st.tuples(
    st.lists(MANY, max_size=15), st.lists(MANY, max_size=70)
)


@pytest.mark.parametrize("mode", [1, -1])
@given(texts=STRETCHES, more=st.data())
def test_beside_one_anchor_the_choice_is_worth_the_most(mode, texts, more):
    a, b = texts
    weights = more.draw(st.lists(shares, min_size=len(a), max_size=len(a)))
    pairs = aligned(a, weights, b, mode)
    assert is_sound(pairs, a, b)
    if mode < 0:  # the twin reads from the anchor on
        a, b, weights = a[::-1], b[::-1], weights[::-1]
        pairs = [(len(a) - 1 - i, len(b) - 1 - j) for i, j in reversed(pairs)]
    ends = (pairs[-1][0] + 1, pairs[-1][1] + 1) if pairs else (0, 0)
    worth = stretch.worth(pairs, weights, ends, COSTS)
    assert worth == pytest.approx(stretch.best_worth(a, weights, b, COSTS, False), abs=1e-4)


@pytest.mark.parametrize("step", [1, -1])
@given(inside=st.lists(MANY, max_size=40), others=st.lists(MANY, max_size=40))
def test_of_the_tokens_that_were_entered_every_one_is_known_and_no_other(step, inside, others):
    scratch = fill.new_fill_scratch()
    words = u64s([AROUND, *inside, AROUND])
    origin = 0 if step > 0 else len(inside) + 1
    fill.index_words(words, origin, step, len(inside), scratch)
    asked = [*inside, *others, AROUND]
    known = [fill.is_indexed(words, origin, step, np.uint64(one), scratch) for one in asked]
    assert known == [one in inside for one in asked]


@pytest.mark.parametrize("mode", [1, -1])
def test_of_too_long_a_stretch_the_part_at_the_anchor_is_aligned(mode):
    n_item, n_doc = constants.MOST_ITEM + 5, constants.MOST_DOC + 5
    a, b = list(range(100, 100 + n_item)), [AROUND] * n_doc
    near = (0, 0) if mode > 0 else (n_item - 1, n_doc - 1)
    far = (n_item - 1, n_doc - 1) if mode > 0 else (0, 0)
    for i, j in (near, far):
        b[j] = a[i]
    assert aligned(a, [1.0] * n_item, b, mode) == [near]
