"""A fresh set: every figure that science.md 3 and 1.6 d, e say must come out, and what is refused."""

import csv
import itertools
import json

import numpy as np
import pytest

import contam
from contam.errors import ContamError, UsageError
from contam.study import FreshSettings, fresh
from contam.study.inputs import read_scores
from contam.study.lines import fit_line, freed_slope, residuals
from tests.matrix import sampled
from tests.rescore.panels import refused

SIDES = {"MatchedFrequency": "matched", "Threshold0.7": "thr07", "TopImages": "top"}


@pytest.fixture(scope="module")
def imagenet(shared):
    """The study of ImageNetV2: all 66 models, and the 64 convolutional networks."""
    path = shared / "published/imagenetv2_counts.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    sets = {
        name: [
            {"model": row["model"], "correct": int(row[f"{mark}_top1"]), "n": int(row[f"{mark}_n"])}
            for row in rows
        ]
        for name, mark in {"original": "orig", **SIDES}.items()
    }

    def study(keep):
        kept = {name: [row for row in own if keep(row["model"])] for name, own in sets.items()}
        easier = {name: kept[name] for name in ("Threshold0.7", "TopImages")}
        return fresh(
            kept["original"], kept["MatchedFrequency"], easier=easier,
            settings=FreshSettings(draws=500),
        )  # fmt: skip

    return study(lambda _: True), study(lambda model: not model.startswith("fv_"))


@pytest.fixture(scope="module")
def expected(shared):
    return json.loads((shared / "published/expected.json").read_text())["imagenetv2"]


def fit_of(study, name="fresh", scale="accuracy", models="all"):
    (row,) = [
        row
        for row in study.rows("fits")
        if (row["fresh_set"], row["scale"], row["models"]) == (name, scale, models)
    ]
    return row


def test_must_matched_frequency_64_networks(imagenet, expected):
    _, networks = imagenet
    row = fit_of(networks)
    assert row["n"] == 64
    assert row["slope"] == pytest.approx(1.1098, abs=5e-5)
    assert [row["slope_low"], row["slope_high"]] == pytest.approx([1.083, 1.136], abs=5e-4)
    assert 100 * row["intercept"] == pytest.approx(-20.26, abs=5e-3)
    # Printed, from memory of the paper: 1.11 and -20.2; the second is off by rounding of one digit.
    assert round(row["slope"], 2) == 1.11
    assert 100 * row["intercept"] == pytest.approx(-20.2, abs=0.1)
    known = expected["MatchedFrequency_top1_convnets_only"]
    for scale, name in (("accuracy", "accuracy_fit_percent"), ("probit", "probit_fit")):
        row, fit = fit_of(networks, scale=scale), known[name]
        factor = 100 if scale == "accuracy" else 1
        assert row["slope"] == pytest.approx(fit["slope"], rel=1e-8)
        assert factor * row["intercept"] == pytest.approx(fit["intercept"], rel=1e-8)
        limits = [row["slope_low"], row["slope_high"]]
        assert limits == pytest.approx(fit["slope_ci95"], rel=1e-8)
        limits = [factor * row["intercept_low"], factor * row["intercept_high"]]
        assert limits == pytest.approx(fit["intercept_ci95"], rel=1e-8)
        assert row["r2"] == pytest.approx(fit["r2"], rel=1e-8)


def test_must_two_models_at_the_low_end_flip_the_slope_and_are_named(imagenet):
    everyone, networks = imagenet
    assert fit_of(everyone)["slope"] == pytest.approx(0.977, abs=5e-4)
    far = fit_of(everyone, models="without far ones")
    assert far["left_out"] == "fv_4k, fv_64k"
    assert far["slope"] == pytest.approx(fit_of(networks)["slope"], rel=1e-12)
    assert far["region_low"] > fit_of(everyone)["region_low"]
    assert "fv_4k, fv_64k" in everyone.finding.sure


def test_must_the_gap_closes_on_items_people_agree_on(imagenet, expected):
    everyone, _ = imagenet
    rows = {row["fresh_set"]: row for row in everyone.rows("sets")}
    assert 100 * rows["Threshold0.7"]["mean_gap"] == pytest.approx(3.18, abs=5e-3)
    assert 100 * rows["TopImages"]["mean_gap"] == pytest.approx(-2.13, abs=5e-3)
    for name, own in (("fresh", "MatchedFrequency"), ("Threshold0.7",) * 2, ("TopImages",) * 2):
        known = expected[f"{own}_top1"]["gap_points"]
        for column, key in (("mean_gap", "mean"), ("sd_gap", "sd"), ("largest_gap", "max")):
            assert 100 * rows[name][column] == pytest.approx(known[key], rel=1e-6)


def test_must_both_scales_are_shown_and_disagree(imagenet):
    _, networks = imagenet
    assert fit_of(networks, scale="probit")["slope"] == pytest.approx(0.968, abs=5e-4)
    assert fit_of(networks)["reading"] == "above 1"
    assert fit_of(networks, scale="probit")["reading"] == "below 1"


def test_must_sampling_moves_a_score_by_a_point_at_ten_thousand_items(imagenet):
    everyone, _ = imagenet
    bound = max(row["sampling_bound"] for row in everyone.rows())
    assert 100 * bound == pytest.approx(1.0, abs=0.05)


def test_on_cifar_the_two_scales_disagree_too(shared):
    path = str(shared / "published/cifar10_1_counts.csv")
    columns = {
        "original.correct": "orig_correct", "original.n": "orig_n",
        "fresh.correct": "v6_correct", "fresh.n": "v6_n",
    }  # fmt: skip
    study = fresh(path, path, columns=columns, settings=FreshSettings(draws=500))
    # Recht et al. 2019 print 1.69 for CIFAR-10.1 on other models; 30 of theirs are stored here.
    assert fit_of(study)["slope"] > 1.5
    assert fit_of(study, scale="probit")["reading"] != fit_of(study)["reading"]


# --------------------------------------------------------------------------- simulation


def invented(rng, *, m=20, n=2000, k=1000, shift=0.1, slope=1.0, fall=(), by=0.0):
    """Totals of m models, of which those in `fall` score lower on the fresh set by `by`."""
    true = np.linspace(0.35, 0.85, m)
    other = np.clip(true.mean() - shift + slope * (true - true.mean()), 0.02, 0.98)
    other[list(fall)] -= by
    sides = rng.binomial(n, true), rng.binomial(k, other)
    return [
        [{"model": f"m{at}", "correct": int(c), "n": size} for at, c in enumerate(side)]
        for side, size in zip(sides, (n, k), strict=True)
    ]


def test_the_model_that_falls_is_named_and_no_other():
    rng = np.random.default_rng(5)
    study = fresh(*invented(rng, fall=[7], by=0.12), settings=FreshSettings(draws=200))
    assert [row["model"] for row in study.rows() if row["falls"]] == ["m7"]
    assert "m7" in study.finding.found
    scatter = study.pictures[0].panels[0]
    assert any("m7" in getattr(mark, "names", ()) for mark in scatter.marks)


def test_without_memory_models_fall_as_seldom_as_holm_allows():
    rng = np.random.default_rng(6)
    n, wrong = 100, 0
    for _ in range(n):
        original, other = invented(rng)
        x = np.array([row["correct"] / row["n"] for row in original])
        y = np.array([row["correct"] / row["n"] for row in other])
        found = residuals(x, y)
        wrong += bool(np.nanmin(found.residual_p) * 20 < 0.05)
    assert wrong / n <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)


@pytest.mark.parametrize(
    ("m", "world"),
    sampled(5, itertools.product([8, 20, 40], [(120, 0.0), (600, 0.03), (5000, 0.02)])),
)
def test_limits_of_a_slope_hold_it_as_often_as_they_say(m, world):
    """Few items flatten a plain line; the freed slope stays at .9, on either scale."""
    n, scatter = world
    rng = np.random.default_rng([7, m, n])
    plain, freed, covered, n_sims = [], [], 0, 1000
    for _ in range(n_sims):
        skill = rng.uniform(0.3, 0.85, m)
        other = np.clip(0.05 + 0.9 * skill + rng.normal(0, scatter, m), 0.01, 0.99)
        x, y = rng.binomial(n, skill) / n, rng.binomial(500, other) / 500
        fit = fit_line(x, y)
        slope, low, high = freed_slope(fit, x, x * (1 - x) / n)
        if not np.isnan(low):
            plain.append(fit.slope)
            freed.append(slope)
            covered += low <= 0.9 <= high
    assert len(freed) > 0.95 * n_sims
    assert np.mean(freed) == pytest.approx(0.9, abs=0.03)
    assert np.mean(plain) < np.mean(freed)
    # .93 to .97, and 3 standard errors of a thousand rounds.
    assert covered / len(freed) == pytest.approx(0.95, abs=0.02 + 3 * np.sqrt(0.05 * 0.95 / n_sims))


def test_models_of_one_base_are_one_model_in_a_line():
    rng = np.random.default_rng(3)
    n, false = 30, {True: 0, False: 0}
    for _ in range(n):
        original, other = invented(rng, m=8)
        for side in (original, other):
            side.extend({**side[0], "model": f"tuned {at}"} for at in range(12))
        # What sets a base apart, all of its fine-tunes share.
        shift = 0.08
        for row in (other[0], *other[8:]):
            row["correct"] = round(min(row["n"], row["correct"] + shift * row["n"]))
        for named in (True, False):
            for row in original:
                base = "base" if row is original[0] or row["model"].startswith("tuned") else ""
                row["family"] = base if named else ""
            rows = fresh(original, other, settings=FreshSettings(draws=99)).rows()
            honest = [row for row in rows if row["model"] != original[0]["model"]]
            false[named] += any(row["falls"] for row in honest[:7])
    assert false[True] / n <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)
    assert false[False] > false[True]


def test_leave_one_out_residuals_are_those_of_a_line_without_the_model():
    rng = np.random.default_rng(9)
    x = rng.random(12)
    y = 0.2 + 0.7 * x + rng.normal(0, 0.02, 12)
    for at, expected in enumerate(residuals(x, y).expected):
        slope, intercept = np.polyfit(np.delete(x, at), np.delete(y, at), 1)
        assert expected == pytest.approx(intercept + slope * x[at], rel=1e-9)


# ----------------------------------------------------- 1.6 d and e: references, ConStat, admission


def test_constat_refuses_fewer_than_five_references_and_names_them_with_five():
    rng = np.random.default_rng(10)
    original, other = invented(rng, m=12, n=300, k=300, shift=0.0, fall=[3], by=0.25)
    names = [f"m{at}" for at in (0, 2, 5, 8, 10, 11)]
    for n, without in ((4, True), (6, False)):
        settings = FreshSettings(references=tuple(names[:n]), draws=50)
        study = fresh(original, other, settings=settings)
        assert ("ConStat" in {one.what for one in study.refusals}) is without
        rows = study.rows("constat")
        assert bool(rows) is not without
        if rows:
            lowest = min(rows, key=lambda row: row["p"])
            assert lowest["model"] == "m3"
            assert {row["model"] for row in rows} == {f"m{at}" for at in range(12)} - set(names)
            assert all(row["p"] <= row["p_holm"] for row in rows)


@pytest.mark.slow
def test_constat_draws_more_for_more_models():
    """A hundred leave p at 1/101, which Holm takes to .059 for six models."""
    ability = [0.9, *[0.55] * 5, *np.linspace(0.3, 0.8, 6)]
    original, new = (
        [
            {"model": f"m{at}", "n": 400, "correct": round(400 * share)}
            for at, share in enumerate(own)
        ]
        for own in (ability, [0.55, *ability[1:]])
    )
    known = tuple(f"m{at}" for at in range(6, 12))
    study = fresh(original, new, settings=FreshSettings(references=known, draws=100))
    assert [row["p_holm"] < 0.05 for row in study.rows("constat")] == [True, *[False] * 5]


@pytest.mark.parametrize(
    ("shift", "n", "admitted"), [(0.0, 10_000, True), (0.2, 10_000, False), (0.0, 60, False)]
)
def test_a_retro_holdout_is_admitted_by_equivalence_and_never_by_lack_of_difference(
    shift, n, admitted
):
    rng = np.random.default_rng(11)
    original, other = invented(rng, m=8, n=n, k=n, shift=shift)
    study = fresh(original, other, settings=FreshSettings(references=("m2", "m4"), draws=200))
    refused = [one for one in study.refusals if one.what.startswith("inflation")]
    assert bool(refused) is not admitted
    assert all(row["equivalent"] == (row["p"] < 0.05) for row in study.rows("admission"))


def test_equivalence_is_claimed_of_sets_at_the_margin_as_seldom_as_it_says():
    from contam.rescore.holdouts import equivalent

    rng = np.random.default_rng(12)
    claimed = 0
    for _ in range(400):
        sides = [(rng.random(800) < share).astype(float) for share in (0.6, 0.55)]
        claimed += equivalent(*sides, 0.05) < 0.05
    assert claimed / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


# ---------------------------------------------------------------------------- bad input


def totals(**models):
    return [{"model": name, "correct": right, "n": 100} for name, right in models.items()]


def test_one_model_has_a_gap_and_no_line():
    study = fresh(totals(a=80), totals(a=60))
    (row,) = study.rows()
    assert row["gap"] == pytest.approx(0.2)
    assert (row["expected"], row["falls"], study.rows("fits")) == (None, False, [])


def test_equal_scores_and_scores_at_the_ends_have_no_line():
    same = totals(**dict.fromkeys("abcdefg", 50))
    study = fresh(same, same)
    assert not study.rows("fits")
    assert any("line" in one.what for one in study.refusals)
    ends = totals(**dict.fromkeys("abcdefg", 100))
    assert not fresh(ends, ends).rows("fits")


@pytest.mark.parametrize(
    ("other", "settings"),
    [
        (totals(b=60), {}),
        ([{"model": "a", "score": 61.0, "n": 100}], {}),
        ([{"model": "a", "score": float("nan"), "n": 100}], {}),
        ([{"model": "a", "correct": None, "n": 100}], {}),
        (totals(a=60) * 2, {}),
        (totals(a=60), {"references": ("zz",)}),
        (totals(a=60), {"references": ("a", "a")}),
        (totals(a=60), {"margin": 5.0}),
        (totals(a=60), {"chance": 25.0}),
    ],
)
def test_what_is_no_score_is_an_error(other, settings):
    with pytest.raises(ContamError):
        fresh(totals(a=80), other, settings=FreshSettings(**settings))


def test_models_of_one_side_are_noted_and_verdicts_of_totals_refused(tmp_path):
    study = fresh(totals(a=80, b=70), totals(a=60, c=5))
    assert [row["model"] for row in study.rows()] == ["a"]
    assert any("b" in note for note in study.run["notes"])
    assert any("c" in note for note in study.run["notes"])
    with pytest.raises(UsageError):
        fresh(totals(a=80), totals(a=60), verdicts=tmp_path)
    with pytest.raises(UsageError):
        fresh(totals(a=80), totals(a=60), columns={"gone.n": "n"})


def test_scores_without_a_number_of_items_are_said_to_lack_it(tmp_path):
    (tmp_path / "old.csv").write_text("model,score\na,0.5\n")
    with refused(ContamError, tmp_path / "old.csv", "`columns`"):
        fresh(tmp_path / "old.csv", totals(a=60))


@pytest.fixture(scope="module")
def verdicts(bench_fixtures):
    return contam.scan(bench_fixtures / "corpus", bench_fixtures / "items")


def test_items_of_logs_give_the_scores_and_clean_items_are_split_off(bench_fixtures, verdicts):
    logs = bench_fixtures / "logs"
    given = (logs / "lantern_quiz.csv", logs / "tinker_code.csv")
    few = fresh(*given, verdicts=verdicts)
    assert any("17 clean items" in one.reason for one in few.refusals)
    assert {row["items"] for row in few.rows()} == {"all"}
    study = fresh(*given, verdicts=verdicts, settings=FreshSettings(least=15))
    clean = {v.item_id for v in verdicts if v.label == "clean"}
    with (logs / "lantern_quiz.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert 0 < len(clean & {row["item_id"] for row in rows}) < len(rows)
    for one in study.rows():
        kept = [row for row in rows if one["items"] == "all" or row["item_id"] in clean]
        assert one["n_original"] == len(kept)
        score = np.mean([int(row[one["model"]]) for row in kept])
        assert one["original"] == pytest.approx(score)
        assert one["interval"] == "Newcombe"
    assert [row["items"] for row in study.rows()] == ["all"] * 3 + ["clean"] * 3
    assert "On clean items" in study.finding.found
    assert study.run["coverage"]["complete"] is True
    assert json.dumps(study.run)


def test_verdicts_of_two_policies_need_a_name_and_logs_of_two_benchmarks_are_no_set(bench_fixtures):
    items, logs = bench_fixtures / "items/lantern_quiz.jsonl", bench_fixtures / "logs"
    both = contam.scan(bench_fixtures / "corpus", items, policies=["contam", "gpt3-test"])
    given = (logs / "lantern_quiz.csv", logs / "tinker_code.csv")
    with refused(ContamError, "2 policies", "contam"):
        fresh(*given, verdicts=both)
    with pytest.raises(ContamError):
        read_scores(given, "original")


def test_scores_that_are_no_shares_are_refused_and_partial_credit_is_not(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("item_id,model,score\n" + "".join(f"i{at},a,{at}\n" for at in range(40)))
    with pytest.raises(ContamError):
        read_scores(path, "original")
    path.write_text("item_id,model,score\n" + "".join(f"i{at},a,{at / 40}\n" for at in range(40)))
    assert not read_scores(path, "original").binary(0)
    study = fresh(path, path)
    assert study.rows()[0]["interval"] == "Welch"


def test_a_row_with_an_item_is_no_total(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "item_id,model,n,score\n" + "".join(f"i{at},a,9,{at % 2}\n" for at in range(20))
    )
    found = read_scores(path, "original")
    assert found.n.tolist() == [20]
    assert found.score.tolist() == [0.5]


def test_constat_takes_items_in_one_order_and_refuses_different_ones(tmp_path):
    rng = np.random.default_rng(3)
    models = [f"m{at}" for at in range(8)]
    skill = np.linspace(0.3, 0.8, 8)

    def log(name, orders, n=80):
        right = rng.random((8, n)) < skill[:, None]
        for model, order, row in zip(models, orders, right, strict=True):
            lines = [f"i{at},{model},{int(row[at % n])},{name}" for at in order]
            text = "\n".join(["item_id,model,score,benchmark", *lines]) + "\n"
            (tmp_path / f"{name}-{model}.csv").write_text(text)
        return [tmp_path / f"{name}-{model}.csv" for model in models]

    mixed = [rng.permutation(80) for _ in models]
    settings = FreshSettings(references=tuple(models[:6]), draws=100)
    one = fresh(log("old", mixed), log("new", mixed), settings=settings)
    assert [row["model"] for row in one.rows("constat")] == ["m6", "m7"]
    others = [np.arange(80) + (at == 3) for at in range(8)]
    two = fresh(log("other", others), log("new", mixed), settings=settings)
    assert not two.rows("constat")
    assert any("different items" in refusal.reason for refusal in two.refusals)
