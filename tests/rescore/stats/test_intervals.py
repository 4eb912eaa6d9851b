"""Intervals of scores and gains: what they cover when items rise and fall together, by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from contam.rescore.stats import clusters, intervals

ROUNDS = 400
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


def answers(rng, sizes, p, within):
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
        found = intervals.interval_of(answers(rng, sizes, p, within), cluster)
        assert 0 <= found.low <= found.estimate <= found.high <= 1
        covered += found.low <= p <= found.high
    assert covered / ROUNDS >= LEAST


def test_one_pair_of_copies_hardly_moves_an_interval():
    """99 of 100 items stand alone: the interval is Wilson's on 99 to 100 items."""
    rng = np.random.default_rng(0)
    scores = (rng.random(100) < 0.95).astype(float)
    cluster = np.append(np.arange(99), 98)
    plain, paired = intervals.interval_of(scores), intervals.interval_of(scores, cluster)
    assert paired.method == "Wilson over clusters"
    assert (paired.low, paired.high) == pytest.approx((plain.low, plain.high), abs=0.01)


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
        scores = answers(rng, sizes, p, 0.2)
        scores[flagged & (rng.random(n) < leak / (1 - p))] = 1.0
        found = intervals.gain_interval(scores, ~flagged, cluster)
        assert found.low <= found.estimate <= found.high
        covered += found.low <= flagged.mean() * leak <= found.high
    assert covered / ROUNDS >= LEAST


@given(st.integers(0, 2**32 - 1), st.integers(2, 80), st.booleans(), st.booleans())
def test_a_gain_is_full_less_clean_and_lies_within_its_limits(seed, n, binary, grouped):
    rng = np.random.default_rng(seed)
    scores = (rng.random(n) < 0.6).astype(float) if binary else rng.normal(3, 2, n)
    clean = rng.random(n) < rng.random()
    cluster = rng.integers(0, max(1, n // 3), n) if grouped else None
    found = intervals.gain_interval(scores, clean, cluster)
    if not clean.any():
        assert np.isnan(found.estimate)
        return
    assert found.estimate == scores.mean() - scores[clean].mean()
    if clean.all():
        assert (found.low, found.high) == (0, 0)
    elif not np.isnan(found.low):
        # Percentile limits need not hold the mean itself where few items are left.
        slack = 0 if binary else 1e-9 + np.ptp(scores)
        assert found.low - slack <= found.estimate <= found.high + slack


def test_without_clusters_a_gain_has_newcombe_s_limits_times_the_share():
    scores = np.repeat([1.0, 0.0, 1.0, 0.0], [30, 10, 25, 35])
    clean = np.arange(100) >= 40
    found = intervals.gain_interval(scores, clean)
    low, high = intervals.newcombe((30, 40), (25, 60))
    assert (found.low, found.high) == pytest.approx((0.4 * low, 0.4 * high), abs=1e-12)


@pytest.mark.parametrize("grouped", [True, False])
def test_the_gain_of_a_metric_that_is_no_mean_has_an_interval_that_covers(grouped):
    """A ratio of sums, as F1 is: what is left out by whole passages comes back as its error."""
    cluster = np.repeat(np.arange(60), 4) if grouped else None
    covered = 0
    for seed in range(ROUNDS):
        rng = np.random.default_rng(seed)
        hits = answers(rng, np.full(60, 4), 0.5, 0.2 if grouped else 0)
        sizes = rng.integers(1, 6, 240).astype(float)
        flagged = np.repeat(rng.permutation(60) < 20, 4)

        def ratio(mask, hits=hits, sizes=sizes):
            return float(hits[mask] @ sizes[mask] / sizes[mask].sum())

        whole = np.ones(240, bool)
        found = intervals.jackknife_gain(ratio, whole, ~flagged, cluster)
        assert found.estimate == ratio(whole) - ratio(~flagged)
        covered += found.low <= 0 <= found.high
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


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20, 29, 30, 60])
def test_the_interval_of_a_few_graded_scores_covers(n):
    """Scores between 0 and 1, such as F1 or a mean of epochs, every item alone."""
    rng = np.random.default_rng(n)
    covered = 0
    for seed in range(ROUNDS):
        found = intervals.interval_of(rng.beta(2, 2, n), seed=seed)
        assert 0 <= found.low <= found.estimate <= found.high <= 1
        covered += found.low <= 0.5 <= found.high
    assert covered / ROUNDS >= LEAST


@pytest.mark.parametrize("scores", [[0.5], [7.0], [-0.25], [7.0, 7.0, 7.0]])
def test_scores_without_a_spread_have_no_limits(scores):
    found = intervals.interval_of(np.array(scores))
    assert found.estimate == scores[0]
    assert np.isnan([found.low, found.high]).all()
    assert found.method in {"one item only", "no spread between items"}


@pytest.mark.parametrize("n", [2, 40])
def test_equal_shares_are_no_certainty(n):
    found = intervals.interval_of(np.full(n, 0.5))
    low, high = intervals.wilson(n / 2, n)
    assert 0 < found.low <= low < high <= found.high < 1


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
)
def test_a_gain_over_a_few_clean_items_is_never_sure(rest, clean):
    scores = np.array([*rest, *clean])
    mask = np.arange(len(scores)) >= len(rest)
    found = intervals.gain_interval(scores, mask)
    own = intervals.interval_of(np.array(clean))
    assert np.isnan(found.low) or found.high - found.low > 0
    if len(clean) == 1 and clean[0] not in (0, 1):
        assert np.isnan([own.low, own.high, found.low, found.high]).all()
