"""Items of one passage rise and fall together: no number of a re-scoring forgets it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from contam.rescore.panel import RescoreSettings
from contam.rescore.stats import clusters, gain, ranking
from contam.rescore.stats.permutation import permutation_test
from contam.tables import schemas
from tests.matrix import sampled
from tests.rescore.panels import flags_of, series_of, tables_of

ROUNDS = 200
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
    expected = max(stats.ttest_rel(first, second).pvalue, 2.0 ** (1 - n))
    assert pair_p(first, second) == pytest.approx(expected)


@given(st.integers(0, 2**32 - 1), st.integers(3, 20), st.integers(2, 5))
def test_pairs_by_passages_of_one_length_have_the_t_test_of_passage_means(seed, groups, size):
    first, second = np.random.default_rng(seed).random((2, groups, size))
    found = pair_p(first.ravel(), second.ravel(), np.repeat(np.arange(groups), size))
    means = stats.ttest_rel(first.mean(axis=1), second.mean(axis=1))
    assert found == pytest.approx(max(means.pvalue, 2.0 ** (1 - groups)), rel=1e-6)


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


@pytest.mark.parametrize(("passages", "p"), [(8, None), (12, 2.0**-11)])
def test_an_equal_lead_in_every_passage_is_no_more_sure_than_its_signs(passages, p):
    cluster = np.repeat(np.arange(passages), 5)
    ahead = np.tile([1.0, 1, 1, 0, 0], passages)
    scores = np.stack([ahead, ahead * np.tile([0.0, 1, 1, 1, 1], passages)])
    found = ranking.pairwise(scores, cluster)
    if p is None:
        assert np.isnan(found.p[0, 1])
        assert found.adjusted[0, 1] == 1
    else:
        assert found.p[0, 1] == pytest.approx(p)


def test_the_error_of_a_mean_of_benchmarks_counts_passages_that_they_share():
    rng = np.random.default_rng(2)
    means, errors, naive = [], [], []
    for _ in range(1_000):
        easy = rng.beta(1, 1, 40)
        both = [(rng.random((40, 3)) < easy[:, None]).astype(float).ravel() for _ in range(2)]
        spreads = [clusters.spread_of(own, np.repeat(np.arange(40), 3)) for own in both]
        means.append(np.mean(both))
        errors.append(clusters.error_of_mean(spreads))
        naive.append(np.hypot(*(spread.error for spread in spreads)) / 2)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.07)
    assert np.mean(naive) < 0.85 * np.std(means)


def leads(rng, gap, *, passages=0, n=400):
    """Two models of one skill; `gap` of what the first has wrong it remembers on flagged items."""
    flagged = np.arange(n) % 4 == 0
    cluster = np.arange(n) // passages if passages else None
    if passages:
        flagged = cluster % 4 == 0
    hard = rng.beta(1, 1, n) if not passages else rng.beta(1, 1, n)[cluster]
    scores = (rng.random((2, n)) < hard).astype(float)
    scores[0] = np.maximum(scores[0], (rng.random(n) < gap) & flagged)
    return scores, flagged, cluster


@pytest.mark.parametrize("passages", [0, 8])
def test_a_lead_that_is_the_same_on_all_items_is_seldom_said_to_change(passages):
    rng, rounds, alarms, found_rounds = np.random.default_rng(3), 600, 0, 0
    for _ in range(rounds):
        scores, flagged, cluster = leads(rng, 0, passages=passages)
        found = ranking.changes(scores, flagged, ~flagged, cluster)
        by_hand = clusters.difference_of(
            (scores[0] - scores[1])[flagged], (scores[0] - scores[1])[~flagged]
        )
        assert found.difference[0, 1] == pytest.approx(by_hand.value)
        if not passages:
            assert found.error[0, 1] == pytest.approx(by_hand.error)
        alarms += found.p[0, 1] < 0.05
        scores, flagged, cluster = leads(rng, 0.6, passages=passages)
        found_rounds += ranking.changes(scores, flagged, ~flagged, cluster).p[0, 1] < 0.05
    assert alarms / rounds <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / rounds)
    assert found_rounds / rounds >= 0.8


#: What 95 % coverage may fall short of in so many rounds: four standard errors.
LEAST = 0.95 - 4 * np.sqrt(0.95 * 0.05 / ROUNDS)

SHAPES = {
    "one pair": [1] * 48 + [2],
    "three passages": [20] * 3,
    "ten passages": [5] * 10,
    "sizes differ": [1, 2, 3, 5, 8] * 6,
    "one long passage": [30] + [1] * 30,
    "alone": [1] * 60,
}


def beta_answers(rng, sizes, p, within):
    """Beta-binomial answers: right with p, correlated by `within` inside a cluster."""
    scale = (1 - within) / within if within else None
    skill = rng.beta(p * scale, (1 - p) * scale, len(sizes)) if within else np.full(len(sizes), p)
    return (rng.random(int(sizes.sum())) < np.repeat(skill, sizes)).astype(float)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("p", "within"), [(0.9, 0.0), (0.5, 0.3), (0.1, 0.3)])
def test_the_interval_of_a_score_covers(shape, p, within):
    sizes = np.array(SHAPES[shape])
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(len(cluster))
    covered = 0
    for _ in range(ROUNDS):
        found = clusters.interval_of(beta_answers(rng, sizes, p, within), cluster)
        assert 0 <= found.low <= found.estimate <= found.high <= 1
        covered += found.low <= p <= found.high
    assert covered / ROUNDS >= LEAST


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["one pair", "ten passages", "sizes differ", "alone"])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("p", "leak"), [(0.5, 0.0), (0.9, 0.1), (0.3, 0.5)])
def test_the_interval_of_a_gain_covers(shape, whole, p, leak):
    sizes = np.array(SHAPES[shape])
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    n = len(cluster)
    rng = np.random.default_rng(n)
    covered = 0
    for _ in range(ROUNDS):
        chosen = rng.permutation(len(sizes)) < 0.4 * len(sizes)
        flagged = np.repeat(chosen, sizes) if whole else rng.permutation(n) < 0.4 * n
        scores = beta_answers(rng, sizes, p, 0.2)
        scores[flagged & (rng.random(n) < leak / (1 - p))] = 1.0
        found = permutation_test(scores, flagged, permutations=199, seed=0, cluster=cluster)
        covered += not leak < found.low and not leak > found.high
    assert covered / ROUNDS >= LEAST


@pytest.mark.parametrize("grouped", [True, False])
def test_the_gain_of_a_metric_that_is_no_mean_has_an_interval_that_covers(grouped):
    """A ratio of sums, as F1 is: what is left out by whole passages comes back as its error."""
    cluster = np.repeat(np.arange(60), 4) if grouped else None
    covered = 0
    for seed in range(ROUNDS):
        rng = np.random.default_rng(seed)
        hits = beta_answers(rng, np.full(60, 4), 0.5, 0.2 if grouped else 0)
        sizes = rng.integers(1, 6, 240).astype(float)
        flagged = np.repeat(rng.permutation(60) < 20, 4)

        def ratio(mask, hits=hits, sizes=sizes):
            return float(hits[mask] @ sizes[mask] / sizes[mask].sum())

        whole = np.ones(240, bool)
        found = clusters.jackknife(
            lambda mask, flagged=flagged, ratio=ratio: ratio(mask) - ratio(mask & ~flagged),
            whole,
            cluster,
        )
        assert found.value == ratio(whole) - ratio(~flagged)
        low, high = found.limits()
        covered += low <= 0 <= high
        assert (found.p < 0.05) == (low > 0 or high < 0)
    assert LEAST <= covered / ROUNDS <= 0.99


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
def test_items_that_stand_alone_have_the_usual_error(seed, n):
    scores = np.random.default_rng(seed).random(n)
    found = clusters.spread_of(scores)
    assert found.error == pytest.approx(stats.sem(scores))
    assert (found.df, found.n_clusters) == (pytest.approx(n - 1), n)
    assert found.effective == pytest.approx(n)


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 5))
def test_equal_clusters_have_the_error_of_their_means(seed, n_clusters, size):
    """Of clusters of one size the clustered error is that of the mean of cluster means."""
    scores = np.random.default_rng(seed).random((n_clusters, size))
    cluster = np.repeat(np.arange(n_clusters), size)
    found = clusters.spread_of(scores.ravel(), cluster)
    assert found.error == pytest.approx(stats.sem(scores.mean(axis=1)), abs=1e-12)
    assert found.df == pytest.approx(n_clusters - 1)


@pytest.mark.parametrize("n", sampled(3, [2, 3, 5, 10, 20, 29, 30, 60]))
def test_the_interval_of_a_few_graded_scores_covers(n):
    """Scores between 0 and 1, such as F1 or a mean of epochs, every item alone."""
    rng = np.random.default_rng(n)
    covered = 0
    for seed in range(ROUNDS):
        found = clusters.interval_of(rng.beta(2, 2, n), seed=seed)
        assert 0 <= found.low <= found.estimate <= found.high <= 1
        covered += found.low <= 0.5 <= found.high
    assert covered / ROUNDS >= LEAST


@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda rng, n: rng.lognormal(0, 1, n), np.exp(0.5)),
        (lambda rng, n: rng.beta(0.3, 3, n), 0.3 / 3.3),
        (lambda rng, n: np.where(rng.random(n) < 0.7, 0, rng.beta(2, 2, n)), 0.15),
    ],
    ids=["losses", "low shares", "mostly 0"],
)
def test_intervals_of_skewed_scores_hold_their_mean(draw, mean):
    rng = np.random.default_rng(1)
    held = []
    for _ in range(400):
        found = clusters.interval_of(draw(rng, 40))
        held.append(found.low <= mean <= found.high)
    # .93, and 3 standard errors; percentile limits hold it in .87 to .91.
    assert np.mean(held) > 0.93 - 3 * np.sqrt(0.05 * 0.95 / 400)
