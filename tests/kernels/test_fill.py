"""Alignment of a stretch: sound, and worth as much as the best there is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import fill
from tests.kernels.support import FEW, frozen, u64s
from tests.twins import stretch

COSTS = (float(fill.SKIP_ITEM), float(fill.SKIP_DOC))
GUARD = -7
AROUND = 9  # a token that no text of FEW holds

sides = st.lists(FEW, max_size=9)
shares = st.sampled_from((0.0, 0.05, 0.25, 0.6, 1.0))


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


@pytest.mark.parametrize("mode", [1, -1])
@given(a=sides, b=sides, more=st.data())
def test_beside_one_anchor_the_choice_is_worth_the_most(mode, a, b, more):
    weights = more.draw(st.lists(shares, min_size=len(a), max_size=len(a)))
    pairs = aligned(a, weights, b, mode)
    assert is_sound(pairs, a, b)
    if mode < 0:  # the twin reads from the anchor on
        a, b, weights = a[::-1], b[::-1], weights[::-1]
        pairs = [(len(a) - 1 - i, len(b) - 1 - j) for i, j in reversed(pairs)]
    ends = (pairs[-1][0] + 1, pairs[-1][1] + 1) if pairs else (0, 0)
    worth = stretch.worth(pairs, weights, ends, COSTS)
    assert worth == pytest.approx(stretch.best_worth(a, weights, b, COSTS, False), abs=1e-4)


#: Mostly different tokens, so that most of a long stretch leads nowhere and is left out.
MANY = st.integers(2**63 - 12, 2**63 + 12).map(lambda n: (n * 0x9E3779B97F4A7C15) % 2**64)
WEIGHTS = (0.0, 0.03, 0.1, 0.6, 1.0)


@pytest.mark.parametrize("mode", [1, -1])
@given(
    a=st.lists(st.tuples(MANY, st.sampled_from(WEIGHTS)), max_size=15),
    b=st.lists(MANY, max_size=70),
)
def test_what_is_left_out_of_a_long_stretch_was_worth_no_more(mode, a, b):
    item, weights = [token for token, _ in a], [weight for _, weight in a]
    pairs = aligned(item, weights, b, mode)
    assert is_sound(pairs, item, b)
    if mode < 0:
        item, b, weights = item[::-1], b[::-1], weights[::-1]
        pairs = [(len(item) - 1 - i, len(b) - 1 - j) for i, j in reversed(pairs)]
    ends = (pairs[-1][0] + 1, pairs[-1][1] + 1) if pairs else (0, 0)
    worth = stretch.worth(pairs, weights, ends, COSTS)
    assert worth == pytest.approx(stretch.best_worth(item, weights, b, COSTS, False), abs=1e-4)


@given(st.lists(MANY, max_size=40), st.lists(MANY, max_size=40))
def test_a_set_of_marked_tokens_holds_every_one_of_them(inside, others):
    scratch = fill.new_fill_scratch()
    fill.mark_tokens(u64s([AROUND, *inside, AROUND]), 1, len(inside), scratch.seen)
    assert all(fill.may_hold(scratch.seen, np.uint64(token)) for token in inside)
    bits = {token >> 51 for token in inside}
    held = [token for token in others if fill.may_hold(scratch.seen, np.uint64(token))]
    assert held == [token for token in others if token >> 51 in bits]


@given(st.lists(st.tuples(FEW, shares), max_size=9), sides)
def test_nothing_that_follows_can_add_more_than_is_hoped_for(a, b):
    scratch = fill.new_fill_scratch()
    item, weights = [token for token, _ in a], [weight for _, weight in a]
    fill.mark_tokens(u64s(b), 0, len(b), scratch.seen)
    arrays = (u64s(item), frozen(weights, np.float32), 0, len(a))
    for mode in (1, -1):
        order = range(len(a)) if mode > 0 else range(len(a) - 1, -1, -1)
        shared = fill.hope_of_rows(arrays, mode, scratch.seen, scratch.rest)
        assert shared or not set(item) & set(b)
        gains = [weights[i] if item[i] in b else -COSTS[0] for i in order]
        for x in range(len(a) + 1):
            sums = [sum(gains[x:end]) for end in range(x, len(a) + 1)]
            assert scratch.rest[x] > max(sums)


@pytest.mark.parametrize("mode", [1, -1])
def test_of_too_long_a_stretch_the_part_at_the_anchor_is_aligned(mode):
    n_item, n_doc = fill.MOST_ITEM + 5, fill.MOST_DOC + 5
    a, b = list(range(100, 100 + n_item)), [AROUND] * n_doc
    near = (0, 0) if mode > 0 else (n_item - 1, n_doc - 1)
    far = (n_item - 1, n_doc - 1) if mode > 0 else (0, 0)
    for i, j in (near, far):
        b[j] = a[i]
    assert aligned(a, [1.0] * n_item, b, mode) == [near]
