"""A gain on flagged items, or with exposure, is set beside what all models gain on them."""

import itertools

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import fisher_exact

from contam.rescore import field
from contam.rescore.panel import RescoreSettings
from contam.rescore.stats.gain import LEAST_OTHERS, slopes
from contam.tables import schemas
from tests.matrix import sampled
from tests.rescore.panels import flags_of, series_of, tables_of

SEEDS = range(20)


def world(seed, *, others=10, n=400, own=0.0, seen=0.0, leaked=0, passages=0):
    """Scores of models, the tested one last, flags that easier items are likelier to have.

    seen  share of the flagged items that the tested model remembers; leaked  others that remember
    0.6 of them; passages  of items that are flagged together and suit a model or not
    """
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(passages), n // passages) if passages else np.arange(n)
    base = rng.normal(size=cluster.max() + 1)
    chance = np.exp(-base)
    chosen = rng.choice(len(base), len(base) * 3 // 10, replace=False, p=chance / chance.sum())
    flagged = np.isin(cluster, chosen)
    ahead = np.append(rng.normal(size=others), own)[:, None] - base[cluster]
    if passages:
        ahead = ahead + rng.normal(scale=0.7, size=(others + 1, passages))[:, cluster]
    scores = (rng.random(ahead.shape) < expit(ahead)).astype(float)
    shares = [*([0.6] * leaked), *([0.0] * (others - leaked)), seen]
    for row, share in zip(scores, shares, strict=True):
        row[flagged & (rng.random(n) < share)] = 1
    return scores, flagged, cluster if passages else None


def significant(*, last=True, **cell):
    """Share of rounds with p < .05: of the last model, or of the honest others."""
    hits = []
    for seed in SEEDS:
        scores, flagged, cluster = world(seed, **cell)
        found = field.beyond_field(scores, flagged, cluster)
        chosen = found[-1:] if last else found[cell.get("leaked", 0) : -1]
        hits += [one.p < 0.05 for one in chosen]
    return np.mean(hits)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell", [{"others": 3}, {"others": 3, "own": 2.8}, {"others": 9, "passages": 40}], ids=str
)
def test_an_honest_model_is_not_called_leaked(cell):
    raw = []
    for seed in SEEDS:
        scores, flagged, _ = world(seed, **cell)
        right = scores[-1] > 0
        sides = [[np.sum(right & own), np.sum(~right & own)] for own in (flagged, ~flagged)]
        raw.append(fisher_exact(sides, alternative="greater")[1] < 0.05)
    assert np.mean(raw) > 0.3
    assert significant(**cell) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / len(SEEDS))


@pytest.mark.slow
def test_where_half_of_the_field_leaked_honest_models_are_not_called_leaked():
    cell = {"others": 10, "leaked": 5}
    assert significant(last=False, **cell) <= 0.07


@pytest.mark.slow
@pytest.mark.parametrize(("seen", "least"), [(0.3, 0.4), (0.6, 0.9)])
def test_a_model_that_saw_items_is_found(seen, least):
    assert significant(others=9, n=500, seen=seen) >= least


def test_a_model_that_has_every_flagged_item_right_is_found():
    scores, flagged, _ = world(1, others=5, own=1.5)
    scores[-1, flagged] = 1
    found = field.beyond_field(scores, flagged)[-1]
    assert found.p < 1e-3
    assert 0 < found.low < found.points <= found.high <= 1


@pytest.mark.slow
def test_what_a_model_remembers_is_told_in_points():
    within, values = 0, []
    for seed in SEEDS:
        scores, flagged, _ = world(seed, n=600)
        wrong = np.flatnonzero(flagged & (scores[-1] == 0))
        known = wrong[: len(wrong) // 2]
        scores[-1, known] = 1
        found = field.beyond_field(scores, flagged)[-1]
        truth = len(known) / flagged.sum()
        values.append(found.points - truth)
        within += found.low <= truth <= found.high
    assert abs(np.mean(values)) < 0.03
    assert within / len(SEEDS) >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / len(SEEDS))


def test_the_likelihood_is_the_one_of_a_loop_over_items_and_nodes():
    scores, flagged, _ = world(2, others=3, n=30)
    scores[0, 4] = scores[2, 7] = np.nan
    values = np.array([0.3, -0.5, 0.1, 0.7, -0.4, 0.2, 0.6])
    answers = field._Answers(scores, flagged)
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    total = 0.0
    for item, own in enumerate(flagged):
        likely = 0.0
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            difficulty = own * values[4] + np.exp(values[5]) * node
            product = weight
            for model, score in enumerate(scores[:, item]):
                shift = values[6] if own and model == 3 else 0.0
                right = expit(values[model] + shift - difficulty)
                product *= 1.0 if np.isnan(score) else right if score else 1 - right
            likely += product
        total += np.log(likely)
    here = field._at(answers, values)
    assert here.likelihood == pytest.approx(total, rel=1e-12)
    gradient = here.parts.sum(axis=0)
    for place in range(7):
        step = np.zeros(7)
        step[place] = 1e-5
        ends = [field._at(answers, values + sign * step).likelihood for sign in (1, -1)]
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-6)


def test_the_order_of_models_and_items_does_not_matter():
    scores, flagged, cluster = world(3, others=4, n=240, passages=40, seen=0.5)
    rng = np.random.default_rng(0)
    rows, items = rng.permutation(len(scores)), rng.permutation(len(flagged))
    one = field.beyond_field(scores, flagged, cluster)
    other = field.beyond_field(scores[rows][:, items], flagged[items], cluster[items])
    for place, row in enumerate(rows):
        assert other[place].points == pytest.approx(one[row].points, rel=1e-3)
        assert other[place].p == pytest.approx(one[row].p, rel=1e-2)


@pytest.mark.slow
def test_models_that_lack_items_are_compared_by_those_they_have():
    scores, flagged, _ = world(4, seen=0.6)
    whole = field.beyond_field(scores, flagged)[-1]
    lacking = np.where(np.random.default_rng(0).random(scores.shape) < 0.03, np.nan, scores)
    found = field.beyond_field(lacking, flagged)[-1]
    assert found.points == pytest.approx(whole.points, abs=0.04)
    assert found.p < 0.01


def test_without_two_others_nothing_is_told():
    scores, flagged, _ = world(5, others=2)
    assert field.beyond_field(scores[:2], flagged) == [None, None]
    assert field.beyond_field(scores, flagged, references=[0]) == [None, None, None]
    assert all(field.beyond_field(scores, flagged))


@pytest.mark.slow
def test_of_many_models_some_of_all_abilities_are_the_field():
    scores, flagged, _ = world(7, others=60, n=120, seen=1.0)
    found = field.beyond_field(scores, flagged)
    assert {one.n_field for one in found} <= {38, 39, 40}
    assert found[-1].p < 0.01


def test_a_model_with_a_gain_of_its_own_is_left_out_by_the_others():
    scores, flagged, _ = world(8, others=5)
    scores[0, flagged] = 1
    found = field.beyond_field(scores, flagged)
    assert [(one.n_field, one.n_left_out) for one in found] == [(5, 0)] + [(4, 1)] * 5


def exposed(rng, m, *, far=0.3, remembers=0.0, n=500):
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
        honest = slopes(*exposed(rng, m, far=far), np.arange(500))[0]
        alarms += honest.p < 0.05
        held += honest.low <= 0 <= honest.high
        found += slopes(*exposed(rng, m, far=far, remembers=1.0), np.arange(500))[0].p < 0.05
    three = 3 * np.sqrt(0.05 * 0.95 / rounds)
    assert alarms / rounds <= 0.05 + three
    assert held / rounds >= 0.95 - three
    assert found / rounds >= 0.5


def test_a_few_models_or_one_exposure_say_nothing():
    scores, exposure = exposed(np.random.default_rng(0), LEAST_OTHERS + 1)
    assert len(slopes(scores, exposure, np.arange(500))) == len(scores)
    assert slopes(scores[1:], exposure, np.arange(500)) is None
    assert slopes(scores, np.ones(500), np.arange(500)) is None


def test_the_table_has_a_row_for_each_model_and_exposure():
    scores, exposure = exposed(np.random.default_rng(1), 8, remembers=1.0)
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
