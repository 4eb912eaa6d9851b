"""The study of a board: published figures, a board that weak models reorder, input it refuses."""

import csv
import json

import numpy as np
import pytest

from contam.errors import ContamError, LogError, UsageError
from contam.rescore.run import rescore, write_rescore
from contam.rescore.stats import ranking
from contam.rescore.stats.board import in_field, reweighed
from contam.study import board, write_study
from tests.cli.processes import contam_here
from tests.rescore.panels import refused
from tests.rescore.test_published import benchbench

#: Names, orders of magnitude and tolerance are those of science.md 2.2 and 2.3.
DIVERSITY = {"GLUE": (0.1585, 0.725), "SuperGLUE": (0.1339, 0.472), "OpenLLM": (0.8161, 0.933)}
SENSITIVITY = {"GLUE": (0.121, 0.733), "OpenLLM": (0.462, 0.894)}
TAU = {"OpenLLM": 0.664}
#: What another search may find less than the published one.
SLACK = 0.013


def published(shared, name):
    folder = shared / "published/benchbench"
    column = json.loads((folder / "columns.json").read_text())[name]
    table = benchbench(folder / f"{name}.csv", column)
    tasks = column["task_columns"]
    rows = [
        {
            "model": f"m{at:03d}",
            **{
                task: None if np.isnan(value) else float(value)
                for task, value in zip(tasks, scores, strict=True)
            },
        }
        for at, scores in enumerate(table)
    ]
    return rows, table


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SuperGLUE", "GLUE", "OpenLLM"])
def test_must_figures_of_public_boards_stand_in_the_study(shared, name):
    rows, table = published(shared, name)
    study = board(rows)
    (found,) = study.rows("measures")
    assert found["diversity_published"] == pytest.approx(DIVERSITY[name][0], abs=5.1e-5)
    assert found["mean_rank_change"] == pytest.approx(DIVERSITY[name][1], abs=5.1e-4)
    if name in SENSITIVITY:
        assert found["cardinal_distance"] >= SENSITIVITY[name][0] - SLACK
    if name in TAU:
        assert found["tau_mean_win_rate_benchbench"] == pytest.approx(TAU[name], abs=5.1e-4)
    weights = np.array([row["weight"] for row in study.rows("tasks")])
    again = reweighed(table, weights)
    assert (again.distance, again.largest) == (
        found["cardinal_distance"],
        found["cardinal_largest"],
    )


def test_must_weak_model_effect_of_helm_accuracy(shared):
    rows, table = published(shared, "HELM-accuracy")
    study = board(rows)
    (found,) = study.rows("measures")
    effect = (found["weak_models_distance"], found["weak_models_largest"])
    assert effect == pytest.approx((0.308, 0.667), abs=5.1e-4)
    assert found["ordinal_distance"] >= 0.3205 - SLACK
    field = study.rows("field")
    assert sum(row["in_top"] for row in field) == 13
    at = np.array([place for place, row in enumerate(field) if row["in_field"]])
    again = in_field(ranking.win_shares(table), np.arange(13), at)
    assert (again.distance, again.largest) == (found["ordinal_distance"], found["ordinal_largest"])
    # 38 of the 67 models have gaps: no mean or Borda count of theirs, and the figures say of whom.
    assert (found["n_complete_models"], found["n_missing_cells"]) == (29, 196)
    assert sum(row["mean"] is None for row in study.rows("models")) == 38
    assert "38 of 67" in study.refusals[0].reason


#: Heron wins against Ibis on two of three tasks; the weak models lie between them on the third.
WEAK = """model,alpha,beta,gamma
heron,0.90,0.90,0.50
ibis,0.85,0.85,0.80
jay,0.20,0.10,0.70
kite,0.19,0.12,0.71
lark,0.18,0.14,0.72
merle,0.17,0.16,0.73
nene,0.16,0.18,0.74
owl,0.15,0.11,0.75
pipit,0.14,0.13,0.76
quail,0.13,0.15,0.77
"""


@pytest.fixture
def weak(tmp_path):
    path = tmp_path / "weak.csv"
    path.write_text(WEAK)
    return path


def test_weak_models_reorder_two_leaders(weak):
    study = board(weak)
    rows = {row["model"]: row for row in study.rows("field")}
    assert rows["heron"]["rank_among_top"] == 1
    assert rows["heron"]["rank_in_whole_field"] == 2
    (found,) = study.rows("measures")
    assert (found["weak_models_distance"], found["weak_models_largest"]) == (1.0, 1.0)
    assert "move one of these by up to 1 of 1 places" in study.finding.found
    assert [picture.name for picture in study.pictures] == ["ranks", "weak-models"]
    # Three tasks say nothing of how differently tasks rank.
    assert found["diversity"] is None
    assert any("5" in refusal.reason for refusal in study.refusals)


def test_fine_tunes_of_one_base_count_once():
    rng = np.random.default_rng(2)
    tasks = [f"task {at}" for at in range(6)]
    alone = [
        {"model": f"m{at}", **dict(zip(tasks, rng.random(6), strict=True))} for at in range(12)
    ]
    rows = [{**row, "family": "base" if at == 0 else ""} for at, row in enumerate(alone)]
    tuned = [
        {"model": f"tuned {at}", "family": "base", **{task: alone[0][task] / 2 for task in tasks}}
        for at in range(9)
    ]
    (apart,), (named,) = (board(own).rows("measures") for own in (alone, rows + tuned))
    without = [{name: row[name] for name in ("model", *tasks)} for row in rows + tuned]
    (unnamed,) = board(without).rows("measures")
    measures = [name for name in apart if "diversity" in name or "distance" in name]
    assert [named[name] for name in measures] == [apart[name] for name in measures]
    assert unnamed["diversity"] < named["diversity"]
    assert len(board(rows + tuned).rows()) == 21
    long = [
        {"model": row["model"], "task": task, "score": row[task], "family": row["family"]}
        for row in rows + tuned
        for task in tasks
    ]
    assert board(long).rows("measures") == [named]
    with refused(LogError, "two families"):
        board([*long[:-1], {**long[-1], "family": "another"}])


def test_a_long_table_is_the_same_board_and_the_study_is_written(weak, tmp_path):
    wide = board(weak)
    with weak.open(newline="") as file:
        long = [
            {"model": row["model"], "task": task, "score": row[task]}
            for row in csv.DictReader(file)
            for task in ("alpha", "beta", "gamma")
        ]
    assert board(long).rows() == wide.rows()
    out = write_study(wide, tmp_path / "out")
    assert (out / "weak-models.svg").stat().st_size > 5_000
    done = contam_here(
        "study", "board", "--scores", weak, "--task", "alpha", "gamma", "--out", "cli", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tables"]["measures"][0]["n_tasks"] == 2


def test_the_flags_of_a_re_scoring_change_the_order(tmp_path):
    """One model has learnt the flagged items of a task by heart and leads because of them."""
    rng = np.random.default_rng(3)
    skill = {"heron": 0.75, "ibis": 0.6, "jay": 0.4}
    labels = [
        {"id": f"{task}-{at}", "benchmark": task, "label": "dirty" if at < 60 else "clean"}
        for task in ("alpha", "beta")
        for at in range(200)
    ]
    logs = tmp_path / "logs"
    logs.mkdir()
    for task in ("alpha", "beta"):
        rows = [row["id"] for row in labels if row["benchmark"] == task]
        scored = {m: rng.random(200) < share for m, share in skill.items()}
        scored["ibis"][:60] = True
        scored["heron"][:60] = rng.random(60) < 0.5
        with (logs / f"{task}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["item_id", "question", *scored])
            writer.writerows(
                [name, f"question {name}", *(int(own[at]) for own in scored.values())]
                for at, name in enumerate(rows)
            )
    result = rescore(labels, logs)
    study = board(rescored=result)
    ranked = {row["model"]: row for row in study.rows()}
    assert (ranked["ibis"]["rank_mean"], ranked["ibis"]["rank_mean_clean"]) == (1, 2)
    changes = {row["aggregate"]: row for row in study.rows("changes")}
    assert changes["mean"]["n_moved"] == 2
    assert "change their rank" in study.finding.found
    folder = write_rescore(result, tmp_path / "rescored", plots=False)
    again = board(rescored=folder)
    assert again.rows() == study.rows()
    assert again.rows("changes") == study.rows("changes")
    (folder / "scores.parquet").write_bytes(b"PAR1")
    with pytest.raises(ContamError, match="rescored"):
        board(rescored=folder)


def table(header, *rows):
    return [dict(zip(header.split(), row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        (table("model a b", ("x", 1, 2)), ["model", 1]),
        (table("model a", ("x", 1), ("y", 2)), ["task", 1]),
        (table("model a b", ("x", 1, 1), ("y", 1, 1)), ["memory:scores"]),
        (table("model a b", ("x", 1, 2), ("x", 2, 1)), ["'x'"]),
        (table("model a b", ("x", 1, "nine"), ("y", 2, 1)), ["'nine'"]),
        (table("model a b", ("x", 1, "inf"), ("y", 2, 1)), ["'inf'"]),
        (table("model a b", ("x", 1, None), ("y", 2, None)), ["'b'"]),
        (table("model a b", ("x", 1, 2), ("y", None, None)), ["'y'"]),
        (table("model a b rank", ("x", 1, 2, 1), ("y", 2, 3, 2)), ["'rank'"]),
    ],
)
def test_what_is_no_board_is_refused(rows, facts):
    with refused((LogError, UsageError), *facts):
        board(rows)


def test_a_mean_over_two_scales_or_directions_is_refused_by_name():
    rows = table("model a b", ("x", 0.5, 50), ("y", 0.4, 70), ("z", 0.3, 20))
    for study in (board(rows), board(rows, lower_is_better=["a"])):
        assert all(row["mean"] is None for row in study.rows())
        assert study.rows("measures")[0]["cardinal_distance"] is None
        assert study.refusals[0].what.startswith("mean and cardinal sensitivity")
    assert board(rows).rows()[0]["model"] == "x"
    assert board(rows, lower_is_better=["a"]).rows()[0]["model"] == "y"


def test_a_task_that_sounds_as_if_less_were_better_is_asked_about():
    rows = table("model acc perplexity", ("x", 0.5, 50), ("y", 0.4, 70), ("z", 0.3, 20))
    with refused(UsageError, "'perplexity'", "--lower-is-better perplexity"):
        board(rows)
    with refused(UsageError, "perplexity"):
        board(rows, lower_is_better=["perplexity"], higher_is_better=["perplexity"])


def test_models_that_no_task_compares_are_named():
    rows = table("model a b c", ("x", 1, None, 2), ("y", None, 2, None), ("z", 3, 1, 1))
    study = board(rows)
    assert study.run["notes"] == ["1 pairs of models share no task, such as x and y: neither wins"]
    (measures,) = study.rows("measures")
    assert (measures["cardinal_distance"], measures["ordinal_distance"]) == (None, None)


def test_clean_scores_must_be_of_the_same_models():
    rows = table("model a b", ("x", 0.5, 0.3), ("y", 0.4, 0.7))
    other = table("model a b", ("x", 0.5, 0.3), ("z", 0.4, 0.7))
    with refused(LogError, "y", "z"):
        board(rows, clean=other)
    study = board(rows, clean=table("model a b", ("y", 0.4, 0.1), ("x", 0.5, 0.3)))
    assert [row["n_moved"] for row in study.rows("changes")] == [2, 0, 0]
    for options in ({"rescored": "x"}, {"lower_is_better": ["c"]}):
        with pytest.raises(UsageError):
            board(rows, **options)


def test_a_column_of_a_long_table_says_which_way_a_task_counts():
    rows = [
        {"model": f"m{at}", "task": task, "score": score, "higher_is_better": up}
        for at in range(6)
        for task, score, up in (("quiz", at / 10, True), ("speech", 0.9 - at / 10, False))
    ]
    (first, *_) = board(rows).rows()
    assert (first["model"], first["win_rate"]) == (
        "m5",
        max(r["win_rate"] for r in board(rows).rows()),
    )
    assert first["mean"] is None
    odd = [{**row, "higher_is_better": at > 0} for at, row in enumerate(rows)]
    with refused(LogError, "higher_is_better"):
        board(odd)


def test_the_metric_of_a_long_table_is_asked_about_as_a_re_scoring_asks():
    rows = table(
        "model task score metric",
        *((f"m{at}", "quiz", at / 10, "acc") for at in range(4)),
        *((f"m{at}", "wikitext", 20 - at, "word_perplexity,none") for at in range(4)),
    )
    with refused(UsageError, "'wikitext'", "word_perplexity,none", "--lower-is-better wikitext"):
        board(rows)
    assert board(rows, lower_is_better=["wikitext"]).rows()[0]["model"] == "m3"
    rows[0]["metric"] = "brier"
    with refused(LogError, "'quiz'", "'brier'", "'acc'"):
        board(rows, lower_is_better=["wikitext"])
    rows += table("model task score metric", *((f"m{at}", "exam", at, "acc") for at in range(4)))
    assert board(rows, tasks=["exam", "wikitext"], lower_is_better=["wikitext"]).rows()


def test_a_clean_table_may_not_contradict_the_scores():
    def long(up, metric="points"):
        cells = [("m0", "a", 1), ("m0", "b", 2), ("m1", "a", 2), ("m1", "b", 1)]
        header = "model task score higher_is_better metric"
        return table(header, *((*cell, up or cell[1] == "a", metric) for cell in cells))

    down, up = long(up=False), long(up=True)
    with refused(LogError, "'b'", "higher"):
        board(down, clean=up)
    with refused(LogError, "'a'", "'points'", "'marks'"):
        board(down, clean=long(up=False, metric="marks"))
    plain = [{name: row[name] for name in ("model", "task", "score")} for row in down]
    for study in (board(plain, clean=down), board(down, clean=up, lower_is_better=["b"])):
        assert [row["rank_win_rate"] for row in study.rows()] == [1, 2]
        assert study.rows()[0]["model"] == "m1"
    assert any("b: " in note for note in study.run["notes"])


def test_a_column_of_directions_is_no_task_of_a_wide_table():
    rows = table("model a b higher_is_better", ("x", 1, 2, 1), ("y", 2, 3, 0))
    for tasks in ((), ("a", "b")):
        with refused(UsageError, "'higher_is_better'", "--lower-is-better"):
            board(rows, tasks=tasks)
