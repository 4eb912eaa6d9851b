"""Tests of flags: exact where they can be, drawn as long as needed, by whole clusters, in a family."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from contam.rescore.panel import RescoreSettings
from contam.rescore.stats import permutation
from contam.rescore.tables import families, score_rows
from contam.tables import schemas
from tests.matrix import sampled
from tests.rescore.panels import flags_of, series_of, tables_of

SEEDS = st.integers(0, 2**32 - 1)


def consistent(found):
    return np.isnan(found.low) or (found.p < 0.05) == (found.low > 0 or found.high < 0)


@given(SEEDS, st.integers(4, 300))
def test_for_right_and_wrong_the_law_is_hypergeometric(seed, n):
    rng = np.random.default_rng(seed)
    scores = (rng.random(n) < rng.random()).astype(float)
    flagged = rng.random(n) < rng.random()
    flagged[0], flagged[-1] = True, False
    found = permutation.permutation_test(scores, flagged, permutations=99, seed=0)
    k, right = int(flagged.sum()), int(scores.sum())

    def apart(among):
        shares = [(among + 1) / (k + 2), (right - among + 1) / (n - k + 2)]
        squares = [p * (1 - p) / of for p, of in zip(shares, (k + 2, n - k + 2), strict=True)]
        return abs(among / k - (right - among) / (n - k)) / np.sqrt(sum(squares))

    own = apart(int(scores[flagged].sum()))
    ways = range(max(0, k - (n - right)), min(k, right) + 1)
    p = sum(stats.hypergeom.pmf(j, n, right, k) for j in ways if apart(j) >= own * (1 - 1e-9))
    assert found.how == "exact"
    assert found.p == pytest.approx(p, rel=1e-6)
    assert found.low <= found.gap <= found.high
    assert consistent(found)


@pytest.mark.parametrize("unit", [2.0**53, 2.0**63, -(2.0**64), 1e300])
def test_whole_scores_beyond_all_counting_are_drawn(unit):
    scores = (np.random.default_rng(0).random(40) < 0.5) * unit
    found = permutation.permutation_test(scores, np.arange(40) < 7, permutations=999, seed=1)
    same = permutation.permutation_test(scores / unit, np.arange(40) < 7, permutations=999, seed=1)
    assert found.how == "999 draws"
    assert found.p == pytest.approx(same.p, abs=0.1)


def by_hand(scores, flagged, cluster):
    """Every way for whole clusters of one size to swap their flags, one by one."""
    names = np.unique(cluster)
    places = [np.flatnonzero(cluster == name) for name in names]
    gaps, errors = [], []
    for order in itertools.permutations(range(len(names))):
        if any(len(places[at]) != len(places[other]) for at, other in enumerate(order)):
            continue
        dealt = flagged.copy()
        for at, other in enumerate(order):
            dealt[places[at]] = flagged[places[other]]
        means = [scores[side].mean() for side in (dealt, ~dealt)]
        gaps.append(means[0] - means[1])
        rest = np.where(dealt, (scores - means[0]) / dealt.sum(), (means[1] - scores) / sum(~dealt))
        errors.append(sum(rest[own].sum() ** 2 for own in places))
    apart = np.abs(gaps) / np.sqrt(np.array(errors) + np.var(gaps) / len(names))
    return np.mean(apart >= apart[0] * (1 - 1e-9))


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_whole_clusters_swap_their_flags_in_every_way(seed, mixed):
    rng = np.random.default_rng(seed)
    sizes = np.array([2, 2, 2, 1, 1, 1, 1])
    cluster = np.repeat(np.arange(7), sizes)
    scores = rng.random(10)
    flagged = np.repeat([True, False, False, True, True, False, False], sizes)
    if mixed:
        flagged[1] = False
    found = permutation.permutation_test(
        scores, flagged, permutations=9_999, seed=0, cluster=cluster
    )
    assert found.p == pytest.approx(by_hand(scores, flagged, cluster), abs=0.03)
    assert found.gap == pytest.approx(scores[flagged].mean() - scores[~flagged].mean())


@given(SEEDS, st.integers(2, 90), st.booleans(), st.booleans())
def test_an_interval_leaves_0_out_if_and_only_if_p_is_below_a_twentieth(seed, n, real, grouped):
    rng = np.random.default_rng(seed)
    flagged = rng.random(n) < rng.random()
    flagged[0], flagged[-1] = True, False
    scores = rng.random(n) if real else (rng.random(n) < 0.6).astype(float)
    scores[flagged] = np.maximum(scores[flagged], rng.random(flagged.sum()) < rng.random())
    cluster = rng.integers(0, max(2, n // 2), n) if grouped else None
    found = permutation.permutation_test(
        scores, flagged, permutations=199, seed=seed, cluster=cluster
    )
    assert consistent(found)
    assert np.isnan(found.low) or -1 <= found.low <= found.gap <= found.high <= 1


def test_a_far_tail_keeps_its_digits():
    scores = np.repeat([1.0, 0.0], 100)
    found = permutation.permutation_test(scores, scores == 1, permutations=10, seed=0)
    assert found.p == pytest.approx(stats.fisher_exact([[100, 0], [0, 100]]).pvalue, rel=1e-9)
    assert found.p == pytest.approx(2.2e-59, rel=0.01)


@given(st.integers(1, 100_000), st.integers(1, 500))
def test_a_family_gets_the_draws_that_can_reject_in_it(family, first):
    """Where no draw reaches it, Holm's first step must be able to reject: family * p < 0.05."""
    found = permutation.drawn_p(lambda _: 0, first, permutation.most_draws(family))
    assert found.p * family < 0.05 or permutation.most_draws(family) == 1_000_000


@pytest.mark.parametrize(("real", "whole"), sampled(3, itertools.product([True, False], repeat=2)))
def test_no_leak_no_alarm_whatever_the_clusters(whole, real):
    n, rejected = 200, 0
    sizes = np.repeat([1, 2, 4], 20)
    cluster = np.repeat(np.arange(60), sizes)
    for seed in range(n):
        rng = np.random.default_rng(seed)
        skill = np.repeat(rng.beta(1, 1, 60), sizes)
        scores = skill + rng.normal(0, 0.1, len(cluster)) if real else rng.random(140) < skill
        flagged = np.repeat(rng.random(60) < 0.4, sizes) if whole else rng.random(140) < 0.4
        found = permutation.permutation_test(
            scores.astype(float), flagged, permutations=199, seed=seed, cluster=cluster
        )
        rejected += found.p <= 0.05
    assert rejected / n <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / n)


def rows_of(tables, name="scores", **chosen):
    return [
        row
        for row in schemas.rows(tables[name])
        if all(row[key] == value for key, value in chosen.items())
    ]


@pytest.fixture(scope="module", params=[4, pytest.param(300, marks=pytest.mark.slow)])
def panel(request):
    """Models that are right or wrong at random by two metrics, and one that leaks by both."""
    rng = np.random.default_rng(1)
    flags = flags_of(["contaminated"] * 100 + ["clean"] * 100, subject=np.repeat(["x"], 200))
    leak = np.repeat([1.0, 0.0], 100)
    series = []
    for metric in ("score", "another"):
        series += [
            series_of((rng.random(200) < 0.5).astype(float), model=f"m{at}", metric=metric)
            for at in range(request.param)
        ]
        series.append(series_of(leak, model="leak", metric=metric))
    settings = RescoreSettings(permutations=199, draws=20, sweep_permutations=199)
    primary = {"b": "score"}
    return score_rows(series, [flags], settings, primary)


def test_one_leak_among_many_models_is_found_after_adjustment(panel):
    for row in panel:
        if row["model"] == "leak" and row["subset_by"] == "all":
            assert row["gap_p"] == pytest.approx(2.2e-59, rel=0.01)
            assert max(row["gap_p_holm"], row["gap_p_bh"]) < 1e-50


def test_other_metrics_make_no_claim_of_the_primary_one_weaker(panel):
    found = {
        metric: [row for row in panel if row["metric"] == metric and row["subset_by"] == "all"]
        for metric in ("score", "another")
    }
    n = len({row["model"] for row in panel})
    told = [one for one in families(panel) if one["subset_by"] == "all"]
    assert {one["primary"]: one["tests"] for one in told} == {True: n, False: n}
    assert {how for one in told for how in one["gap_tests"]} == {"exact"}
    for rows in found.values():
        p = np.array([row["gap_p"] for row in rows])
        least = min(rows, key=lambda row: row["gap_p"])
        assert least["gap_p_holm"] == pytest.approx(p.min() * n)


def test_clustered_draws_can_reject_in_a_large_family():
    """By clusters p is drawn; its floor must lie below what Holm asks of 600 models."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(80), 3)
    flagged = rng.random(240) < 0.4
    scores = np.where(flagged, 1.0, 0.0)
    found = permutation.permutation_test(
        scores, flagged, permutations=99, seed=0, family=600, cluster=cluster
    )
    assert found.how.endswith("draws")
    assert 600 * found.p < 0.05


def test_every_raw_p_has_an_adjusted_one_beside_it():
    rng = np.random.default_rng(2)
    flags = flags_of(
        ["contaminated"] * 80 + ["clean"] * 120,
        contamination=rng.random(200),
        subject=np.repeat(["x", "y"], 100),
        exposure=np.array(["question"] * 80 + [""] * 120, object),
    )
    series = [
        series_of((rng.random(200) < 0.6).astype(float), model=f"m{at}", benchmark=name)
        for at in range(4)
        for name in ("a", "b")
    ]
    settings = RescoreSettings(
        permutations=99, draws=20, sweep_permutations=99, least=10, references=("m0", "m1")
    )
    tables = tables_of(series, [flags], settings)
    raw = {
        "scores": ["gap_p", "adjusted_p"],
        "rankings": ["deletion_p"],
        "pairs": ["p_full", "p_clean"],
        "sweep": ["best_p"],
    }
    for name, columns in raw.items():
        for column in columns:
            rows = [row for row in schemas.rows(tables[name]) if row[column] is not None]
            assert rows, (name, column)
            for row in rows:
                assert row[column] - 1e-12 <= row[f"{column}_holm"] <= 1, (name, column)
    subsets = [row for row in rows_of(tables) if row["subset_by"] in ("subject", "exposure")]
    assert any(row["gap_p"] is not None for row in subsets)
