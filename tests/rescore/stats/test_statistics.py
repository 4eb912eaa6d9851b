"""What the formulas promise: identities, agreement with other libraries, coverage by simulation."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from contam.rescore.stats import (
    clusters,
    gain,
    permutation,
    ranking,
)
from contam.rescore.stats.clusters import pass_at, samples_note
from tests.rescore.stats.by_hand import compare

SEEDS = st.integers(0, 2**32 - 1)


def draw(seed, n, share=0.4, kind="binary"):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return (scores < 0.6).astype(float) if kind == "binary" else scores, rng.random(n) < share


@given(SEEDS, st.integers(4, 300), st.sampled_from(["binary", "real"]))
def test_a_gain_is_the_share_flagged_times_the_gap(seed, n, kind):
    scores, flagged = draw(seed, n, kind=kind)
    flagged[0], flagged[-1] = True, False
    found = gain.gain(scores, flagged, least=1, permutations=20)
    f = flagged.mean()
    gap = scores[flagged].mean() - scores[~flagged].mean()
    assert found.epg == pytest.approx(f * gap, abs=1e-12)
    assert f * scores[flagged].mean() + (1 - f) * scores[~flagged].mean() == pytest.approx(
        scores.mean()
    )
    if not np.isnan(found.z):
        assert found.z == pytest.approx(found.z_nested * np.sqrt(f))


@given(SEEDS, st.integers(8, 60))
def test_the_order_of_items_changes_nothing(seed, n):
    scores, flagged = draw(seed, n)
    flagged[:2], flagged[-2:] = True, False
    order = np.random.default_rng(seed + 1).permutation(n)
    one = gain.gain(scores, flagged, least=1, permutations=200)
    two = gain.gain(scores[order], flagged[order], least=1, permutations=200)
    assert (one.epg, one.p) == pytest.approx((two.epg, two.p))
    assert clusters.interval_of(scores) == clusters.interval_of(scores[order])


@pytest.mark.parametrize("mixed", [False, True])
def test_p_is_uniform_when_items_of_a_cluster_rise_and_fall_together(mixed):
    """Whole passages are flagged; dealing out single items would call half of them a leak."""
    rng = np.random.default_rng(4)
    sizes = np.repeat([2, 5], 30)
    cluster = np.repeat(np.arange(60), sizes)
    p, naive = [], []
    for seed in range(200):
        skill = np.repeat(rng.random(60), sizes)
        scores = (rng.random(len(cluster)) < skill).astype(float)
        flagged = np.repeat(rng.permutation(60) < 20, sizes)
        if mixed:
            flagged &= np.concatenate([np.arange(size) > 0 for size in sizes])
        p.append(
            permutation.permutation_test(
                scores, flagged, permutations=199, seed=seed, cluster=cluster
            ).p
        )
        naive.append(permutation.permutation_test(scores, flagged, permutations=199, seed=seed).p)
    assert stats.kstest(p, "uniform").pvalue > 0.001
    assert np.mean(np.array(p) <= 0.05) < 0.1
    if not mixed:
        assert np.mean(np.array(naive) <= 0.05) > 0.12


@given(SEEDS, st.integers(2, 4), st.integers(2, 50), st.booleans())
@example(1, 2, 2, False)
@settings(max_examples=min(settings().max_examples, 60))
def test_all_pairs_are_each_pair(seed, m, n, real):
    rng = np.random.default_rng(seed)
    scores = rng.random((m, n)) if real else (rng.random((m, n)) < 0.5).astype(float)
    cluster = rng.integers(0, 5, n) if seed % 2 else None
    pairs = ranking.pairwise(scores, cluster)
    for a in range(m):
        for b in range(m):
            if a != b:
                one = compare(scores[a], scores[b], cluster)
                assert pairs.difference[a, b] == pytest.approx(one.difference, abs=1e-12)
                assert pairs.error[a, b] == pytest.approx(one.error, abs=1e-7, nan_ok=True)
                if not 0 < one.error < 1e-6:
                    assert pairs.p[a, b] == pytest.approx(one.p, abs=1e-6, nan_ok=True)


def test_rank_intervals_hold_the_rank_and_shrink_with_items():
    rng = np.random.default_rng(1)
    truth = np.array([0.9, 0.6, 0.58, 0.2])
    scores = (rng.random((4, 2_000)) < truth[:, None]).astype(float)
    found = ranking.rank_intervals(ranking.pairwise(scores))
    assert found[0].tolist() == [1, 1]
    assert found[3].tolist() == [4, 4]
    few = ranking.rank_intervals(ranking.pairwise(scores[:, :20]))
    assert (few[:, 0] <= found[:, 0]).all()
    assert (few[:, 1] >= found[:, 1]).all()


@pytest.mark.parametrize("m", [2, 3, 7, 60, ranking._MANY, ranking._MANY + 1])
@pytest.mark.parametrize("levels", [1, 2, 5, 1_000])
def test_tau_is_that_of_scipy_to_the_last_bit(m, levels):
    rng = np.random.default_rng(m)
    first = rng.integers(0, levels, m) / 7
    others = rng.integers(0, levels, (30, m)) / 7
    others[3] = first
    others[4] = -first
    others[5, m // 2] = np.nan
    others[6] = 1.0
    expected = [stats.kendalltau(first, other).statistic for other in others]
    assert np.array_equal(ranking.kendall(first, others), expected, equal_nan=True)
    first[0] = np.nan
    assert np.isnan(ranking.kendall(first, others)).all()


def naive_sweep(scores, contamination, least):
    best = -np.inf
    for threshold in np.unique(contamination):
        flagged = contamination >= threshold
        if flagged.sum() >= least and (~flagged).sum() >= least and scores.std() > 0:
            epg = scores.mean() - scores[~flagged].mean()
            best = max(best, epg / (scores.std() / np.sqrt((~flagged).sum())))
    return best


@given(SEEDS, st.booleans())
def test_a_sweep_looks_at_every_threshold(seed, real):
    rng = np.random.default_rng(seed)
    scores = rng.random(80) if real else (rng.random(80) < 0.5).astype(float)
    contamination = rng.integers(0, 9, 80) / 8
    found = gain.sweep(scores, contamination, least=5, permutations=50)
    for threshold, n_flagged, epg in zip(found.threshold, found.flagged, found.epg, strict=True):
        flagged = contamination >= threshold
        assert n_flagged == flagged.sum()
        if not flagged.all():
            assert epg == pytest.approx(scores.mean() - scores[~flagged].mean(), abs=1e-12)
    if found.best >= 0:
        assert found.z[found.best] == pytest.approx(naive_sweep(scores, contamination, 5))
    assert found.best < 0 or 0 < found.p <= 1


@pytest.mark.slow
@pytest.mark.parametrize("real", [False, True])
def test_the_best_of_many_thresholds_is_not_taken_at_its_word(real):
    rejected = own = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scores = rng.random(200) if real else (rng.random(200) < 0.5).astype(float)
        found = gain.sweep(scores, rng.random(200), least=20, permutations=99, seed=seed)
        rejected += found.p <= 0.05
        own += stats.norm.sf(found.z_nested[found.best]) <= 0.05
    assert rejected <= 200 * 0.05 + 4 * np.sqrt(200 * 0.05 * 0.95)
    assert own > 2 * rejected


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_adjusted_p_as_statsmodels_has_it(n):
    values = np.random.default_rng(n).random(n).round(1)
    for ours, method in (
        (permutation.holm, "holm"),
        (permutation.benjamini_hochberg, "fdr_bh"),
    ):
        assert ours(values) == pytest.approx(multipletests(values, method=method)[1], abs=1e-15)


def test_nothing_to_say_is_said():
    empty = clusters.interval_of(np.empty(0))
    assert np.isnan([empty.estimate, empty.low, empty.high]).all()
    assert np.isnan(ranking.agreement(np.ones(4), np.arange(4.0)).tau)
    assert np.isnan(ranking.random_deletion(np.ones((3, 4)), np.zeros(4, bool)).tau)
    p = np.array([0.01, np.nan, 0.04, 0.03])
    assert permutation.holm(p) == pytest.approx([0.03, np.nan, 0.06, 0.06], nan_ok=True)
    assert permutation.benjamini_hochberg(p) == pytest.approx(
        [0.03, np.nan, 0.04, 0.04], nan_ok=True
    )
    with pytest.raises(ValueError):
        clusters.wilson(3, 2)
    for scores in ([0.5], [7.0, 7.0, 7.0]):
        found = clusters.interval_of(np.array(scores))
        assert found.estimate == scores[0]
        assert np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize("n", [2, 4, 7])
def test_pass_at_k_is_the_share_of_draws_with_a_right_answer(n):
    for right, k in itertools.product(range(n + 1), range(1, n + 1)):
        draws = list(itertools.combinations([1] * right + [0] * (n - right), k))
        (found,) = pass_at(k, np.array([float(right)]), np.array([n]))
        assert found == pytest.approx(np.mean([max(draw) for draw in draws]))


def test_the_parts_of_an_error_are_those_of_the_world():
    """Items from Beta(2, 2), 5 answers each: Var(x) = 0.05, E[sigma^2] = 0.2."""
    rng, n, k = np.random.default_rng(0), 300, 5
    told, means, passed, errors = [], [], [], []
    for _ in range(300):
        right = rng.binomial(k, rng.beta(2, 2, n))
        scores = right / k
        note = samples_note(scores, np.full(n, k))
        figures = [float(one) for one in re.findall(r"0\.[0-9]+", note)]
        told.append(figures[:3])
        means.append(scores.mean())
        passed.append(figures[3])
        errors.append(figures[4])
    whole, between, within = np.mean(told, axis=0)
    assert whole == pytest.approx(np.std(means), rel=0.1)
    assert between == pytest.approx(np.sqrt(0.05 / n), rel=0.05)
    assert within == pytest.approx(np.sqrt(0.2 / k / n), rel=0.05)
    assert np.mean(errors) == pytest.approx(np.std(passed), rel=0.1)


@pytest.mark.parametrize(
    ("scores", "answers"),
    [([0.0, 1.0, 1.0], 4), ([0.5, 0.25], 1), ([0.3, 0.61], 4), ([2.0, 0.5], 2), ([0.5], 2)],
)
def test_what_is_no_share_of_answers_has_no_parts(scores, answers):
    assert samples_note(np.array(scores), np.full(len(scores), answers)) == ""
