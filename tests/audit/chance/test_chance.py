"""Calibration by decoys keeps its promises; readers' labels are weighed as they should be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.audit.chance import fdr
from contam.audit.review import labels

scores = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=1, max_size=40)


@given(scores, scores)
def test_a_higher_score_never_has_a_higher_q(targets, decoys):
    found = fdr.calibrate(np.array(targets), np.array(decoys))
    order = np.argsort(targets, kind="stable")
    assert (np.diff(found.q[order]) <= 1e-12).all()
    assert ((found.q >= 0) & (found.q <= 1)).all()
    for score in set(targets):
        same = found.q[np.array(targets) == score]
        assert np.ptp(same) == 0


@given(scores, scores)
def test_q_is_the_least_fdr_of_any_threshold_that_accepts_the_item(targets, decoys):
    found = fdr.calibrate(np.array(targets), np.array(decoys))
    for i, score in enumerate(targets):
        best = 1.0
        for t in set(targets):
            if t <= score:
                n_targets = sum(x >= t for x in targets)
                n_decoys = sum(x >= t for x in decoys)
                share = (n_decoys + 1) * len(targets) / len(decoys) / n_targets
                best = min(best, share)
        assert found.q[i] == pytest.approx(best)


def test_the_claimed_share_of_chance_holds_on_average():
    rng = np.random.default_rng(11)
    shares = []
    for _ in range(300):
        null, leaked = rng.normal(0, 1, 80), rng.normal(4, 1, 20)
        found = fdr.calibrate(np.concatenate([null, leaked]), rng.normal(0, 1, 400))
        accepted = found.q <= 0.1
        shares.append(accepted[:80].sum() / max(1, accepted.sum()))
    assert np.mean(shares) <= 0.1
    assert np.mean(shares) > 0.01


def test_held_out_decoys_expose_decoys_that_were_too_easy():
    rng = np.random.default_rng(8)
    targets = np.concatenate([rng.normal(0, 1, 300), rng.normal(6, 1, 100)])
    held_out = rng.normal(0, 1, 300)
    honest = fdr.entrap(targets, rng.normal(0, 1, 2000), held_out, claimed=0.1)
    assert honest.holds
    too_easy = fdr.entrap(targets, rng.normal(-3, 1, 2000), held_out, claimed=0.1)
    assert not too_easy.holds
    assert too_easy.n_held_out > too_easy.expected


def test_no_claim_without_decoys():
    with pytest.raises(ValueError, match="targets and decoys"):
        fdr.calibrate(np.array([0.5]), np.array([]))
    assert fdr.smallest_claim(9, 20, 20) == pytest.approx(1 / 9)


def test_a_perfect_proxy_gives_the_mean_of_all():
    rng = np.random.default_rng(3)
    proxy, rest = rng.random(200) < 0.3, rng.random(5000) < 0.3
    found = labels.powered(proxy.astype(float), proxy.astype(float), rest.astype(float))
    assert found.weight > 0.8
    assert found.interval.high - found.interval.low < 0.04
    alone = labels.powered(proxy.astype(float), proxy.astype(float), rest.astype(float), weight=0)
    assert alone.interval.high - alone.interval.low > 0.1


def test_intervals_of_the_corrected_rate_cover_the_truth():
    rng = np.random.default_rng(17)
    covered = 0
    runs = 1000
    for _ in range(runs):
        truth = rng.random(2000) < 0.3
        proxy = np.where(rng.random(2000) < 0.85, truth, ~truth).astype(float)
        gold = truth[:150].astype(float)
        found = labels.powered(gold, proxy[:150], proxy[150:]).interval
        covered += found.low <= 0.3 <= found.high
    # Three standard errors of the Monte Carlo, and what 150 labels lose against the normal limit.
    assert 0.92 <= covered / runs <= 0.975


def test_too_few_labels_are_refused():
    with pytest.raises(ValueError, match="1 labels"):
        labels.powered(np.ones(1), np.ones(1), np.ones(10))


def test_kappa_by_hand():
    # Agreement .7, by chance .5 * .6 + .5 * .4 = .5.
    first = [True] * 5 + [False] * 5
    second = [True, True, True, True, False, False, False, False, True, True]
    assert labels.kappa(first, second) == pytest.approx((0.7 - 0.5) / 0.5)
    assert labels.kappa(first, first) == 1
    assert np.isnan(labels.kappa([True] * 3, [True] * 3))
    with pytest.raises(ValueError, match="beside"):
        labels.kappa([True], [])
