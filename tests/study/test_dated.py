"""Scores by date: published problems, and size and coverage by simulation."""

import csv
import datetime as dt

import numpy as np
import pytest
from scipy import stats

from contam.study import dated


@pytest.fixture(scope="module")
def problems(shared):
    path = shared / "published" / "livecodebench_2024_02_26_items.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows, model):
    return np.array([float(row[model]) / 100 for row in rows])


def days(rows):
    return np.array([dt.date.fromisoformat(row["date"]).toordinal() for row in rows])


def within(expected, n):
    """What a share of n draws may be: three Monte Carlo errors around what it should be."""
    return pytest.approx(expected, abs=3 * np.sqrt(expected * (1 - expected) / n))


def test_the_drop_is_welchs():
    rng = np.random.default_rng(0)
    a, b = rng.random(40), rng.random(25) * 2
    found = dated.drop(a, b)
    theirs = stats.ttest_ind(a, b, equal_var=False)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert found.limits() == pytest.approx(tuple(theirs.confidence_interval()), rel=1e-9)
    with pytest.raises(ValueError):
        dated.drop(a, b[:1])


def test_deepseek_falls_after_its_cutoff_and_gpt_4_does_not_fall_more(problems):
    """The published reading of the set: DeepSeek's models fall after August 2023."""
    cutoff = dt.date(2023, 8, 31).toordinal()
    leetcode = [row for row in problems if row["platform"] == "leetcode"]
    before = days(leetcode) <= cutoff
    fallen, steady = column(leetcode, "DSCoder-33b-Ins"), column(leetcode, "GPT-4-Turbo-1106")
    own = dated.drop(fallen[before], fallen[~before])
    assert own.value == pytest.approx(fallen[before].mean() - fallen[~before].mean())
    assert own.p < 0.001
    less = fallen - steady
    both = dated.drop(less[before], less[~before])
    assert both.value == pytest.approx(
        own.value - (steady[before].mean() - steady[~before].mean()), abs=1e-12
    )


def test_strata_take_off_a_change_in_the_mix_of_problems():
    rng = np.random.default_rng(3)
    n, hit, plain = 600, 0, 0
    for _ in range(n):
        sides = []
        for share in (0.8, 0.3):
            easy = rng.random(80) < share
            sides.append(
                ((rng.random(80) < np.where(easy, 0.8, 0.3)).astype(float), easy.astype(int))
            )
        (a, first), (b, second) = sides
        found, share = dated.stratified_drop(a, b, (first, second))
        low, high = found.limits()
        hit += low <= 0 <= high
        plain += dated.drop(a, b).p <= 0.05
        assert share == 1.0
    assert hit / n == within(0.95, n)
    assert plain / n > 0.5
    nowhere, share = dated.stratified_drop(a, b, (np.zeros(80, int), np.ones(80, int)))
    assert np.isnan(nowhere.value)
    assert share == 0.0


def test_the_scan_pays_for_its_search():
    """Under no effect the smallest p of all cutoffs is small too often; the permuted one is not."""
    rng = np.random.default_rng(4)
    n, hits = 300, 0
    for seed in range(n):
        day = np.sort(rng.integers(0, 200, 120))
        strata = rng.integers(0, 3, 120)
        scores = rng.random(120) < 0.2 + 0.3 * strata
        found = dated.scan(scores.astype(float), day, strata=strata, permutations=99, seed=seed)
        hits += found.p <= 0.05
    assert hits / n <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)


def test_the_scan_finds_a_planted_cutoff_and_its_sign():
    rng = np.random.default_rng(6)
    day = np.sort(rng.integers(0, 365, 600))
    scores = (rng.random(600) < np.where(day <= 140, 0.7, 0.4)).astype(float)
    found = dated.scan(scores, day, permutations=199)
    assert abs(found.day - 140) <= 12
    assert found.z > 0
    assert found.p == pytest.approx(1 / 200)
    risen = dated.scan(1 - scores, day, permutations=199)
    assert (risen.day, risen.z) == (found.day, pytest.approx(-found.z))
    assert dated.scan(scores[:30], day[:30]) is None
    assert dated.scan(np.ones(600), day) is None


def test_a_cohort_is_out_by_chance_as_rarely_as_three_sigmas_say():
    rng = np.random.default_rng(7)
    n, outs, cohorts = 1_500, 0, 6
    cohort = np.repeat(np.arange(cohorts), [20, 8, 30, 15, 25, 12])
    for _ in range(n):
        outs += int(dated.control_chart(rng.normal(size=len(cohort)), cohort).out.sum())
    assert outs / (n * cohorts) == within(0.0027, n * cohorts)


def test_a_chart_judges_exposed_cohorts_by_the_others():
    rng = np.random.default_rng(8)
    cohort = np.repeat(np.arange(8), 60)
    scores = (rng.random(480) < np.where(cohort < 4, 0.8, 0.4)).astype(float)
    after = np.arange(8) >= 4
    found = dated.control_chart(scores, cohort, after)
    assert found.out.tolist() == [True] * 4 + [False] * 4
    assert found.centre[:4] == pytest.approx(scores[cohort >= 4].mean())
    assert found.centre[5] == pytest.approx(scores[(cohort >= 4) & (cohort != 5)].mean())
    single = dated.control_chart(np.array([1.0, 0.0, 1.0]), np.array([0, 1, 1]))
    assert np.isnan(single.low[0])
    assert not single.out[0]
