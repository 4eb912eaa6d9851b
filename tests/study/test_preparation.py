"""Preparation: every figure that science.md 4 says must come out, simulations, and what is refused."""

import csv
import json

import numpy as np
import pytest

from contam.errors import ContamError
from contam.study import PreparationSettings, preparation
from contam.study.lines import hinge, segmented

FEW = {"draws": 200}


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def expected(shared):
    return json.loads((shared / "published/expected.json").read_text())


@pytest.fixture(scope="module")
def ttt(shared):
    """The study of Dominguez-Olmedo et al.'s 53 models on six tasks."""
    rows = []
    for row in table(shared / "published/ttt_models.csv"):
        head = {
            "model": row["model"],
            "params": float(row["params_B"]) * 1e9,
            "tokens": float(row["tokens_B"]) * 1e9,
            "group": int(row["trained_after_nov2023"]),
        }
        rows += [
            {**head, "task": task, "score": row[f"{task}_base"], "tuned": row[f"{task}_ft3"]}
            for task in ("mmlu", "gsm8k", "arc_challenge_mc", "hellaswag_mc")
        ]
        rows += [
            {**head, "task": f"{task}_cloze", "score": row[f"{task}_cloze_base"], "tuned": ""}
            for task in ("arc_challenge", "hellaswag")
        ]
    settings = PreparationSettings(chance={"": 0.25, "gsm8k": 0.0}, **FEW)
    return preparation(rows, settings=settings)


def effect(study, task, outcome, fit):
    (row,) = [
        row
        for row in study.rows("effects")
        if (row["task"], row["outcome"], row["fit"]) == (task, outcome, fit)
    ]
    return row


@pytest.mark.parametrize(("task", "name"), [("mmlu", "MMLU"), ("gsm8k", "GSM8K")])
def test_must_psi_and_phi_as_printed_in_the_notebook(ttt, expected, task, name):
    known = expected["training_on_test_task"]
    printed = known["printed_in_notebook"]
    for outcome, key, printed_key in (
        ("post", "seg_post", "psi"), ("score - post", "seg_pre_minus_post", "phi"),
    ):  # fmt: skip
        row = effect(ttt, task, outcome, "segmented")
        value = next(
            value for one, value in printed.items() if one.startswith(f"{printed_key}_hat")
        )
        assert [round(row["theta"], 3), round(row["error"], 3)] == pytest.approx(
            value[name], abs=1e-9
        )
        assert round(row["r2"], 3) == printed[f"{printed_key}_R2"][name]
        exact = known[key][name]
        assert row["theta"] == pytest.approx(exact["coef"][1], rel=1e-6)
        assert row["error"] == pytest.approx(exact["se"][1], rel=1e-6)
        assert row["p"] == pytest.approx(exact["p"][1], rel=1e-6)
    row = effect(ttt, task, "score", "segmented")
    assert row["theta"] == pytest.approx(known["seg_pre"][name]["coef"][1], rel=1e-6)


@pytest.mark.parametrize(
    ("task", "section", "name", "outcome"),
    [
        ("mmlu", "hinge_pre", "MMLU", "score"),
        ("gsm8k", "hinge_pre", "GSM8K", "score"),
        ("mmlu", "hinge_post", "MMLU", "post"),
        ("gsm8k", "hinge_post", "GSM8K", "post"),
        ("arc_challenge_cloze", "hinge_arc_challenge", "cloze", "score"),
        ("arc_challenge_mc", "hinge_arc_challenge", "mc_adjusted", "post"),
        ("hellaswag_cloze", "hinge_hellaswag", "cloze", "score"),
        ("hellaswag_mc", "hinge_hellaswag", "mc", "score"),
        ("hellaswag_mc", "hinge_hellaswag", "mc_adjusted", "post"),
    ],
)
def test_must_hinge_theta(ttt, expected, task, section, name, outcome):
    known = expected["training_on_test_task"][section][name]
    row = effect(ttt, task, outcome, "hinge")
    assert row["n"] == known["n"]
    assert row["theta"] == pytest.approx(known["theta_ols"], abs=2e-6)
    assert row["error"] == pytest.approx(known["theta_se"], rel=1e-5)
    assert row["p"] == pytest.approx(known["theta_p"], rel=1e-3)
    assert row["knot"] == pytest.approx(known["knot_log10_flops"], abs=2e-5)
    assert row["slope"] == pytest.approx(known["slope_ols"], rel=1e-5)
    assert round(row["r2"], 3) == known["r2_uncentered"]
    assert row["low"] < row["theta"] < row["high"]


def test_must_hinge_theta_where_the_published_search_stopped_beside_the_best_knot(ttt, expected):
    """On ARC the published minimiser ends in a dip next to the lowest: SSE .50712 and not .50709."""
    known = expected["training_on_test_task"]["hinge_arc_challenge"]["mc"]
    row = effect(ttt, "arc_challenge_mc", "score", "hinge")
    assert row["n"] == known["n"]
    rows = [one for one in ttt.rows("models") if one["task"] == "arc_challenge_mc"]
    fitted = [
        0.25 + row["slope"] * max(0, one["compute"] - row["knot"]) + row["theta"] * one["group"]
        for one in rows
    ]
    rest = sum((one["score"] - fit) ** 2 for one, fit in zip(rows, fitted, strict=True))
    assert rest < known["sse"]
    assert rest == pytest.approx(known["sse"], rel=1e-3)
    assert row["theta"] == pytest.approx(known["theta_ols"], abs=5e-4)


def test_must_hinge_theta_rounds_to_the_figures_of_the_notes(ttt):
    known = {"mmlu": (0.0682, -0.0049), "gsm8k": (0.1683, -0.0011)}
    for task, values in known.items():
        for outcome, value in zip(("score", "post"), values, strict=True):
            assert round(effect(ttt, task, outcome, "hinge")["theta"], 4) == value
    # Typed by hand into the notebook: close to what its own stored scores give, not equal.
    typed = {"arc_challenge": (0.001, 0.12, -0.014), "hellaswag": (-0.012, 0.114, 0.009)}
    for task, values in typed.items():
        found = [
            effect(ttt, f"{task}_{form}", outcome, "hinge")["theta"]
            for form, outcome in (("cloze", "score"), ("mc", "score"), ("mc", "post"))
        ]
        assert found == pytest.approx(values, abs=0.03)


def test_the_lead_goes_with_preparation_and_ranks_move(ttt):
    assert "goes with preparation" in ttt.finding.found
    rows = [row for row in ttt.rows("models") if row["task"] == "gsm8k"]
    theta = effect(ttt, "gsm8k", "score", "hinge")["theta"]
    for row in rows:
        assert row["adjusted"] == pytest.approx(row["score"] - theta * row["group"])
        assert row["post"] == max(row["score"], row["tuned"])
    assert any(row["rank"] != row["rank_adjusted"] for row in rows)
    assert any("arc_challenge_mc" in note for note in ttt.run["notes"])


def test_must_tasks_agree_once_all_models_are_tuned(shared, expected):
    known = expected["lm_harmony"]
    path = shared / "published/lm_harmony_train_before_test.csv"
    lower = ("arxiv_2025", "stackexchange_2025", "wiki_2025")
    settings = PreparationSettings(lower_is_better=lower, **FEW)
    study = preparation(path, columns={"score": "direct", "tuned": "tbt"}, settings=settings)
    rows = {row["kind"]: row for row in study.rows("agreement")}
    tasks = rows["tasks"]
    assert (tasks["n_models"], tasks["n_pairs"]) == (61, 24 * 23 / 2)
    assert round(tasks["tau_direct"], 3) == known["printed"]["direct_mean_tau"] == 0.517
    assert round(tasks["tau_tuned"], 3) == known["printed"]["tbt_mean_tau"] == 0.755
    assert round(tasks["share_rising"], 3) == known["printed"]["share_pairs_tbt_gt_direct"] == 0.993
    # Printed means are of values that were rounded to three decimals before.
    assert tasks["tau_direct"] == pytest.approx(known["direct_mean_tau"], abs=5e-5)
    mixed = rows["lower is better and tasks"]
    assert mixed["n_pairs"] == 72
    assert mixed["tau_direct"] == pytest.approx(0.477, abs=5e-4)
    assert mixed["tau_tuned"] == pytest.approx(0.740, abs=5e-4)
    # There is no group and no compute in this table.
    assert not study.rows("effects")
    assert {one.what for one in study.refusals} >= {"the lead of the group on mnli"}
    assert study.rows() == study.rows("agreement")


# --------------------------------------------------------------------------- simulation


def invented(rng, *, n=50, lead=0.1, knot=21.5, noise=0.02, tuned=True, overlap=True):
    compute = rng.uniform(20.5, 24, n)
    group = (rng.random(n) < 0.4).astype(float)
    group[:10] = np.arange(10) % 2
    if not overlap:
        compute = np.where(group == 1, compute + 5, compute)
    skill = 0.25 + 0.2 * np.maximum(0, compute - knot)
    score = np.clip(skill + lead * group + rng.normal(0, noise, n), 0, 1)
    post = np.clip(skill + lead + 0.02 + rng.normal(0, noise, n), 0, 1)
    return [
        {
            "model": f"m{at}", "flops": 10.0 ** compute[at], "group": int(group[at]),
            "score": score[at], **({"tuned": post[at]} if tuned else {}),
        }
        for at in range(n)
    ]  # fmt: skip


QUARTER = PreparationSettings(chance=0.25, **FEW)


@pytest.mark.slow
def test_limits_of_the_lead_cover_it_and_no_lead_is_seldom_claimed():
    rng = np.random.default_rng(2)
    covered = {"hinge": 0, "segmented": 0}
    claimed = dict(covered)
    n_sims = 120
    for _ in range(n_sims):
        compute, group = rng.uniform(20.5, 24, 60), (rng.random(60) < 0.4).astype(float)
        y = 0.25 + 0.1 * np.maximum(0, compute - 22) + rng.normal(0, 0.05, 60)
        with_lead = y + 0.08 * group
        found = {
            "hinge": [
                hinge(one, compute, group, 0.25, draws=200, seed=1) for one in (with_lead, y)
            ],
            "segmented": [
                segmented(one, compute, group, (22, 23), 200, 1) for one in (with_lead, y)
            ],
        }
        for name, (lead, none) in found.items():
            covered[name] += lead.low <= 0.08 <= lead.high
            claimed[name] += none.p < 0.05
    spread = 3 * np.sqrt(0.05 * 0.95 / n_sims)
    for name, n_covered in covered.items():
        # Percentile limits of 60 models cover a little less than they claim.
        assert n_covered / n_sims > 0.95 - spread - 0.03, name
        assert claimed[name] / n_sims < 0.05 + spread + 0.02, name


def test_a_lead_by_preparation_is_told_from_one_that_stays():
    rng = np.random.default_rng(3)
    rows = invented(rng)
    study = preparation(rows, settings=QUARTER)
    assert "goes with preparation" in study.finding.found
    assert effect(study, "score", "score", "hinge")["theta"] == pytest.approx(0.1, abs=0.03)
    better = [{**row, "tuned": min(1, row["tuned"] + 0.1 * row["group"])} for row in rows]
    assert "does not explain" in preparation(better, settings=QUARTER).finding.found
    alone = preparation(
        [{k: v for k, v in row.items() if k != "tuned"} for row in rows], settings=QUARTER
    )
    assert "fine-tuning" in alone.finding.change
    assert any("after tuning" in one.what for one in alone.refusals)
    assert "no lead is shown" in preparation(invented(rng, lead=0), settings=QUARTER).finding.found


# ---------------------------------------------------------------------------- bad input


def changed(rows, **values):
    return [{**row, **values} for row in rows]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: rows[:1], "each needs"),
        (lambda rows: [{**row, "group": 1} for row in rows], "each needs"),
        (lambda rows: [{k: v for k, v in row.items() if k != "group"} for row in rows], "group"),
        (lambda rows: [{k: v for k, v in row.items() if k != "flops"} for row in rows], "flops"),
        (lambda rows: changed(rows, score=0.5), "one score"),
        (lambda rows: changed(rows, flops=1e22), "same compute"),
    ],
)
def test_what_allows_no_lead_is_refused_by_name(change, reason):
    rows = change(invented(np.random.default_rng(1)))
    study = preparation(rows, settings=QUARTER)
    assert not study.rows("effects")
    assert any(reason in one.reason for one in study.refusals)
    assert "lead" not in study.finding.found


@pytest.mark.parametrize(
    "rows",
    [
        lambda rows: [{**rows[0], "score": 61.0}, *rows[1:]],
        lambda rows: [{**rows[0], "tuned": 61.0}, *rows[1:]],
        lambda rows: [*rows, rows[0]],
        lambda rows: [{**rows[0], "flops": 22.5}, *rows[1:]],
        lambda rows: [{**rows[0], "flops": -1.0}, *rows[1:]],
        lambda rows: [{**rows[0], "group": 2}, *rows[1:]],
        lambda rows: [{**rows[0], "score": "good"}, *rows[1:]],
        lambda rows: [{**rows[0], "model": ""}, *rows[1:]],
    ],
)
def test_cells_that_are_wrong_are_errors(rows):
    with pytest.raises(ContamError):
        preparation(rows(invented(np.random.default_rng(1))), settings=QUARTER)


def test_empty_cells_are_left_out_and_named():
    rows = invented(np.random.default_rng(1))
    rows[3]["score"] = None
    study = preparation(rows, settings=QUARTER)
    assert any("m3" in note for note in study.run["notes"])
    assert effect(study, "score", "score", "hinge")["n"] == 49


def test_fine_tunes_of_one_base_are_no_group_of_their_own():
    rng = np.random.default_rng(4)
    false = {True: 0, False: 0}
    n_sims = 100
    for _ in range(n_sims):
        compute = rng.uniform(21, 24, 24)
        score = 0.3 + 0.1 * (compute - 21) + rng.normal(0, 0.05, 24)
        rows = [
            {"model": f"m{at}", "covariate": c, "score": s, "group": int(at < 6), "family": ""}
            for at, (c, s) in enumerate(zip(compute, score, strict=True))
        ]
        tuned = rng.normal(score[0], 0.005, 15)
        rows[0]["family"] = "base"
        rows += [
            {**rows[0], "model": f"tuned {at}", "score": float(own)} for at, own in enumerate(tuned)
        ]
        for named in (True, False):
            given = [{**row, "family": row["family"] if named else ""} for row in rows]
            settings = PreparationSettings(chance=0.3, draws=99)
            (hinged, *_) = preparation(given, settings=settings).rows("effects")
            false[named] += hinged["p"] < 0.05
            assert hinged["n"] == (24 if named else 39)
    assert false[True] <= n_sims * 0.05 + 3 * np.sqrt(n_sims * 0.05 * 0.95)
    assert false[False] > 2 * false[True] + 10


def test_an_error_of_rounding_alone_gives_no_p():
    compute = np.linspace(21, 24, 24)
    rows = [
        {"model": f"m{at}", "covariate": c, "score": s, "tuned": s, "group": at % 2}
        for at, (c, s) in enumerate(zip(compute, 0.3 + 0.1 * (compute - 21), strict=True))
    ]
    study = preparation(rows, settings=PreparationSettings(chance=0.3, draws=99))
    assert {row["p"] for row in study.rows("effects")} == {None}


def test_a_column_of_base_scores_is_no_family():
    rng = np.random.default_rng(8)
    rows = [
        {
            "model": f"m{at}",
            "covariate": 21 + at / 8,
            "score": float(s),
            "base": 0.25,
            "group": at % 2,
        }
        for at, s in enumerate(rng.uniform(0.3, 0.6, 24))
    ]
    study = preparation(rows, settings=PreparationSettings(draws=99))
    assert {row["n"] for row in study.rows("effects")} == {24}
