"""Calibration by decoys keeps its promises; readers' labels are weighed as they should be."""

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.audit import calibration, rates
from contam.audit.calibration import q_values
from contam.detect.labels import FLAGGED
from contam.detect.report import load_report
from contam.tables import schemas

scores = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=1, max_size=40)


@given(scores, scores)
def test_a_higher_score_never_has_a_higher_q(targets, decoys):
    found = calibration.calibrate(np.array(targets), np.array(decoys))
    order = np.argsort(targets, kind="stable")
    assert (np.diff(found.q[order]) <= 1e-12).all()
    assert ((found.q >= 0) & (found.q <= 1)).all()
    for score in set(targets):
        same = found.q[np.array(targets) == score]
        assert np.ptp(same) == 0


@given(scores, scores)
def test_q_is_the_least_fdr_of_any_threshold_that_accepts_the_item(targets, decoys):
    found = calibration.calibrate(np.array(targets), np.array(decoys))
    for i, score in enumerate(targets):
        best = 1.0
        for t in set(targets):
            if t <= score:
                n_targets = sum(x >= t for x in targets)
                n_decoys = sum(x >= t for x in decoys)
                share = (n_decoys + 1) * len(targets) / len(decoys) / n_targets
                best = min(best, share)
        assert found.q[i] == pytest.approx(best)


@pytest.mark.parametrize("rate", [0.002, 0.01, 0.05, 0.2])
def test_no_more_flags_are_chance_than_the_limit_says(rate):
    rng = np.random.default_rng(7)
    kept = 0
    for _ in range(2_000):
        items, clones = rng.random((2, 300)) < rate
        won = clones & (~items | (rng.random(300) < 0.5))
        n_scores = won.sum() + (won & items).sum()
        limit = calibration.at_most(int(won.sum()), float(n_scores), 300, 300)
        kept += limit >= 300 * rate
    assert kept / 2_000 >= 0.95 - 3 * 0.005


def test_without_a_decoy_found_the_limit_is_that_of_three():
    assert calibration.at_most(0, 0.0, 60, 120) == pytest.approx(2.9957 * 2, abs=1e-3)


def test_the_claimed_share_of_chance_holds_on_average():
    rng = np.random.default_rng(11)
    shares = []
    for _ in range(300):
        null, leaked = rng.normal(0, 1, 80), rng.normal(4, 1, 20)
        found = calibration.calibrate(np.concatenate([null, leaked]), rng.normal(0, 1, 400))
        accepted = found.q <= 0.1
        shares.append(accepted[:80].sum() / max(1, accepted.sum()))
    assert np.mean(shares) <= 0.1
    assert np.mean(shares) > 0.01


def test_held_out_decoys_expose_decoys_that_were_too_easy():
    rng = np.random.default_rng(8)
    targets = np.concatenate([rng.normal(0, 1, 300), rng.normal(6, 1, 100)])
    held_out = rng.normal(0, 1, 300)
    honest = calibration.entrap(targets, rng.normal(0, 1, 2000), held_out, claimed=0.1)
    assert honest.holds
    too_easy = calibration.entrap(targets, rng.normal(-3, 1, 2000), held_out, claimed=0.1)
    assert not too_easy.holds
    assert too_easy.n_held_out > too_easy.expected


def test_no_claim_without_decoys():
    with pytest.raises(ValueError, match="decoys"):
        calibration.calibrate(np.array([0.5]), np.array([]))
    assert calibration.smallest_claim(9, 20, 20) == pytest.approx(1 / 9)


def test_a_perfect_proxy_gives_the_mean_of_all():
    rng = np.random.default_rng(3)
    proxy, rest = rng.random(200) < 0.3, rng.random(5000) < 0.3
    found = rates.powered(proxy.astype(float), proxy.astype(float), rest.astype(float))
    assert found.weight > 0.8
    assert found.interval.high - found.interval.low < 0.04
    alone = rates.powered(proxy.astype(float), proxy.astype(float), rest.astype(float), weight=0)
    assert alone.interval.high - alone.interval.low > 0.1


def test_intervals_of_the_corrected_rate_cover_the_truth():
    rng = np.random.default_rng(17)
    covered = 0
    runs = 1000
    for _ in range(runs):
        truth = rng.random(2000) < 0.3
        proxy = np.where(rng.random(2000) < 0.85, truth, ~truth).astype(float)
        gold = truth[:150].astype(float)
        found = rates.powered(gold, proxy[:150], proxy[150:]).interval
        covered += found.low <= 0.3 <= found.high
    # Three standard errors of the Monte Carlo, and what 150 labels lose against the normal limit.
    assert 0.92 <= covered / runs <= 0.975


def test_kappa_by_hand():
    # Agreement .7, by chance .5 * .6 + .5 * .4 = .5.
    first = [True] * 5 + [False] * 5
    second = [True, True, True, True, False, False, False, False, True, True]
    assert rates.kappa(first, second) == pytest.approx((0.7 - 0.5) / 0.5)
    assert rates.kappa(first, first) == 1
    assert np.isnan(rates.kappa([True] * 3, [True] * 3))
    with pytest.raises(ValueError, match="1"):
        rates.kappa([True], [])


def embedded(pack, name):
    page = (pack / "report.html").read_text("utf-8")
    found = re.search(
        rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL
    )
    return json.loads(found[1])


def test_every_row_has_the_q_value_of_the_policy_that_speaks_for_it(audited):
    table = pq.read_table(audited.folder / "calibration" / "calibration.parquet").to_pylist()
    known = {(r["benchmark"], r["split"], r["item_id"], r["policy"]): r["q_value"] for r in table}
    rows = embedded(audited.folder, "rows")
    assert len(rows) > 50
    for row in rows:
        policy = next(p for p, label in row["labels"].items() if label in FLAGGED)
        q = known[row["benchmark"], row["split"], row["item"], policy]
        assert row["q"] == round(q, 6)
    assert len({row["q"] for row in rows}) > 2


def test_q_values_do_not_fall_from_a_found_item_to_one_found_better(audited):
    # Of the items of one benchmark and policy the better found cannot be the more accidental.
    chance = q_values(audited.folder)
    by_group = {}
    for row in schemas.rows(load_report(audited.folder / "checks" / "together").verdicts):
        if row["score"] is not None:
            key = (row["benchmark"], row["split"], row["item_id"], row["policy"])
            rank = (row["label"] in FLAGGED, row["score"])
            by_group.setdefault((row["benchmark"], row["policy"]), []).append(
                (rank, chance.of(*key))
            )
    for pairs in by_group.values():
        qs = [q for _, q in sorted(pairs, key=lambda one: one[0])]
        assert qs == sorted(qs, reverse=True)


def test_an_audit_without_decoys_says_that_nothing_is_estimated(tmp_path):
    chance = q_values(tmp_path)
    assert chance.of("b", "", "1", "contam") is None
    assert chance.describe("b", "", "1", "contam") == (
        "q not estimated: no decoys were searched for"
    )
