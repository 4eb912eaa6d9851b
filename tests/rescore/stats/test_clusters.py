"""Items of one passage rise and fall together: no number of a re-scoring forgets it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from contam.rescore.panel import RescoreSettings
from contam.rescore.stats import clusters, gain, ranking
from contam.tables import schemas
from tests.rescore.panels import flags_of, series_of, tables_of
from tests.rescore.stats.by_hand import mcnemar

ROUNDS = 400
#: What 5 % of false alarms may come out as in so many rounds: four standard errors.
MOST = 0.05 + 4 * np.sqrt(0.05 * 0.95 / ROUNDS)
SIZE, GROUPS = 5, 60
CLUSTER = np.repeat(np.arange(GROUPS), SIZE)


def answers(rng, skill=None):
    """Right or wrong answers whose chance of being right is one for each passage."""
    skill = rng.beta(1.2, 1.2, GROUPS) if skill is None else skill
    return (rng.random(len(CLUSTER)) < np.repeat(skill, SIZE)).astype(float)


def flags(rng, *, whole):
    if whole:
        return np.repeat(rng.permutation(GROUPS) < GROUPS // 3, SIZE)
    return rng.random(len(CLUSTER)) < 0.35


@pytest.mark.parametrize("whole", [True, False])
def test_random_flags_on_passages_do_not_shake_a_ranking(whole):
    alarms = alone = 0
    for seed in range(ROUNDS // 4):
        rng = np.random.default_rng(seed)
        scores = np.array([answers(rng) for _ in range(6)])
        flagged = flags(rng, whole=whole)
        found = ranking.random_deletion(scores, flagged, draws=99, seed=seed, cluster=CLUSTER)
        alarms += found.p <= 0.05
        alone += ranking.random_deletion(scores, flagged, draws=99, seed=seed).p <= 0.05
    assert alarms / (ROUNDS // 4) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / (ROUNDS // 4))
    if whole:
        assert alone > alarms


def test_a_ranking_is_shaken_by_a_leak_of_whole_passages():
    rng = np.random.default_rng(8)
    scores = np.array([answers(rng, np.full(GROUPS, p)) for p in np.linspace(0.4, 0.6, 6)])
    flagged = np.repeat(np.arange(GROUPS) < 20, SIZE)
    scores[0, flagged] = 1.0
    found = ranking.random_deletion(scores, flagged, seed=1, cluster=CLUSTER)
    assert found.p < 0.05


def test_passages_that_cannot_swap_give_no_deletion_p_and_say_so():
    sizes = np.arange(1, 21)
    flagged = np.repeat(np.arange(20) % 3 == 0, sizes)
    rng = np.random.default_rng(0)
    flags_ = flags_of(["contaminated" if one else "clean" for one in flagged])
    flags_.cluster[:] = np.repeat(np.arange(20), sizes)
    series = [
        series_of((rng.random(210) < 0.5 + at / 20).astype(float), model=f"m{at}")
        for at in range(4)
    ]
    settings = RescoreSettings(permutations=99, draws=20, sweep_permutations=20, least=10)
    tables = tables_of(series, [flags_], settings)
    for row in schemas.rows(tables["rankings"]):
        assert row["deletion_p"] is None
        assert row["kendall_tau"] is not None
        assert row["note"]


def test_a_sweep_over_passages_raises_no_alarm():
    alarms = 0
    for seed in range(ROUNDS // 4):
        rng = np.random.default_rng(seed)
        contamination = np.repeat(rng.integers(0, 6, GROUPS) / 5, SIZE)
        found = gain.sweep(
            answers(rng), contamination, least=20, permutations=99, seed=seed, cluster=CLUSTER
        )
        alarms += found.p <= 0.05
    assert alarms / (ROUNDS // 4) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / (ROUNDS // 4))


def pair_p(first, second, cluster=None):
    return ranking.pairwise(np.stack([first, second]), cluster).p[0, 1]


@pytest.mark.parametrize("groups", [6, 60])
def test_two_models_of_one_skill_are_told_apart_no_more_often_than_said(groups):
    """Six passages are few: the normal quantile would call twice as many pairs different."""
    cluster = np.repeat(np.arange(groups), SIZE)
    alarms = 0
    for seed in range(ROUNDS):
        rng = np.random.default_rng(seed)
        skill = np.repeat(rng.beta(1, 1, (2, groups)), SIZE, axis=1)
        first, second = (rng.random((2, groups * SIZE)) < skill).astype(float)
        alarms += pair_p(first, second, cluster) <= 0.05
    assert alarms / ROUNDS <= MOST


@given(st.integers(0, 2**32 - 1), st.integers(3, 60))
def test_pairs_of_items_that_stand_alone_have_the_paired_t_test(seed, n):
    first, second = np.random.default_rng(seed).random((2, n))
    assert pair_p(first, second) == pytest.approx(stats.ttest_rel(first, second).pvalue)


@given(st.integers(0, 2**32 - 1), st.integers(3, 20), st.integers(2, 5))
def test_pairs_by_passages_of_one_length_have_the_t_test_of_passage_means(seed, groups, size):
    first, second = np.random.default_rng(seed).random((2, groups, size))
    found = pair_p(first.ravel(), second.ravel(), np.repeat(np.arange(groups), size))
    means = stats.ttest_rel(first.mean(axis=1), second.mean(axis=1))
    assert found == pytest.approx(means.pvalue, rel=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(3, 40), st.integers(3, 40))
def test_a_difference_of_items_that_stand_alone_has_welch_s_test(seed, n, k):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(0, 1, n), rng.normal(0.3, 2, k)
    found = clusters.difference_of(first, second)
    assert found.p == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue)


def test_one_passage_tells_no_two_models_apart():
    """All items are one cluster: its one sum says nothing of what chance does."""
    scores = np.stack([np.ones(60), np.zeros(60)])
    found = ranking.pairwise(scores, np.zeros(60, np.int64))
    assert np.isnan(found.p[0, 1])
    assert not found.adjusted[0, 1] < 0.05
    assert ranking.rank_intervals(found).tolist() == [[1, 2], [1, 2]]


def test_mcnemar_s_test_is_that_of_items_that_share_no_clusters():
    rng = np.random.default_rng(0)
    scores = np.array([answers(rng), answers(rng)])
    alone = [None, np.arange(len(CLUSTER))]
    p, same = (ranking.pairwise(scores, cluster).p[0, 1] for cluster in alone)
    assert p == same == mcnemar(*scores)
    assert ranking.pairwise(scores, CLUSTER).p[0, 1] != p
