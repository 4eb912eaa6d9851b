"""Chains of runs: the stretches between them, which runs make one, and when no more is looked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import align, fill
from contam.kernels.run_together import Document, PartTokens
from contam.kernels.runs import RUN_COLUMNS, RunGroup
from tests.kernels.support import FEW, frozen, u64s
from tests.twins import chains as twin
from tests.twins import evidence

ENDS = {"closed": 0, "right": 1, "left": -1}
SHARES = st.sampled_from((0.0, 0.0625, 0.25, 0.5, 1.0))
#: Mostly different tokens: few of them are equal.
MANY = st.integers(1, 40).map(lambda n: n * 0x9E3779B97F4A7C15 % 2**64)
TOKENS = st.sampled_from((FEW, MANY, FEW | MANY))


@st.composite
def texts(draw, most: int) -> tuple[list[int], list[float], list[int]]:
    """Tokens of a part, their weights, and tokens of a document that quotes it, or not."""
    token = draw(TOKENS)
    item = draw(st.lists(token, max_size=most))
    weights = draw(st.lists(SHARES, min_size=len(item), max_size=len(item)))
    cuts = st.tuples(st.integers(0, most), st.integers(0, most)).map(
        lambda ends: item[min(ends) : max(ends)]
    )
    pieces = draw(st.lists(st.just(item) | cuts | cuts | st.lists(token, max_size=9), max_size=5))
    return item, weights, [one for piece in pieces for one in piece]


def filled(item: list[int], weights: list[float], doc: list[int], end: str) -> list[twin.Pair]:
    scratch = fill.new_fill_scratch()
    side = (u64s(item), frozen(weights, np.float32), 0, len(item))
    n = fill.fill_stretch(side, (u64s(doc), 0, len(doc)), ENDS[end], scratch)
    return [(i, j) for i, j in scratch.matched[:n].tolist()]


@pytest.mark.parametrize("end", ENDS)
@given(text=texts(24))
@example(text=([1, 2, 3], [0.0, 0.0, 0.0], [1, 2, 3]))
@example(text=([1, 2], [1.0, 1.0], [2, 1]))
@example(text=([1, 9, 1], [1.0, 1.0, 1.0], [1]))
def test_of_ways_that_are_worth_the_same_the_one_stated_is_taken(end, text):
    assert filled(*text, end) == twin.fill(*text, end)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("other", [159, 160, 161, 319, 320, 321])
def test_of_too_long_a_stretch_the_tokens_at_the_anchor_count(end, other):
    unlike = list(range(1000, 1000 + other))
    item = [1, 2, *unlike[: other // 2], 3, 4]
    doc = [1, 2, *(one + 1000 for one in unlike), 3, 4]
    for weight in (1.0, 0.25):
        weights = [weight] * len(item)
        assert filled(item, weights, doc, end) == twin.fill(item, weights, doc, end)
        assert filled(doc, [weight] * len(doc), item, end) == twin.fill(
            doc, [weight] * len(doc), item, end
        )


# -------------------------------------------------------------------- runs and their chains


def runs_of(runs: list[twin.Run], before: int = 2) -> RunGroup:
    """Runs as the kernels take them, behind others."""
    table = np.full((len(runs) + before, RUN_COLUMNS), 5, np.int32)
    for number, run in enumerate(runs):
        # Written backwards: only the order says which comes first.
        table[len(table) - 1 - number, 1:] = run
    order = np.arange(len(table), dtype=np.int64)[::-1].copy()
    return RunGroup(table, order, 0, len(runs))


ANY_RUNS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 40), st.integers(1, 9)), max_size=12, unique=True
).map(lambda runs: sorted(runs, key=lambda run: (run[1], run[0])))


@given(ANY_RUNS, st.lists(SHARES, min_size=30, max_size=30), st.data())
@example([(0, 0, 5)], [0.0] * 30, None)
@example([(0, 0, 5), (5, 29, 5)], [1.0] * 30, None)
@example([(0, 0, 5), (5, 30, 5)], [1.0] * 30, None)
@example([(0, 0, 3), (0, 3, 3), (3, 6, 3)], [1.0] * 30, None)
def test_the_heaviest_chain_of_unused_runs_is_found(runs, weights, more):
    unused = [y for y in range(len(runs)) if more is None or more.draw(st.booleans())]
    scratch = align.new_scratch(30)
    scratch.used[: len(runs)] = [y not in unused for y in range(len(runs))]
    scratch.weight_before[:31] = [0.0, *np.cumsum(weights)]
    found = []
    at = align.best_chain(runs_of(runs), scratch)
    while at >= 0:
        found.append(int(at))
        at = scratch.chain_before[at]
    assert found[::-1] == twin.best_chain(runs, unused, weights)


BLOCKS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 4)), max_size=8
).map(
    lambda gaps: [
        (sum(g[0] + g[2] for g in gaps[:k]), sum(g[1] + g[2] for g in gaps[:k]), gaps[k][2])
        for k in range(len(gaps))
    ]
)


@given(BLOCKS)
def test_a_block_that_goes_on_without_a_gap_lengthens_the_one_before(blocks):
    table = np.full((len(blocks) + 2, align.BLOCK_COLUMNS), -7, np.int32)
    table[0] = 0, 0, 0, 3  # of another chain: nothing is added to it
    n = 1
    for i, j, length in blocks:
        n = align.add_block(table, n, 1, i, j, length, 4)
    assert [tuple(row) for row in table[1:n].tolist()] == [
        (*block, 4) for block in twin.joined(blocks)
    ]
    assert (table[n:] == -7).all()


def placed(
    item: list[int], weights: list[float], doc: list[int], seed: int
) -> tuple[tuple, tuple[twin.Place, list[twin.Run]]]:
    """What the kernel and the twin make of all runs of `seed` tokens, as one place."""
    document = evidence.Document.of(doc, seed, [])
    runs = evidence.maximal_runs(item, document, seed)
    runs.sort(key=lambda run: (run[1], run[0]))
    text_scratch = (len(runs) + len(item) + 50) * twin.MOST_CHAINS
    blocks = np.full((text_scratch, align.BLOCK_COLUMNS), -7, np.int32)
    part = PartTokens(u64s(item), frozen(weights, np.float32), frozen([], np.uint8), 0, len(item))
    spans = frozen(np.zeros((len(doc), 2)), np.int32)
    there = Document(u64s(doc), len(doc), spans, frozen([], np.uint8), 0, 0)
    scratch = align.new_scratch(len(item))
    n, chains, matched = align.align_place(part, there, runs_of(runs), scratch, blocks, (1, 5))
    want = twin.align_place(runs, item, weights, doc)
    return (blocks[1:n].tolist(), chains - 5, matched), (want, runs)


def check_place(item: list[int], weights: list[float], doc: list[int], seed: int) -> twin.Place:
    (blocks, chains, matched), (want, _) = placed(item, weights, doc, seed)
    assert blocks == [
        [*block, 5 + number] for number, chain in enumerate(want.chains) for block in chain
    ]
    assert (chains, matched) == (len(want.chains), want.weight)
    return want


@given(texts(30), st.integers(1, 3))
def test_the_chains_of_a_place_are_the_twins(text, seed):
    check_place(*text, seed)


def test_no_more_than_the_heaviest_chains_are_taken():
    item = [n for k in range(20) for n in (k, 100 + k, 200 + k)]
    # Backwards, so that no two of them make a chain.
    doc = [n for k in reversed(range(20)) for n in (k, 100 + k, 200 + k, 999)]
    want = check_place(item, [1.0] * len(item), doc, 2)
    assert len(want.chains) == twin.MOST_CHAINS


@pytest.mark.parametrize("before", [46, 47, 48, 49])
def test_no_more_than_the_first_runs_of_a_place_are_looked_at(before):
    many = [one for _ in range(before) for one in (1, 2, 999)]
    item = [1, 2, *range(300, 320)]
    want = check_place(item, [1.0] * len(item), [*many, *[998] * 200, *item], 2)
    assert (want.weight > 2) == (before < twin.MOST_RUNS)


@pytest.mark.parametrize(
    ("lost", "moved", "n_chains"), [(0, 2, 1), (0, 3, 2), (9, 2, 1), (9, 3, 2)]
)
def test_a_further_chain_that_adds_too_little_is_left_out(lost, moved, n_chains):
    item = list(range(100))
    doc = [*item[moved:50], *item[50 + lost :], *[999] * 30, *item[:moved], 998]
    assert len(check_place(item, [1.0] * 100, doc, 2).chains) == n_chains


# ------------------------------------------------------------------------------- places
