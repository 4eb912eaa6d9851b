"""A score that rises with exposure is told only where it rises more than that of honest models."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from contam.rescore.panel import RescoreSettings
from contam.rescore.stats.gain import LEAST_OTHERS, slopes
from contam.tables import schemas
from tests.matrix import sampled
from tests.rescore.panels import flags_of, series_of, tables_of


def world(rng, m, *, far=0.3, remembers=0.0, n=500):
    """Models of several abilities on items of which the easier ones are found more often."""
    exposure = np.where(rng.random(n) < 0.3, rng.random(n), 0)
    difficulty = rng.normal(0, 1.2, n) - 1.5 * exposure
    ability, steep = rng.normal(0, far, m), np.exp(rng.normal(0, 0.2, m))
    scores = rng.random((m, n)) < expit(steep[:, None] * (ability[:, None] - difficulty))
    scores[0] |= rng.random(n) < remembers * exposure
    return scores.astype(float), exposure


@pytest.mark.parametrize(("far", "m"), sampled(6, itertools.product([0.3, 1.2], [5, 10, 20])))
def test_honest_models_rise_no_more_often_than_said_and_leaks_are_found(m, far):
    rng, rounds, alarms, found, held = np.random.default_rng(m), 400, 0, 0, 0
    for _ in range(rounds):
        honest = slopes(*world(rng, m, far=far), np.arange(500))[0]
        alarms += honest.p < 0.05
        held += honest.low <= 0 <= honest.high
        found += slopes(*world(rng, m, far=far, remembers=1.0), np.arange(500))[0].p < 0.05
    three = 3 * np.sqrt(0.05 * 0.95 / rounds)
    assert alarms / rounds <= 0.05 + three
    assert held / rounds >= 0.95 - three
    assert found / rounds >= 0.5


def test_a_few_models_or_one_exposure_say_nothing():
    scores, exposure = world(np.random.default_rng(0), LEAST_OTHERS + 1)
    assert len(slopes(scores, exposure, np.arange(500))) == len(scores)
    assert slopes(scores[1:], exposure, np.arange(500)) is None
    assert slopes(scores, np.ones(500), np.arange(500)) is None


def test_the_table_has_a_row_for_each_model_and_exposure():
    scores, exposure = world(np.random.default_rng(1), 8, remembers=1.0)
    series = [series_of(own, model=f"m{at}") for at, own in enumerate(scores)]
    labels = np.where(exposure > 0.5, "contaminated", "clean")
    flags = flags_of(list(labels), contamination=exposure)
    settings = RescoreSettings(permutations=99, draws=20, sweep_permutations=99)
    rows = schemas.rows(tables_of(series, [flags], settings)["dose"])
    assert {(row["model"], row["exposure"]) for row in rows} == {
        (f"m{at}", "share found") for at in range(8)
    }
    first = next(row for row in rows if row["model"] == "m0")
    assert first["slope_low"] < first["slope"] < first["slope_high"]
    assert first["p_holm"] < 0.05
    assert min(row["p_holm"] for row in rows if row["model"] != "m0") > 0.05
