"""Tests of log-probabilities: the published answers, and size and coverage by simulation."""

import json

import numpy as np
import pytest
from scipy import stats

from contam.study.stats import logprobs


@pytest.fixture(scope="module")
def expected(shared):
    return json.loads((shared / "published" / "expected.json").read_text())


def test_must_sharded_rank_test_oracle(expected):
    case = expected["sharded_rank_test_oracle"]
    found = logprobs.exchangeability(np.array(case["canonical"]), np.array(case["shuffled"]))
    assert found.difference == pytest.approx(case["diffs"], abs=1e-9)
    assert found.t == pytest.approx(case["t_ddof1"], rel=1e-6)
    assert found.p == pytest.approx(case["p_ddof1"], rel=1e-6)
    assert found.t_ddof0 == pytest.approx(case["t_ddof0_released_code"], rel=1e-6)
    assert found.p_ddof0 == pytest.approx(case["p_ddof0"], rel=1e-6)


def test_must_mink_oracle(expected):
    case = expected["mink_oracle"]
    values, mu, sigma = (np.array(case[name]) for name in ("token_logprobs", "mu", "sigma"))
    assert logprobs.min_k(values, 0.2) == pytest.approx(case["mink_20"], abs=1e-9) == -4.5
    assert values.mean() == pytest.approx(case["mean"], abs=1e-9) == -1.53
    assert logprobs.min_k_plus(values, mu, sigma, 0.2) == pytest.approx(case["minkpp_20"])
    assert np.isnan(logprobs.min_k(values[:4], 0.2))


def test_the_sharded_test_holds_its_size_and_ddof_0_does_not():
    rng = np.random.default_rng(5)
    n, r = 4_000, 6
    found = [
        logprobs.exchangeability(own[:, 0], own[:, 1:]) for own in rng.normal(size=(n, r, 20)) - 100
    ]
    error = 3 * np.sqrt(0.05 * 0.95 / n)
    assert np.mean([one.p <= 0.05 for one in found]) == pytest.approx(0.05, abs=error)
    assert np.mean([one.p_ddof0 <= 0.05 for one in found]) > 0.05 + error
    assert np.mean([one.permutation_p <= 0.05 for one in found]) <= 0.05 + error


def test_the_simple_version_is_one_over_the_orders_at_best_and_one_at_worst():
    shuffled = np.tile([-11.0, -12.0, -13.0], (2, 1))
    best, worst = (
        logprobs.exchangeability(np.array(own), shuffled) for own in ([-1, -9], [-20, -30])
    )
    assert (best.permutation_p, worst.permutation_p) == (0.25, 1.0)
    same = logprobs.exchangeability(np.array([-11.0, -12.0]), np.array([[-12.0], [-13.0]]))
    assert np.isnan(same.t)
    assert np.isnan(same.p)
    with pytest.raises(ValueError, match="two shards"):
        logprobs.exchangeability(np.array([-1.0]), np.array([[-2.0]]))


def test_separation_is_the_curve_of_the_released_code():
    """Its thresholds: the last point with FPR <= 5 %, the first with TPR >= 95 %; ties shared."""
    rng = np.random.default_rng(1)
    for shift, digits in ((0.0, 1), (0.5, 1), (2.0, 3)):
        member = rng.random(300) < 0.4
        scores = (rng.normal(size=300) + shift * member).round(digits)
        inside, outside = scores[member], scores[~member]
        found = logprobs.separation(scores, member)
        pairs = inside[:, None] - outside[None, :]
        assert found.auroc == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)
        points = [((outside >= cut).mean(), (inside >= cut).mean()) for cut in np.unique(scores)]
        assert found.tpr_at_fpr_05 == max([t for f, t in points if f <= 0.05], default=0.0)
        assert found.fpr_at_tpr_95 == min(f for f, t in points if t >= 0.95)


def test_the_limits_of_the_area_cover_it():
    rng = np.random.default_rng(2)
    shift, n = 0.7, 1_500
    area = stats.norm.cdf(shift / np.sqrt(2))
    member = np.arange(160) < 80
    hit = 0
    for scores in rng.normal(size=(n, 160)) + shift * member:
        found = logprobs.separation(scores, member)
        hit += found.auroc_low <= area <= found.auroc_high
    assert hit / n == pytest.approx(0.95, abs=3 * np.sqrt(0.05 * 0.95 / n))


def test_one_member_says_nothing():
    found = logprobs.separation(np.arange(5.0), np.arange(5) == 4)
    assert np.isnan(found.auroc)
