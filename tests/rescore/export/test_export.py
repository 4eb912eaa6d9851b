"""`contam export`: which items go out, in which form, and what is refused."""

import json
import math
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import contam as library
from contam.detect.labels import LABELS
from contam.errors import LogError
from contam.rescore.export.evaluator import (
    LabelledLog,
    every_eval_logs,
    inspect_log,
    lm_eval_samples,
)
from contam.rescore.logs import read_logs, self_check
from tests.cli.processes import assert_one_line_error, contam_here
from tests.rescore.logs.small import TIME, lm_eval

CLEAN, SUSPECT, CONTAMINATED, NOT_CHECKABLE = range(4)


@pytest.fixture(scope="module")
def verdicts(bench_fixtures, tmp_path_factory):
    items = bench_fixtures / "items" / "lantern_quiz.jsonl"
    result = library.scan(bench_fixtures / "corpus", items, workers=1)
    return library.write_report(result, tmp_path_factory.mktemp("export") / "verdicts")


@pytest.fixture(scope="module")
def docs(bench_fixtures):
    lines = (bench_fixtures / "items" / "lantern_quiz.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in reversed(lines)]


@pytest.fixture(scope="module")
def clean(verdicts):
    return {v.item_id for v in library.load_report(verdicts) if v.label == "clean"}


def judged(path, labels):
    (log,) = read_logs([path])
    return LabelledLog(log=log, policy="contam", label=np.array(labels, np.int8))


def renumbered(path, ids):
    """The rows of a log under other document ids, as a run on a part of the task has them."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [{**row, "doc_id": place} for row, place in zip(rows, ids, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


# -------------------------------------------------------------------------------------- lm-eval


def test_the_clean_documents_go_out_by_their_place_in_the_task(verdicts, docs, clean, tmp_path):
    rows = [{key: row.get(key) for key in ("question", "choices", "passage")} for row in docs]
    scores = [float(place % 3 > 0) for place in range(len(rows))]
    lm_eval(tmp_path / "logs", scores, docs=rows)
    process = contam_here(
        "export", "--verdicts", verdicts, "--logs", tmp_path / "logs", "--lm-eval-samples"
    )
    assert process.returncode == 0, process.stderr
    wanted = [place for place, row in enumerate(docs) if row["id"] in clean]
    assert json.loads(process.stdout) == {"lantern": wanted}
    assert "17 clean by contam; left out: 3 suspect, 26 contaminated, 2 not_checkable" in (
        process.stderr
    )
    mean = sum(scores[place] for place in wanted) / len(wanted)
    assert f"acc,none: {mean:.6f} on 17 clean items" in process.stderr


def test_only_clean_documents_of_all_models_go_out_ascending(tmp_path):
    short = judged(lm_eval(tmp_path / "a", [1, 0]), [CONTAMINATED, CLEAN])
    long = judged(
        lm_eval(tmp_path / "b", [1, 0, 1, 1, 0], model="b"),
        [CONTAMINATED, CLEAN, SUSPECT, CLEAN, NOT_CHECKABLE],
    )
    assert lm_eval_samples([long, short]) == {"lantern": [1, 3]}


def test_a_task_without_a_clean_item_is_refused_because_lm_eval_would_run_it_whole(tmp_path):
    with pytest.raises(LogError, match="none of its 2 items is clean"):
        lm_eval_samples([judged(lm_eval(tmp_path, [1, 0]), [CONTAMINATED, NOT_CHECKABLE])])


def test_two_versions_of_a_task_are_refused(tmp_path):
    one = judged(lm_eval(tmp_path / "a", [1, 0]), [CLEAN, CLEAN])
    other = judged(lm_eval(tmp_path / "b", [1, 0], model="b", doc_hash="else"), [CLEAN, CLEAN])
    with pytest.raises(LogError, match="document 0 of lantern is another one"):
        lm_eval_samples([one, other])


@pytest.mark.parametrize(
    ("ids", "fine"),
    [
        ([0, 1, 2, 3, 4], True),
        ([3, 7, 12, 99, 250], True),
        ([0, 2, 4, 1, 3], True),  # two processes, every second document each
        ([0, 3, 1, 4, 2], True),  # three
        ([7, 3, 250, 12, 99], False),
        ([4, 3, 2, 1, 0], False),
        ([1, 3, 0, 2, 4], False),
    ],
)
def test_document_ids_that_lm_eval_may_have_given_wrongly_are_refused(tmp_path, ids, fine):
    one = judged(renumbered(lm_eval(tmp_path, [1, 0, 1, 0, 1]), ids), [CLEAN] * 5)
    if fine:
        assert lm_eval_samples([one]) == {"lantern": sorted(ids)}
    else:
        with pytest.raises(LogError, match="not in order"):
            lm_eval_samples([one])


def test_a_log_without_its_results_is_refused(tmp_path):
    path = lm_eval(tmp_path, [1, 0])
    (tmp_path / f"results_{TIME}.json").unlink()
    with pytest.raises(LogError, match="which task"):
        lm_eval_samples([judged(path, [CLEAN, CLEAN])])


# -------------------------------------------------------------------------------------- Inspect


def event(kind, span, **more):
    return {"event": kind, "id": span, "span_id": span, **more}


def inspect_tree():
    """Two items, two epochs, a plain score and one of two parts."""
    values = {1: "C", 2: "I"}
    samples = [
        {
            "id": name,
            "epoch": epoch,
            "input": f"What is the {name}. bell of the tower called?",
            "target": "x",
            "scores": {
                "match": {"value": values[name], "answer": "a", "metadata": {"k": 1}},
                "parts": {"value": {"right": 1.0, "length": 3}, "reason": "no_response"},
            },
            "events": [
                event("span_begin", "s", type="scorers", name="scorers"),
                event("span_end", "s"),
                event("info", "z"),
            ],
        }
        for epoch in (1, 2)
        for name in values
    ]
    accuracy = {"accuracy": {"name": "accuracy", "value": 0.5}}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "lantern",
            "model": "m",
            "eval_id": "e",
            "dataset": {"shuffled": False},
            "config": {"epochs": 2},
        },
        "plan": {},
        "results": {
            "total_samples": 4,
            "headline": {"metric": "accuracy"},
            "scores": [
                {
                    "name": "match",
                    "scorer": "match",
                    "reducer": "mean",
                    "scored_samples": 2,
                    "metrics": accuracy,
                }
            ],
        },
        "samples": samples,
        "reductions": [
            {
                "scorer": "match",
                "reducer": "mean",
                "samples": [{"sample_id": name, "value": values[name]} for name in values],
            }
        ],
    }


def written(tree, path):
    if path.suffix == ".json":
        path.write_text(json.dumps(tree))
        return path
    with zipfile.ZipFile(path, "w") as archive:
        for sample in tree["samples"]:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("reductions.json", json.dumps(tree["reductions"]))
        rest = {k: v for k, v in tree.items() if k not in {"samples", "reductions"}}
        archive.writestr("header.json", json.dumps(rest))
    return path


@pytest.mark.parametrize("name", ["log.json", "log.eval"])
@pytest.mark.parametrize("label", [SUSPECT, CONTAMINATED, NOT_CHECKABLE])
def test_what_is_not_clean_is_unscored_in_every_epoch_with_its_history(tmp_path, name, label):
    tree = inspect_tree()
    edited = inspect_log(judged(written(tree, tmp_path / name), [CLEAN, label]))
    for before, after in zip(tree["samples"], edited["samples"], strict=True):
        if before["id"] == 1:
            assert after == before
            continue
        plain, parts = after["scores"]["match"], after["scores"]["parts"]
        assert math.isnan(plain["value"])
        assert parts["value"].keys() == {"right", "length"}
        assert all(map(math.isnan, parts["value"].values()))
        assert plain["reason"] == parts["reason"] == LABELS[label]
        assert (plain["answer"], plain["metadata"]) == ("a", {"k": 1})
        first, last = plain["history"]
        assert (first["value"], first["answer"], first["provenance"]) == ("I", "a", None)
        assert parts["history"][0]["reason"] == "no_response"
        assert math.isnan(last["value"])
        assert last["provenance"]["reason"] == f"{LABELS[label]} by policy contam"
        kinds = [one["event"] for one in after["events"]]
        assert kinds == ["span_begin", "score_edit", "score_edit", "span_end", "info"]
        assert [one["score_name"] for one in after["events"][1:3]] == ["match", "parts"]
    # A mean over all items must not stand in a log whose scores are edited.
    assert edited["results"] == {"total_samples": 4, "scores": []}
    assert "reductions" not in edited


def test_an_inspect_log_without_a_clean_item_is_refused(tmp_path):
    path = written(inspect_tree(), tmp_path / "log.json")
    with pytest.raises(LogError, match="none of its 2 items is clean"):
        inspect_log(judged(path, [CONTAMINATED, SUSPECT]))


# -------------------------------------------------------------------------------------- the call


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "export to what?"),
        (["--lm-eval-samples", "--inspect"], 2, "export to what?"),
        (["--inspect"], 2, "--out FILE.json"),
        (["--lm-eval-samples", "--policy", "ghost"], 2, "no policy ghost"),
        (["--lm-eval-samples"], 1, "is a log of table, not of lm-eval"),
        (["--inspect", "--out", "edited.json"], 1, "is a log of table, not of inspect"),
    ],
)
def test_what_does_not_fit_is_one_line(verdicts, bench_fixtures, tmp_path, arguments, code, words):
    logs = bench_fixtures / "logs" / "lantern_quiz.csv"
    process = contam_here(
        "export", "--verdicts", verdicts, "--logs", logs, *arguments, cwd=tmp_path
    )
    assert_one_line_error(process, code, words)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_kept(verdicts, docs, tmp_path):
    rows = [{key: row.get(key) for key in ("question", "choices", "passage")} for row in docs]
    lm_eval(tmp_path / "logs", [1.0] * len(rows), docs=rows)
    out = tmp_path / "out.json"
    out.write_text("mine")
    options = ["--verdicts", verdicts, "--logs", tmp_path / "logs", "--lm-eval-samples"]
    assert_one_line_error(contam_here("export", *options, "--out", out), 1, "already exists")
    assert out.read_text() == "mine"
    assert contam_here("export", *options, "--out", out, "--overwrite").returncode == 0
    assert len(json.loads(out.read_bytes())["lantern"]) == 17


# ------------------------------------------------------------------------------- Every Eval Ever


def test_logs_of_any_tool_go_out_in_the_shared_form(verdicts, docs, clean, tmp_path):
    rows = [{key: row.get(key) for key in ("question", "choices", "passage")} for row in docs]
    scores = [float(place % 3 > 0) for place in range(len(rows))]
    lm_eval(tmp_path / "logs", scores, docs=rows)
    lines = "".join(f"{row['id']},m,{place % 2}\n" for place, row in enumerate(docs))
    (tmp_path / "logs" / "lantern_quiz.csv").write_text(f"id,model,score\n{lines}")
    out = tmp_path / "shared"
    command = ["export", "--verdicts", verdicts, "--logs", tmp_path / "logs", "--every-eval-ever"]
    assert_one_line_error(contam_here(*command), 2, "writes a folder")
    process = contam_here(*command, "--out", out)
    assert process.returncode == 0, process.stderr
    assert f"{len(clean)} clean by contam" in process.stderr
    logs = {log.model: log for log in read_logs([out])}
    assert set(logs) == {"org/tiny", "m"}
    for log in logs.values():
        self_check(log)
    documents = [json.loads(path.read_text()) for path in out.glob("*.json")]
    for document in documents:
        full, without = document["evaluation_results"]
        model = document["model_info"]["id"]
        column = logs[model].columns[0]
        names = [docs[int(i)]["id"] if model != "m" else i for i in ids(logs[model])]
        mask = np.array([name in clean for name in names])
        assert full["score_details"]["score"] == pytest.approx(column.reported)
        assert without["score_details"]["score"] == pytest.approx(column.aggregate(mask))
        assert without["score_details"]["details"]["policy"] == "contam"
    again = contam_here(*command, "--out", out)
    assert_one_line_error(again, 1, "already holds")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert contam_here(*command, "--out", out, "--overwrite").returncode == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def ids(log):
    return [item.item_id for item in log.items]


def test_without_a_clean_item_there_is_no_clean_result(tmp_path):
    one = judged(lm_eval(tmp_path, [1, 0]), [CONTAMINATED, SUSPECT])
    files = every_eval_logs([one])
    (document,) = (json.loads(data) for name, data in files.items() if name.endswith(".json"))
    assert len(document["evaluation_results"]) == 1


def test_a_metric_of_which_less_is_better_goes_out_as_one(tmp_path):
    """Most logs do not record it; the shared form always does, and is believed."""
    one = judged(lm_eval(tmp_path / "in", [1, 0, 0.5]), [CLEAN, CLEAN, CONTAMINATED])

    def named(metric, tool="lm-eval", *, higher=None):
        column = replace(one.log.columns[0], metric=metric, higher_is_better=higher)
        return replace(one, log=replace(one.log, columns=(column,), tool=tool))

    def written(logs, **options):
        files = every_eval_logs(logs, **options)
        (whole,) = (json.loads(data) for name, data in files.items() if name.endswith(".json"))
        said = [row["metric_config"]["lower_is_better"] for row in whole["evaluation_results"]]
        (rows,) = (data for name, data in files.items() if name.endswith(".jsonl"))
        right = [json.loads(line)["evaluation"]["is_correct"] for line in rows.splitlines()]
        return said, right

    assert written([named("wer")]) == ([True, True], [False, True, False])
    assert written([named("exact_match")]) == ([False, False], [True, False, False])
    assert written([named("wer", higher=True)]) == ([False, False], [True, False, False])
    with pytest.raises(LogError, match="is a lower wer better"):
        every_eval_logs([named("wer", "table")])
    assert written([named("wer", "table")], lower_is_better=["wer"])[0] == [True, True]
    assert written([named("wer", "table")], higher_is_better=["wer"])[0] == [False, False]


def test_the_direction_of_a_metric_can_be_said_on_the_command_line(verdicts, docs, tmp_path):
    lines = "".join(f"{row['id']},m,{place % 2}\n" for place, row in enumerate(docs))
    (tmp_path / "lantern_quiz.csv").write_text(f"id,model,loss\n{lines}")
    process = contam_here(
        *("export", "--verdicts", verdicts, "--logs", tmp_path, "--every-eval-ever"),
        *("--columns", "score=loss", "--lower-is-better", "loss", "--out", tmp_path / "shared"),
    )
    assert process.returncode == 0, process.stderr
    (log,) = read_logs([tmp_path / "shared"])
    assert log.columns[0].higher_is_better is False
