"""Which metric of a benchmark counts across benchmarks: as asked, as its logs say, the only one."""

import pytest

from contam.errors import UsageError
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore
from tests.rescore.logs.small import write_lines
from tests.rescore.logs.tools import write_json
from tests.rescore.panels import refused
from tests.rescore.test_annotations import write

N = 24
MODELS = {"alder": 0.9, "cedar": 0.3}


def question(task, i):
    return f"How many of the {i + 3} boats of the {task} guild lay at quay no. {i} when it froze?"


def value(model, metric, i):
    """0 or 1; metrics disagree, models are better the sooner they come."""
    return int((7 * i + 3 * len(metric)) % 10 < 10 * MODELS[model])


def olmes(folder, task, metrics, primary, models=MODELS):
    """A run of OLMES for each model, with the main metric in its configuration."""
    for model in models:
        stem = folder / model / f"task-000-{task}"
        rows = [{name: value(model, name, i) for name in metrics} for i in range(N)]
        common = {"task_hash": "a" * 32, "model_hash": "b" * 32}
        write_lines(
            stem.with_name(stem.name + "-predictions.jsonl"),
            [
                {"doc_id": i, "native_id": f"{task}-{i}", "metrics": row, "model_output": [],
                 "label": 0, **common}
                for i, row in enumerate(rows)
            ],
        )  # fmt: skip
        write_lines(
            stem.with_name(stem.name + "-requests.jsonl"),
            [
                {"request_type": "loglikelihood", "doc": {"question": question(task, i)},
                 "idx": 0, "task_name": task, "doc_id": i, "native_id": f"{task}-{i}",
                 "request": {"context": question(task, i), "continuation": " x"}}
                for i in range(N)
            ],
        )  # fmt: skip
        about = {
            "task_name": task,
            "model_config": {"model": model},
            "task_config": {"primary_metric": primary},
            "num_instances": N,
            "metrics": {name: sum(row[name] for row in rows) / N for name in metrics},
            **common,
        }
        write_json(stem.with_name(stem.name + "-metrics.json"), about)
    return folder


def table(path, task, metrics):
    """A plain table, which names no main metric."""
    rows = [
        {"benchmark": task, "item_id": f"{task}-{i}", "question": question(task, i), "model": model,
         "metric": metric, "score": value(model, metric, i)}
        for model in MODELS for metric in metrics for i in range(N)
    ]  # fmt: skip
    return write(path, rows)


def tables(folder, **metrics):
    return [table(folder / f"{task}.csv", task, own.split()) for task, own in metrics.items()]


@pytest.fixture
def labels(tmp_path):
    """Every fourth item of three benchmarks is flagged."""
    return write(
        tmp_path / "labels.csv",
        [
            {"benchmark": task, "item_id": f"{task}-{i}", "question": question(task, i),
             "label": "contaminated" if i % 4 == 0 else "clean"}
            for task in ("quay", "mill", "weir") for i in range(N)
        ],
    )  # fmt: skip


def scored(labels, *logs, metrics=()):
    settings = RescoreSettings(
        permutations=99, draws=20, sweep_permutations=20, least=5, metrics=tuple(metrics)
    )
    return rescore(labels, [str(log) for log in logs], settings=settings)


def mean(metric_of, model):
    """The mean over benchmarks of a model's mean score."""
    sums = [sum(value(model, metric, i) for i in range(N)) / N for metric in metric_of.values()]
    return sum(sums) / len(sums)


def aggregated(result):
    rows = {row["model"]: row for row in result.rows("aggregate")}
    assert set(rows) == set(MODELS)
    return rows


def test_a_benchmark_whose_main_metric_nobody_names_is_left_out_and_named(labels, tmp_path):
    logs = tables(tmp_path, quay="acc", mill="em", weir="rouge chrf_sum")
    result = scored(labels, *logs)
    for model, row in aggregated(result).items():
        assert row["n_benchmarks"] == 2
        assert row["mean_full"] == pytest.approx(mean({"quay": "acc", "mill": "em"}, model))
        assert row["metrics"] == "mill: em; quay: acc"
        for name in ("weir", "rouge", "chrf_sum", "--metric"):
            assert name in row["note"]
    assert any("weir" in note and "--metric" in note for note in result.run["notes"])
    # Its own rows are there all the same.
    assert {row["metric"] for row in result.rows("scores") if row["benchmark"] == "weir"} == {
        "rouge", "chrf_sum",
    }  # fmt: skip


@pytest.mark.parametrize("asked", ["rouge", "weir=rouge"])
def test_a_metric_that_is_asked_for_is_the_one_that_counts(labels, tmp_path, asked):
    logs = tables(tmp_path, quay="acc", weir="rouge chrf_sum")
    for model, row in aggregated(scored(labels, *logs, metrics=[asked])).items():
        assert row["mean_full"] == pytest.approx(mean({"quay": "acc", "weir": "rouge"}, model))
        assert row["metrics"] == "quay: acc; weir: rouge"
        assert "weir" not in row["note"]


@pytest.mark.parametrize("asked", ["bleu", "quay=rouge"])
def test_a_metric_that_no_log_has_is_refused_with_those_there_are(labels, tmp_path, asked):
    logs = tables(tmp_path, quay="acc", weir="rouge chrf_sum")
    with refused(UsageError, asked, "weir=rouge"):
        scored(labels, *logs, metrics=[asked])


def test_the_main_metric_that_a_log_names_is_the_one_that_counts(labels, tmp_path):
    logs = [
        olmes(tmp_path / "quay", "quay", ["acc_per_char", "acc_raw"], "acc_raw"),
        *tables(tmp_path, mill="em"),
    ]
    for model, row in aggregated(scored(labels, *logs)).items():
        assert row["metrics"] == "mill: em; quay: acc_raw"
        assert row["mean_full"] == pytest.approx(mean({"quay": "acc_raw", "mill": "em"}, model))


def test_logs_that_name_different_main_metrics_leave_the_benchmark_out(labels, tmp_path):
    both = ["acc_per_char", "acc_raw"]
    logs = [
        olmes(tmp_path / "a", "quay", both, "acc_raw", models=["alder"]),
        olmes(tmp_path / "b", "quay", both, "acc_per_char", models=["cedar"]),
        *tables(tmp_path, mill="em", weir="rouge"),
    ]
    for row in aggregated(scored(labels, *logs)).values():
        assert row["metrics"] == "mill: em; weir: rouge"
        assert "acc_per_char" in row["note"]
        assert "acc_raw" in row["note"]


def test_no_other_metric_takes_the_place_of_a_main_metric_without_scores(labels, tmp_path):
    logs = [
        olmes(tmp_path / "quay", "quay", ["acc_per_char"], "acc_raw"),
        *tables(tmp_path, mill="em", weir="rouge"),
    ]
    for row in aggregated(scored(labels, *logs)).values():
        assert row["metrics"] == "mill: em; weir: rouge"
        assert "acc_raw" in row["note"]
    for row in aggregated(scored(labels, *logs, metrics=["quay=acc_per_char"])).values():
        assert row["metrics"] == "mill: em; quay: acc_per_char; weir: rouge"
