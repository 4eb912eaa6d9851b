"""EvalPlus, SWE-bench, OLMES and OpenCompass, and what cannot be read and says so."""

import json

import numpy as np
import pytest

from contam.errors import LogError
from contam.rescore.join import Joiner
from contam.rescore.logs.model import self_check
from contam.rescore.logs.read import find_logs, read_logs
from tests.rescore.logs.small import QUESTIONS, item, items_table, lm_eval, write_lines
from tests.rescore.logs.tools import (
    RIGHT,
    eval_plus,
    olmes,
    opencompass,
    swe_bench,
    swe_bench_instances,
    write_json,
)
from tests.rescore.panels import refused


def edited(path, change):
    document = json.loads(path.read_text())
    change(document)
    return write_json(path, document)


# --------------------------------------------------------------------------------------- EvalPlus


def test_eval_plus_has_a_metric_for_each_set_of_tests(tmp_path):
    eval_plus(tmp_path)
    (log,) = read_logs([tmp_path])
    assert (log.tool, log.model, log.benchmark) == (
        "evalplus",
        "org--tiny_vllm_temp_0.0",
        "Quay",
    )
    assert log.column("pass@1,base").score.tolist() == list(RIGHT)
    assert log.column("pass@1,plus").score.tolist() == [0, *RIGHT[1:]]
    assert [one.item_id for one in log.items] == [f"Quay/{i}" for i in range(6)]
    edited(next(tmp_path.iterdir()), lambda one: one.update(pass_at_k={"base": {"pass@1": 0.5}}))
    self_check(read_logs([tmp_path])[0])


# -------------------------------------------------------------------------------------- SWE-bench


def test_a_swe_bench_report_counts_as_the_tool_does(tmp_path):
    swe_bench(tmp_path)
    (log,) = read_logs([tmp_path])
    self_check(log)
    assert (log.model, log.run_id, log.tool) == ("org/tiny-1.5", "nightly", "swe-bench")
    assert log.column("resolved").aggregate(np.ones(6, np.bool_)) == 0.5
    assert [note for note in log.notes if "1 instance " in note and "error" in note]


def test_an_instance_without_an_answer_has_no_score(tmp_path):
    swe_bench(tmp_path, incomplete=["guild__ledger-105"])
    (log,) = read_logs([tmp_path])
    self_check(log)
    assert np.isnan(log.column("resolved").score[5])
    assert log.n_unscored == 1


def test_reports_of_instances_are_one_log(tmp_path):
    swe_bench_instances(tmp_path)
    run = tmp_path / "logs" / "run_evaluation" / "nightly" / "org__tiny-1.5"
    (run / "guild__ledger-109").mkdir()
    (log,) = read_logs([tmp_path])
    assert (log.model, log.run_id) == ("org/tiny-1.5", "nightly")
    assert log.column("resolved").score[:6].tolist() == list(RIGHT)
    assert np.isnan(log.column("resolved").score[6])
    one = run / "guild__ledger-102" / "report.json"
    assert len(read_logs([one])[0].items) == 7


def test_submissions_of_instances_are_called_after_their_folder(tmp_path):
    for model, step in (("20240620_own_tiny", 3), ("20240912_own_huge", 2)):
        for i in range(6):
            name = f"guild__ledger-{100 + i}"
            logs = tmp_path / "evaluation" / "verified" / model / "logs"
            write_json(logs / name / "report.json", {name: {"resolved": i % step == 0}})
    found = {log.model: log.columns[0].score.tolist() for log in read_logs([tmp_path])}
    assert found == {
        "20240620_own_tiny": [1, 0, 0, 1, 0, 0],
        "20240912_own_huge": [1, 0, 1, 0, 1, 0],
    }


# ------------------------------------------------------------------------------------------ OLMES


def test_olmes_predictions_have_the_items_of_their_requests(tmp_path):
    olmes(tmp_path)
    (log,) = read_logs([tmp_path])
    self_check(log)
    assert (log.tool, log.model, log.benchmark) == ("olmes", "org/tiny", "lantern")
    assert [column.metric for column in log.columns] == ["acc_raw"]
    assert [one.question for one in log.items] == list(QUESTIONS)
    assert [one.item_id for one in log.items] == [f"quay-{i}" for i in range(6)]
    table = items_table([item(f"b{i}", q, ["two", "one"]) for i, q in enumerate(QUESTIONS)])
    assert Joiner(table).join(log).by["item"] == 6


def test_olmes_predictions_alone_have_ids_and_say_so(tmp_path):
    olmes(tmp_path)
    for path in tmp_path.iterdir():
        if "predictions" not in path.name:
            path.unlink()
    (log,) = read_logs([tmp_path])
    assert log.benchmark == "lantern"
    assert log.items[0].question is None
    assert any("no requests file" in note for note in log.notes)
    assert any("no metrics file" in note for note in log.notes)


# ------------------------------------------------------------------------------------ OpenCompass


@pytest.mark.parametrize("parts", [1, 2])
def test_opencompass_results_and_predictions_are_one_log(tmp_path, parts):
    opencompass(tmp_path, parts=parts)
    (log,) = read_logs([tmp_path])
    self_check(log)
    assert (log.tool, log.model, log.benchmark) == ("opencompass", "tiny-hf", "lantern")
    assert log.column("accuracy").score.tolist() == list(RIGHT)
    assert log.column("accuracy").reported == 0.5
    assert [one.prompt for one in log.items] == list(QUESTIONS)
    table = items_table([item(f"b{i}", q) for i, q in enumerate(QUESTIONS)])
    assert Joiner(table).join(log).n_matched == 6


def test_opencompass_without_details_says_how_to_get_them(tmp_path):
    opencompass(tmp_path, details=False)
    for _ in range(2):
        with refused(LogError, "--dump-eval-details"):
            read_logs([tmp_path])
        (tmp_path / next(tmp_path.rglob("results/*/*.json"), "none")).unlink(missing_ok=True)


def test_choices_by_perplexity_need_no_details(tmp_path):
    opencompass(tmp_path, details=False)
    path = next(tmp_path.rglob("predictions/*/*.json"))
    rows = json.loads(path.read_text())
    for row, right in zip(rows.values(), RIGHT, strict=True):
        row |= {"label: A": {"PPL": 1.0}, "prediction": "A", "gold": "A" if right else "B"}
    write_json(path, rows)
    (log,) = read_logs([tmp_path])
    self_check(log)
    assert log.column("accuracy").score.tolist() == list(RIGHT)


def test_runs_of_an_item_are_averaged(tmp_path):
    opencompass(tmp_path)
    predictions = next(tmp_path.rglob("predictions/*/*.json"))
    rows = list(json.loads(predictions.read_text()).values())
    write_json(predictions, {str(i): row for i, row in enumerate([*rows, *rows])})
    details = [
        {"example_abbr": f"lantern_{i}", "pred": ["x", "y"], "correct": [bool(right), False]}
        for i, right in enumerate(RIGHT)
    ]
    results = next(tmp_path.rglob("results/*/*.json"))
    write_json(results, {"accuracy (2 runs average)": 25.0, "details": details})
    (log,) = read_logs([tmp_path])
    self_check(log)
    assert log.column("accuracy").score.tolist() == [right / 2 for right in RIGHT]
    assert [one.prompt for one in log.items] == list(QUESTIONS)


# ------------------------------------------------------------------ what contradicts itself


@pytest.mark.parametrize(
    ("write", "file", "change", "facts"),
    [
        (eval_plus, "*.json", lambda one: one.update(pass_at_k={"base": {"pass@1": 0.6}}), ["0.6"]),
        (
            eval_plus,
            "*.json",
            lambda one: one["eval"]["Quay/3"][0].update(base_status="perhaps"),
            ["Quay/3", "perhaps"],
        ),
        (swe_bench, "*.json", lambda one: one["resolved_ids"].pop(), ["2 resolved_ids", "3"]),
        (
            swe_bench,
            "*.json",
            lambda one: one["unresolved_ids"].__setitem__(0, one["resolved_ids"][0]),
            ["guild__ledger-100"],
        ),
        (
            olmes,
            "*-lantern-metrics.json",
            lambda one: one["metrics"].update(acc_raw=0.75),
            ["0.75", "0.5"],
        ),
        (olmes, "*-lantern-metrics.json", lambda one: one.update(num_instances=7), ["6", "7"]),
        (opencompass, "predictions/*/*.json", lambda one: one.pop("5"), ["6", "5"]),
    ],
)
def test_a_run_that_contradicts_itself_is_refused_with_the_facts(
    tmp_path, write, file, change, facts
):
    write(tmp_path)
    edited(next(tmp_path.rglob(file)), change)
    with refused(LogError, *facts):
        self_check(read_logs([tmp_path])[0])


# ----------------------------------------------------------------------------- what is not read


@pytest.mark.parametrize(
    ("document", "fact"),
    [
        ({"score": 0.7, "score:std": 0.46, "chars": 910.5}, "the means of a simple-evals"),
        (
            {"score": 0.5, "metrics": {}, "htmls": ["<p>Score: 1</p>"], "convos": [[]]},
            "HTML only",
        ),
        (
            {"testCases": [{"name": "t", "input": "Why?", "metricsData": []}], "metricsScores": []},
            "predictions.to_csv",
        ),
    ],
)
def test_outputs_without_scores_per_item_say_what_to_export(tmp_path, document, fact):
    # simple-evals itself suggests folders called `results`, where OpenCompass keeps its own.
    path = write_json(tmp_path / "results" / "monday" / "found.json", document)
    with refused(LogError, path, fact, "table"):
        read_logs([path])
    (tmp_path / "t.csv").write_text("id,score\na,1\n", encoding="utf-8")
    ((_, reason),) = find_logs([tmp_path]).skipped
    assert fact in reason


def test_requests_alone_are_listed_as_left_out(tmp_path):
    lm_eval(tmp_path, [1, 0])
    rows = [{"doc_id": n, "native_id": n, "request": {"context": "?"}} for n in range(2)]
    write_lines(tmp_path / "task-000-quay-requests.jsonl", rows)
    ((path, reason),) = find_logs([tmp_path]).skipped
    assert path.endswith("requests.jsonl")
    assert "not beside it" in reason
