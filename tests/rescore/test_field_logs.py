"""Public models' logs tell easier items from leaked ones, beside a single model of one's own."""

import csv

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit

from contam.errors import LogError
from contam.rescore.field import beyond_field, smallest_beyond
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore
from contam.rescore.stats.gain import smallest_gap

N = 300
ADJUSTED = ("adjusted", "adjusted_low", "adjusted_high", "adjusted_p")


def settings(**more):
    return RescoreSettings(permutations=199, draws=50, sweep_permutations=99, **more)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Labels, and logs of an honest model and a leaky one, and of five public models."""
    home = tmp_path_factory.mktemp("field")
    rng = np.random.default_rng(37)
    hard = rng.normal(size=N)
    flagged = rng.permutation(N)[np.argsort(np.argsort(hard + rng.normal(size=N)))] < 0
    flagged[np.argsort(hard + rng.normal(size=N))[:90]] = True
    table(
        home / "labels.csv",
        ("question", "label"),
        zip(map(question, range(N)), np.where(flagged, "contaminated", "clean"), strict=True),
    )
    for name, ability, seen in (("honest", 0.2, 0.0), ("leaky", 0.2, 0.8)):
        right = rng.random(N) < expit(ability - hard)
        right |= flagged & (rng.random(N) < seen)
        log(home / "own" / f"{name}.csv", "quiz", {name: right})
    public = {
        f"public-{at}": rng.random(N) < expit(ability - hard)
        for at, ability in enumerate(rng.normal(size=5))
    }
    log(home / "public.csv", "quiz", public)
    # The same answers under another name, beside items that nobody judged.
    more = {name: np.r_[right, rng.random(40) < 0.5] for name, right in public.items()}
    log(home / "other.csv", "quiz_cot", more)
    return home


def question(at):
    return f"how many lanterns hang over quay number {at} when the tide is {at * 7 % 53} feet high"


def table(path, heads, rows):
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([heads, *rows])


def log(path, benchmark, models):
    rows = [
        (benchmark, question(at), name, int(score))
        for name, right in models.items()
        for at, score in enumerate(right)
    ]
    table(path, ("benchmark", "question", "model", "score"), rows)


def scored(world, logs, **given):
    result = rescore(world / "labels.csv", logs, **{"settings": settings(), **given})
    rows = [row for row in result.rows("scores") if row["subset_by"] == "all"]
    return {row["model"]: row for row in rows}, result


def test_a_field_of_logs_tells_a_leaky_model_from_an_honest_one(world):
    alone, _ = scored(world, world / "own" / "leaky.csv")
    assert alone["leaky"]["adjusted_p"] is None
    for field in ("public.csv", "other.csv"):
        rows, result = scored(world, world / "own", field=world / field)
        assert sorted(rows) == ["honest", "leaky"]
        assert rows["leaky"]["adjusted_p_holm"] < 0.01
        assert rows["honest"]["adjusted_p_holm"] > 0.05
        assert rows["honest"]["gap_p"] < 0.05
        assert {row["model"] for row in result.rows("rankings")} == {"honest", "leaky"}
        assert {log["model"] for log in result.run["inputs"]["field"]} == {
            f"public-{at}" for at in range(5)
        }


@pytest.mark.slow
def test_a_field_says_what_the_same_models_say_as_references(world):
    public = [f"public-{at}" for at in range(5)]
    rows, _ = scored(world, world / "own", field=[world / "public.csv"])
    both = [world / "own", world / "public.csv"]
    among, _ = scored(world, both, settings=settings(references=tuple(public)))
    for model in ("honest", "leaky"):
        assert [rows[model][name] for name in ADJUSTED] == [among[model][name] for name in ADJUSTED]


def test_a_model_is_not_in_its_own_field(world):
    both = [world / "public.csv", world / "own"]
    rows, result = scored(world, world / "own", field=both)
    fair, _ = scored(world, world / "own", field=world / "public.csv")
    assert rows == fair
    assert {log["model"] for log in result.run["inputs"]["field"]} == {
        f"public-{at}" for at in range(5)
    }
    assert any("leaky" in note for note in result.run["notes"])


def test_logs_of_other_items_are_no_field(world, tmp_path):
    rows = [("quiz", f"an unknown question about ships, number {at}", "m", 1) for at in range(60)]
    table(tmp_path / "far.csv", ("benchmark", "question", "model", "score"), rows)
    with pytest.raises(LogError) as caught:
        scored(world, world / "own", field=tmp_path / "far.csv")
    assert str(tmp_path / "far.csv") in str(caught.value)
    rows, result = scored(world, world / "own", field=[tmp_path / "far.csv", world / "public.csv"])
    assert rows["leaky"]["adjusted_p"] < 0.01
    assert any(str(tmp_path / "far.csv") in note for note in result.run["notes"])


@pytest.mark.slow
def test_runs_of_one_model_are_no_field_of_each_other(world, tmp_path):
    with (world / "own" / "leaky.csv").open() as file:
        heads, *rows = csv.reader(file)
    for seed in range(3):
        own = [[*row, f"seed{seed}"] for row in rows]
        table(tmp_path / "runs" / f"{seed}.csv", [*heads, "run_id"], own)
    rows, result = scored(world, tmp_path / "runs", separate_runs=True)
    assert len(rows) == 3
    assert {row["adjusted_p"] for row in rows.values()} == {None}
    assert [sorted(own) for own in result.run["runs"].values()] == [sorted(rows)]
    assert "3 runs" in result.summary
    both = [tmp_path / "runs", world / "public.csv"]
    rows, _ = scored(world, both, separate_runs=True)
    apart, _ = scored(world, world / "own" / "leaky.csv", field=world / "public.csv")
    for name, row in rows.items():
        if name.startswith("leaky"):
            assert [row[name] for name in ADJUSTED] == [apart["leaky"][name] for name in ADJUSTED]


def test_a_plan_says_how_small_a_gap_is_found():
    rng = np.random.default_rng(5)
    for n_flagged, n_clean in ((60, 400), (200, 200)):
        gap = smallest_gap(n_flagged, n_clean)
        a = rng.binomial(n_flagged, 0.5 + gap / 2, 4000) / n_flagged
        b = rng.binomial(n_clean, 0.5 - gap / 2, 4000) / n_clean
        error = np.sqrt(a * (1 - a) / n_flagged + b * (1 - b) / n_clean)
        assert np.mean(np.abs(a - b) / error > 1.96) == pytest.approx(0.8, abs=0.03)
    assert smallest_gap(0, 10) is None


@pytest.mark.slow
def test_what_a_plan_promises_beyond_a_field_is_found():
    found = []
    for seed in range(60):
        rng = np.random.default_rng([37, seed])
        hard = rng.normal(size=500)
        chance = np.exp(-hard)
        flagged = np.zeros(500, bool)
        flagged[rng.choice(500, 150, replace=False, p=chance / chance.sum())] = True
        ahead = np.append(rng.normal(size=10), 0)[:, None] - hard
        usual = expit(ahead[-1, flagged])
        worth = smallest_beyond(150, 350)
        shift = brentq(lambda d, own=usual, w=worth: (expit(logit(own) + d) - own).mean() - w, 0, 9)
        ahead[-1, flagged] += shift
        scores = (rng.random(ahead.shape) < expit(ahead)).astype(float)
        found.append(beyond_field(scores, flagged)[-1].p < 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.05 + 2 * np.sqrt(0.16 / 60))
