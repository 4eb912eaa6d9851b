"""Tests of flags: exact where they can be, drawn as long as needed, by whole clusters, in a family."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from contam.rescore.panel import RescoreSettings
from contam.rescore.stats import dealing
from contam.rescore.tables import families, score_rows
from contam.tables import schemas
from tests.rescore.panels import flags_of, series_of, tables_of

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(4, 300))
def test_for_right_and_wrong_it_is_fisher_s_exact_test(seed, n):
    rng = np.random.default_rng(seed)
    scores = (rng.random(n) < rng.random()).astype(float)
    flagged = rng.random(n) < rng.random()
    flagged[0], flagged[-1] = True, False
    found = dealing.deal(scores, flagged, permutations=99, seed=0)
    right, wrong = ((scores == value) for value in (1, 0))
    table = [[np.sum(one & two) for two in (right, wrong)] for one in (flagged, ~flagged)]
    assert found.how == "exact"
    assert found.p == pytest.approx(stats.fisher_exact(table).pvalue, rel=1e-6)


@pytest.mark.parametrize("unit", [2.0**53, 2.0**63, -(2.0**64), 1e300])
def test_whole_scores_beyond_all_counting_are_drawn(unit):
    scores = (np.random.default_rng(0).random(40) < 0.5) * unit
    found = dealing.deal(scores, np.arange(40) < 7, permutations=999, seed=1)
    same = dealing.deal(scores / unit, np.arange(40) < 7, permutations=999, seed=1)
    assert found.how == "999 draws"
    assert found.p == pytest.approx(same.p, abs=0.1)


def by_hand(scores, flagged, cluster):
    """Every way for whole clusters of one size to swap their flags, one by one."""
    names = np.unique(cluster)
    sizes = [int(np.sum(cluster == name)) for name in names]
    sums = []
    for order in itertools.permutations(range(len(names))):
        if any(sizes[at] != sizes[other] for at, other in enumerate(order)):
            continue
        sums.append(
            sum(
                float(scores[cluster == names[at]] @ flagged[cluster == names[other]])
                for at, other in enumerate(order)
            )
        )
    values, counts = np.unique(sums, return_counts=True)
    own = counts[values == float(scores @ flagged)]
    return counts[counts <= own].sum() / len(sums)


@given(SEEDS, st.integers(2, 6))
def test_whole_clusters_swap_their_flags_in_every_way(seed, n_clusters):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 3, n_clusters)
    cluster = np.repeat(np.arange(n_clusters), sizes)
    scores = (rng.random(len(cluster)) < 0.5).astype(float)
    flagged = np.repeat(rng.random(n_clusters) < 0.5, sizes)
    found = dealing.deal(scores, flagged, permutations=99, seed=0, cluster=cluster)
    if found.how == "exact":
        assert found.p == pytest.approx(by_hand(scores, flagged, cluster))
    else:
        assert np.isnan(found.p)


@given(SEEDS, st.integers(2, 9), st.integers(2, 5))
def test_the_law_of_a_sum_is_that_of_all_subsets(seed, n, most):
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, most, n)
    k = int(rng.integers(1, n))
    least, chances = dealing._subset_sums(values, k)
    sums = [int(sum(some)) for some in itertools.combinations(values.tolist(), k)]
    for at, chance in enumerate(chances):
        assert chance == pytest.approx(sums.count(least + at) / len(sums), abs=1e-12)


def test_exact_strata_are_the_law_of_all_ways_to_deal_within_them():
    scores = np.array([1, 1, 0, 0, 1, 0, 1, 1, 0], float)
    flagged = np.array([1, 1, 0, 0, 1, 0, 0, 0, 0], bool)
    strata = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    found = dealing.deal(scores, flagged, permutations=99, seed=0, strata=strata)
    sums = [
        scores[list(first)].sum() + scores[4 + second]
        for first in itertools.combinations(range(4), 2)
        for second in range(5)
    ]
    counts = {value: sums.count(value) for value in set(sums)}
    own = counts[scores[flagged].sum()]
    assert found.p == pytest.approx(sum(c for c in counts.values() if c <= own) / len(sums))


def test_a_far_tail_keeps_its_digits():
    scores = np.repeat([1.0, 0.0], 100)
    found = dealing.deal(scores, scores == 1, permutations=10, seed=0)
    assert found.p == pytest.approx(stats.fisher_exact([[100, 0], [0, 100]]).pvalue, rel=1e-9)
    assert found.p == pytest.approx(2.2e-59, rel=0.01)


@pytest.mark.slow
def test_draws_go_on_until_a_small_p_is_resolved():
    """Real scores, a leak of moderate size: more draws than the first ones, and the same p."""
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 12, 400) / 12
    flagged = np.arange(400) < 100
    scores[flagged] += 0.115
    few = dealing.deal(scores, flagged, permutations=500, seed=0, family=1)
    many = dealing.deal(scores, flagged, permutations=500, seed=0, family=1_000)
    reference = dealing.deal(scores, flagged, permutations=1_000_000, seed=9, family=1)
    assert int(few.how.split()[0]) < int(many.how.split()[0]) <= dealing.most_draws(1_000)
    assert reference.p < 0.005
    assert many.p == pytest.approx(reference.p, rel=0.5)


def test_draws_end_where_p_is_large():
    asked = []

    def hits_in(draws):
        asked.append(draws)
        return draws // 2

    found = dealing.drawn_p(hits_in, 1_000, 1_000_000)
    assert asked == [1_000]
    assert found.p == pytest.approx(0.5, abs=0.001)


@given(st.integers(1, 100_000), st.integers(1, 500))
def test_a_family_gets_the_draws_that_can_reject_in_it(family, first):
    """Where no draw reaches it, Holm's first step must be able to reject: family * p < 0.05."""
    found = dealing.drawn_p(lambda _: 0, first, dealing.most_draws(family))
    assert found.p * family < 0.05 or dealing.most_draws(family) == 1_000_000


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("real", [True, False])
def test_no_leak_no_alarm_whatever_the_clusters(whole, real):
    rejected = 0
    sizes = np.repeat([1, 2, 4], 20)
    cluster = np.repeat(np.arange(60), sizes)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        skill = np.repeat(rng.beta(1, 1, 60), sizes)
        scores = skill + rng.normal(0, 0.1, len(cluster)) if real else rng.random(140) < skill
        flagged = np.repeat(rng.random(60) < 0.4, sizes) if whole else rng.random(140) < 0.4
        found = dealing.deal(
            scores.astype(float), flagged, permutations=199, seed=seed, cluster=cluster
        )
        rejected += found.p <= 0.05
    assert rejected / 400 <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)


def rows_of(tables, name="scores", **chosen):
    return [
        row
        for row in schemas.rows(tables[name])
        if all(row[key] == value for key, value in chosen.items())
    ]


@pytest.fixture(scope="module")
def panel():
    """300 models that are right or wrong at random by two metrics, and one that leaks by both."""
    rng = np.random.default_rng(1)
    flags = flags_of(["contaminated"] * 100 + ["clean"] * 100, subject=np.repeat(["x"], 200))
    leak = np.repeat([1.0, 0.0], 100)
    series = []
    for metric in ("score", "another"):
        series += [
            series_of((rng.random(200) < 0.5).astype(float), model=f"m{at}", metric=metric)
            for at in range(300)
        ]
        series.append(series_of(leak, model="leak", metric=metric))
    settings = RescoreSettings(permutations=199, draws=20, sweep_permutations=199)
    primary = {"b": "score"}
    return score_rows(series, [flags], settings, primary)


def test_one_leak_among_hundreds_of_models_is_found_after_adjustment(panel):
    for row in panel:
        if row["model"] == "leak" and row["subset_by"] == "all":
            assert row["gain_p"] == pytest.approx(2.2e-59, rel=0.01)
            assert max(row["gain_p_holm"], row["gain_p_bh"], row["epg_p_holm"]) < 1e-50


def test_other_metrics_make_no_claim_of_the_primary_one_weaker(panel):
    found = {
        metric: [row for row in panel if row["metric"] == metric and row["subset_by"] == "all"]
        for metric in ("score", "another")
    }
    told = [one for one in families(panel) if one["subset_by"] == "all"]
    assert {one["primary"]: one["tests"] for one in told} == {True: 301, False: 301}
    assert {how for one in told for how in one["gain_tests"]} == {"exact"}
    for rows in found.values():
        p = np.array([row["gain_p"] for row in rows])
        least = min(rows, key=lambda row: row["gain_p"])
        assert least["gain_p_holm"] == pytest.approx(p.min() * 301)


def test_clustered_draws_can_reject_in_a_large_family():
    """By clusters p is drawn; its floor must lie below what Holm asks of 600 models."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(80), 3)
    flagged = rng.random(240) < 0.4
    scores = np.where(flagged, 1.0, 0.0)
    found = dealing.deal(scores, flagged, permutations=99, seed=0, family=600, cluster=cluster)
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
        "scores": ["gain_p", "adjusted_p"],
        "as_published": ["epg_p"],
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
    assert any(row["gain_p"] is not None for row in subsets)
