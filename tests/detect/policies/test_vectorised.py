"""Shares, runs and draws computed with arrays, against loops over items and tokens."""

from dataclasses import fields

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.benchmark.items import PARTS
from contam.detect.labels import NOT_CHECKABLE
from contam.detect.model import ViewItems
from contam.detect.policies.common import Segments, part_sums
from contam.detect.policies.policy import policy_from_dict
from contam.detect.policies.substrings import GPT4_50CHAR, Substrings
from tests.detect.policies.conformance.harness import empty_totals
from tests.kernels.support import few


def view(n_tokens, hashes, **changes):
    n_tokens = np.array(n_tokens, np.int32).reshape(-1, 4)
    ends = np.cumsum(n_tokens.reshape(-1), dtype=np.int64)
    n = n_tokens.shape[0]
    fields = {
        "n_items": n,
        "benchmark": np.zeros(n, np.int32),
        "n_tokens": n_tokens,
        "n_words": n_tokens,
        "token_start": (ends - n_tokens.reshape(-1)).reshape(-1, 4),
        "token_hash": np.array(hashes, np.uint64),
        "part_weight": n_tokens.astype(np.float64),
        "n_single": np.zeros_like(n_tokens),
        "stretch": n_tokens.max(axis=1, initial=0),
        "item_ids": tuple(map(str, range(n))),
        "seed": 1,
    }
    return ViewItems(**{**fields, **changes})


@st.composite
def worlds(draw):
    """Items of a few short parts, and a run length for every token that stays in its part."""
    n_tokens = draw(
        st.lists(st.lists(st.integers(0, 12), min_size=4, max_size=4), min_size=1, max_size=5)
    )
    total = sum(map(sum, n_tokens))
    hashes = draw(st.lists(st.integers(2**63 - 3, 2**63 + 3), min_size=total, max_size=total))
    wishes = draw(st.lists(st.integers(0, 12), min_size=total, max_size=total))
    starts = draw(st.lists(st.booleans(), min_size=total, max_size=total))
    runs, place = [], 0
    for item in n_tokens:
        for length in item:
            for offset in range(length):
                runs.append(min(wishes[place], length - offset))
                place += 1
    items = view(n_tokens, hashes, word_start=np.array(starts, np.bool_))
    totals = empty_totals(items)
    totals.longest_at[:] = runs
    return items, totals


PART_SETS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4, unique=True)


def by_loop(items, totals, parts):
    """[(item, hashes, runs, word starts)] of every judged part, in PARTS order."""
    rows = []
    for i in range(items.n_items):
        for column, name in enumerate(PARTS):
            if name in parts:
                a = int(items.token_start[i, column])
                b = a + int(items.n_tokens[i, column])
                rows.append(
                    (
                        i,
                        items.token_hash[a:b].tolist(),
                        totals.longest_at[a:b].tolist(),
                        items.word_start[a:b].tolist(),
                    )
                )
    return rows


def covered_by_loop(runs, n):
    inside = set()
    for place, run in enumerate(runs):
        if run >= n:
            inside.update(range(place, place + n))
    return len(inside)


@given(worlds(), PART_SETS, st.integers(1, 6))
@few
def test_segments_agree_with_loops(world, parts, n):
    items, totals = world
    segments = Segments.of(items, parts)
    rows = by_loop(items, totals, parts)
    runs = segments.runs(totals)
    assert segments.length.tolist() == [len(h) for _, h, _, _ in rows]
    assert segments.longest(runs).tolist() == [max(r, default=0) for _, _, r, _ in rows]
    assert segments.count(runs >= n).tolist() == [sum(x >= n for x in r) for _, _, r, _ in rows]
    assert segments.n_grams(n).tolist() == [max(0, len(h) - n + 1) for _, h, _, _ in rows]
    assert segments.count(segments.covered(runs >= n, n)).tolist() == [
        covered_by_loop(r, n) for _, _, r, _ in rows
    ]


def policy(base, **changes):
    return policy_from_dict({"base": base, "id": "test", **changes})


@given(worlds(), PART_SETS, st.integers(1, 6))
@few
def test_share_of_tokens_agrees_with_a_loop(world, parts, n):
    items, totals = world
    judged = policy("llama3-8gram", parts=parts, n=n).judge(items, totals)
    rows = by_loop(items, totals, parts)
    for i in range(items.n_items):
        mine = [(h, r) for owner, h, r, _ in rows if owner == i]
        words = sum(len(h) for h, _ in mine)
        if all(len(h) < n for h, _ in mine):
            assert judged.label[i] == NOT_CHECKABLE
        else:
            assert judged.score[i] == sum(covered_by_loop(r, n) for _, r in mine) / words


@given(worlds(), st.integers(1, 6))
@few
def test_share_of_windows_agrees_with_a_loop(world, n):
    items, totals = world
    items = ViewItems(
        **{field.name: getattr(items, field.name) for field in fields(items)}
        | {"word_start": _first_too(items)}
    )
    judged = policy("igmini-50", n=n).judge(items, totals)
    rows = by_loop(items, totals, ("passage", "question"))
    for i in range(items.n_items):
        windows = [
            r[k] >= n
            for owner, h, r, starts in rows
            if owner == i
            for k in range(len(h) - n + 1)
            if starts[k]
        ]
        if windows:
            assert judged.score[i] == sum(windows) / len(windows)
        else:
            assert judged.label[i] == NOT_CHECKABLE


def _first_too(items):
    starts = items.word_start.copy()
    starts[items.token_start[items.n_tokens > 0]] = True
    return starts


@given(worlds(), st.integers(1, 6))
@few
def test_share_of_grams_agrees_with_a_loop(world, n):
    items, totals = world
    judged = policy("palm-70", n=n).judge(items, totals)
    rows = by_loop(items, totals, PARTS)
    for i in range(items.n_items):
        passage, question, _, answer = [r for owner, _, r, _ in rows if owner == i]
        shares = []
        for text in ((question,), (passage, question), (answer,)):
            grams = [run >= n for r in text for run in r[: max(len(r) - n + 1, 0)]]
            shares += [sum(grams) / len(grams)] if grams else []
        if shares:
            assert judged.score[i] == max(shares)
        else:
            assert judged.label[i] == NOT_CHECKABLE


@given(worlds(), st.integers(1, 6), st.integers(0, 3))
@few
def test_drawn_substrings_lie_inside_one_part(world, n, draw_seed):
    items, _ = world
    spec = GPT4_50CHAR.with_changes({"id": "t", "n": n, "parameters": {"draw_seed": draw_seed}})
    drawn = Substrings(spec).drawn(items)
    for i in range(items.n_items):
        ends = items.token_start[i] + items.n_tokens[i]
        spans = [(items.token_start[i, c], ends[c]) for c in (0, 1)]
        if drawn.length[i] == n:
            for place in drawn.place[i]:
                assert any(a <= place and place + n <= b for a, b in spans)
        else:
            assert items.n_tokens[i, :2].max() < n
            assert drawn.length[i] == items.n_tokens[i, 1]


@given(worlds(), st.randoms(use_true_random=False))
@few
def test_draws_follow_the_text_and_not_the_order_of_items(world, rng):
    items, _ = world
    order = list(range(items.n_items))
    rng.shuffle(order)
    shuffled = ViewItems(
        **{field.name: getattr(items, field.name) for field in fields(items)}
        | {
            name: getattr(items, name)[order]
            for name in ("benchmark", "n_tokens", "n_words", "token_start")
        }
    )
    draw = Substrings(GPT4_50CHAR.with_changes({"id": "t", "n": 2})).drawn
    assert draw(shuffled).place.tolist() == draw(items).place[order].tolist()


def test_draws_reach_every_place_about_equally():
    n_items, places = 3000, 8
    rng = np.random.default_rng(5)
    length = 50 + places - 1
    n_tokens = [[0, length, 0, 0]] * n_items
    items = view(n_tokens, rng.integers(0, 2**64, n_items * length, dtype=np.uint64))
    drawn = Substrings(GPT4_50CHAR).drawn(items)
    offsets = (drawn.place - items.token_start[:, 1, None]).reshape(-1)
    counts = np.bincount(offsets, minlength=places)
    assert counts.size == places
    assert np.all(np.abs(counts - counts.mean()) < 5 * np.sqrt(counts.mean()))


tokens = st.lists(st.floats(0, 1, width=32), max_size=7)


@given(tokens, st.lists(tokens, max_size=8), tokens)
@example([], [], [])
@example([], [[], [0.5], []], [0.25])
def test_a_part_is_summed_alone_wherever_it_stands(before, parts, after):
    flat = np.array([*before, *(one for part in parts for one in part), *after], np.float32)
    length = np.array([len(part) for part in parts], np.int32)
    start = len(before) + np.cumsum(length) - length
    found = part_sums(flat, start.astype(np.int64), length, np.float64)
    want = [
        part_sums(np.array(p, np.float32), np.zeros(1, np.int64), np.array([len(p)]), np.float64)[0]
        for p in parts
    ]
    assert found.tolist() == want
    assert np.allclose(found, [sum(part) for part in parts])
