"""What holds for every published policy, whatever its definition."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.detect.labels import CLEAN, LABELS, NOT_CHECKABLE
from contam.detect.model import Matches
from contam.detect.policies import common
from contam.detect.policies.policy import DEFAULT, get_policy, list_policies, shortest_run
from contam.errors import InternalError, PolicyError
from tests.detect.policies.conformance import harness
from tests.detect.policies.conformance.harness import empty_totals
from tests.matrix import sampled

POLICIES = [
    name
    for spec in list_policies()
    if spec.id != DEFAULT
    for name in (spec.id, *(f"{spec.id}:{preset}" for preset in spec.presets))
]
MILL = (
    "At the old mill - the one by the weir - a cart brings 12 sacks of oats, 7.5 sacks of rye and no"
    " wheat at all. Each sack weighs forty-two pounds, & the miller keeps one pound in every sixteen."
    " How many pounds (rounded down) does the miller keep after three such carts?"
)
STRANGE = (
    "\u201cWhy\u201d, asked \u00c9lodie\u2019s uncle\u00a0\u2014 who had\r\nwalked\tfrom Fu\u00dfach to the"
    " Donaudampfschifffahrtsgesellschaft \u2014 \u201cis the 3rd bell rung before the 2nd, and who tied a"
    " r\u00e9d ribbon \u2192 to its rope on the eve of the fair?!?\u201d"
)
ROPE = (
    "A rope maker twists nine strands into a cable and loses a twentieth of the length in each turn of"
    " the wheel. If the finished cable must reach from the chapel tower to the boathouse door, what"
    " else has to be measured first?"
)
ITEMS = [{"question": text} for text in (MILL, STRANGE, ROPE)]
FILLER = (
    "The committee met on a rainy evening and talked of drains, hedges and the price of paint. "
)


@pytest.mark.parametrize("name", POLICIES)
def test_an_item_matches_itself(name):
    rows = harness.judge(get_policy(name), ITEMS, [MILL, STRANGE, ROPE])
    assert [row.label for row in rows] == ["contaminated"] * 3
    assert [row.n_documents for row in rows] == [1] * 3


@pytest.mark.parametrize("name", POLICIES)
def test_nothing_in_common_is_clean(name):
    rows = harness.judge(get_policy(name), ITEMS, [FILLER * 5])
    assert [(row.label, row.score, row.n_documents) for row in rows] == [("clean", 0.0, 0)] * 3


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    "disguise",
    [
        lambda text: text.upper(),
        lambda text: "\n> ".join(text.split()),
        lambda text: text.replace(" ", " ... "),
        lambda text: FILLER * 4 + text + " " + FILLER * 4,
    ],
    ids=["upper case", "one word a line", "dots between words", "inside a long page"],
)
def test_case_layout_punctuation_and_padding_change_nothing(name, disguise):
    policy = get_policy(name)
    cut = [text[: len(text) * 2 // 3] for text in (MILL, STRANGE, ROPE)]
    plain = harness.judge(policy, ITEMS, cut)
    assert harness.judge(policy, ITEMS, [disguise(text) for text in cut]) == plain


def test_decon_takes_an_ellipsis_for_a_word_and_the_others_do_not():
    for name in POLICIES:
        (row, *_) = harness.judge(get_policy(name), ITEMS, [MILL.replace(" ", " \u2026 ")])
        assert (row.label == "contaminated") == (not name.startswith("decon")), name


@pytest.mark.parametrize("name", sampled(5, POLICIES))
@given(order=st.permutations(range(3)))
def test_the_order_of_items_and_documents_changes_nothing(name, order):
    policy = get_policy(name)
    corpus = [MILL[:120] + STRANGE, FILLER + ROPE[20:], STRANGE[:150] + MILL]
    rows = harness.judge(policy, ITEMS, corpus)
    shuffled = harness.judge(
        policy, [ITEMS[i] for i in order], [corpus[i] for i in reversed(order)]
    )
    assert shuffled == [rows[i] for i in order]


@pytest.mark.parametrize("name", sampled(5, POLICIES))
def test_the_size_of_the_blocks_items_are_judged_in_changes_nothing(name, monkeypatch):
    items = [*ITEMS, {"question": ""}, {"question": FILLER * 3, "passage": MILL + ROPE}] * 3
    corpus = [MILL[:120] + STRANGE, FILLER + ROPE[20:], STRANGE[:150] + MILL]
    rows = harness.judge(get_policy(name), items, corpus)
    for n_tokens in (1, 37, 100):
        monkeypatch.setattr(common, "_BLOCK_TOKENS", n_tokens)
        assert harness.judge(get_policy(name), items, corpus) == rows


@pytest.mark.parametrize("name", POLICIES)
def test_an_item_without_text_is_never_clean(name):
    blank = [{"question": "?!"}, {"question": "", "choices": [MILL]}, *ITEMS]
    rows = harness.judge(get_policy(name), blank, [MILL])
    assert [row.label for row in rows[:2]] == ["not_checkable"] * 2


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_looks_for_items_shorter_than_its_runs_only_if_it_says_so(name):
    policy = get_policy(name)
    tokens = MILL.split() if policy.spec.unit == "word" else list(MILL.replace(" ", ""))
    text = " ".join(tokens[: shortest_run(policy) - 1])
    for corpus in ([FILLER], [MILL]):
        (row, *_) = harness.judge(policy, [{"question": text}, *ITEMS], corpus)
        assert (row.label != "not_checkable") == (policy.traits.short_items != "none"), row.reason


@pytest.mark.parametrize("name", POLICIES)
def test_no_items_and_no_documents_are_fine(name):
    policy = get_policy(name)
    unit = policy.spec.unit
    view, matches, _ = harness.evidence(ITEMS, [], unit)
    assert len(matches) == 0
    score = policy.score_matches(matches, view)
    assert score.shape == policy.hits(matches, view, score).shape == (0,)
    assert set(policy.judge(view, empty_totals(view)).label.tolist()) == {CLEAN}
    none = _without_items(view)
    assert policy.judge(none, empty_totals(none)).label.shape == (0,)


@pytest.mark.parametrize("name", POLICIES)
def test_types_and_ranges_of_what_a_policy_returns(name):
    policy = get_policy(name)
    view, matches, longest_at = harness.evidence(ITEMS, [MILL, ROPE[30:], FILLER], policy.spec.unit)
    totals = harness.totals_for(policy, view, matches, longest_at)
    judged = policy.judge(view, totals)
    assert policy.score_matches(matches, view).dtype == np.float64
    assert policy.hits(matches, view, policy.score_matches(matches, view)).dtype == np.bool_
    assert (judged.label.dtype, judged.score.dtype) == (np.int8, np.float64)
    assert np.all(np.isfinite(judged.score))
    assert np.all(judged.score >= 0)
    assert set(judged.label.tolist()) <= set(range(len(LABELS)))
    assert np.all(judged.score[judged.label == NOT_CHECKABLE] == 0)


@pytest.mark.parametrize("name", POLICIES)
def test_a_scan_that_cannot_see_short_runs_is_refused(name):
    policy = get_policy(name)
    view, matches, _ = harness.evidence(ITEMS, [MILL], policy.spec.unit)
    blind = _changed(view, seed=policy.spec.n + 1)
    with pytest.raises(PolicyError) as caught:
        policy.score_matches(matches, blind)
    assert caught.value.hint


def test_tulu3_refuses_another_least_run():
    view, matches, _ = harness.evidence(ITEMS, [MILL], "word")
    with pytest.raises(PolicyError, match="runs of 8"):
        get_policy("tulu3-50").score_matches(matches, _changed(view, min_run=6))


def test_broken_evidence_is_a_defect_and_not_a_verdict():
    view, _, _ = harness.evidence(ITEMS, [MILL], "word")
    totals = empty_totals(view)
    totals.longest_at[-1] = 2
    with pytest.raises(InternalError):
        get_policy("lmeval-13").judge(view, totals)
    chars, _, _ = harness.evidence(ITEMS, [MILL], "char")
    with pytest.raises(InternalError):
        get_policy("igmini-50").judge(_changed(chars, word_start=None), empty_totals(chars))


def test_decon_refuses_where_there_is_no_text_to_read():
    view, _, _ = harness.evidence(ITEMS, [MILL], "word")
    with pytest.raises(PolicyError, match="reads the text") as caught:
        get_policy("decon-default").judge(_changed(view, read=()), empty_totals(view))
    assert caught.value.hint


def test_pairs_may_come_in_any_number_and_order():
    policy = get_policy("lmeval-13")
    view, matches, _ = harness.evidence(ITEMS, [MILL, ROPE, MILL + ROPE], "word")
    score = policy.score_matches(matches, view)
    backwards = np.arange(len(matches))[::-1]
    assert (
        policy.hits(matches.take(backwards), view, score[::-1]).tolist()
        == policy.hits(matches, view, score)[::-1].tolist()
    )
    doubled = Matches.concat([matches, matches])
    assert (
        policy.score_matches(doubled, view).tolist()
        == policy.score_matches(matches, view).tolist() * 2
    )


def _changed(view, **changes):
    return replace(view, **changes)


def _without_items(view):
    empty = {
        name: getattr(view, name)[:0]
        for name in (
            "benchmark", "n_tokens", "n_words", "part_weight", "n_single", "stretch", "item_ids",
            "token_start", "token_hash", "word_start",
        )
    }  # fmt: skip
    read = tuple(replace(known, checkable=known.checkable[:0]) for known in view.read)
    return _changed(view, n_items=0, read=read, **empty)
