"""Which way a metric counts, the same answer whichever way it is written, and which one is the main one."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from contam.errors import LogError, UsageError
from contam.rescore.logs.model import Log, LoggedItem, mean_column
from contam.rescore.logs.read import read_logs
from contam.rescore.metrics import directed, sounds_lower
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore
from contam.tables import schemas, score_schemas
from tests.matrix import sampled
from tests.rescore.logs.small import write_lines
from tests.rescore.logs.tools import write_json
from tests.rescore.panels import flags_of, refused, series_of, tables_of
from tests.rescore.stats.by_hand import mcnemar
from tests.rescore.test_annotations import write

FAST = RescoreSettings(permutations=199, draws=50, sweep_permutations=99, least=20)
KEYS = ("model", "first", "second", "benchmark", "metric", "subset_by", "subset", "method")
LEVELS = {"full", "clean", "flagged", "clean_with_unchecked", "bound"}
SIGNED = {
    *("epg", "epg_z", "epg_z_nested", "difference_full", "difference_clean"),
    *("gap", "adjusted", "gain", "change"),
    *("llama2_z_clean", "llama2_z_not_clean", "llama2_z_not_dirty", "llama2_z_dirty"),
}
UNSIGNED = {
    *("gap_p", "deletion_p", "deletion_sd", "kendall_tau", "spearman"),
    *("largest_rank_change", "deletion_tau_median", "detectable_clean", "threshold"),
    *("change_p", "detectable_change"),
    *("share_flagged", "best_p", "policy_threshold", "error", "p", "adjusted_p"),
}
"""Figures that mean the same in both directions; ranks, p and errors besides."""


def lowered(one, offset):
    """The same measurement written so that less is better."""
    score = offset - one.score
    return replace(
        one,
        score=score,
        aggregate=lambda mask: float(score[mask].mean()),
        higher_is_better=False,
    )


def world(seed, kind):
    """Four models on 160 items of two benchmarks, some flagged; the first remembers those."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(
        ["contaminated", "suspect", "clean", "not_checkable"], 160, p=[0.3, 0.1, 0.5, 0.1]
    )
    flags = flags_of(labels, contamination=rng.random(160).round(2))
    flags.cluster[:] = rng.integers(0, 120, 160) if seed % 2 else np.arange(160)
    series = []
    for model in "abcd":
        for benchmark in ("one", "two"):
            score = rng.random(160)
            if kind == "binary":
                score = (score < 0.5).astype(float)
            elif kind == "points":
                score = (score * 80 + 3).round()
            if model == "a":
                score[labels == "contaminated"] = score.max()
            series.append(series_of(score, model=model, benchmark=benchmark))
    return series, flags


def rows_of(tables):
    found = {}
    for name, table in tables.items():
        for row in schemas.rows(table):
            key = (name, *(row.get(part) for part in KEYS), row.get("threshold"), row.get("items"))
            assert key not in found
            found[key] = row
    return found


def mirrored(name):
    """What a column is about, and the column that its mirrored value stands in."""
    for low, high in (("_lo", "_hi"), ("_low", "_high")):
        for end, other in ((low, high), (high, low)):
            base = name.removesuffix(end)
            if base != name and base in LEVELS | SIGNED:
                return base, base + other
    return name, name


@pytest.mark.parametrize(
    ("seed", "kind", "offset"),
    sampled(
        3,
        [(1, "binary", 0), (2, "binary", 1), (2, "shares", 0), (1, "shares", 1), (3, "points", 0)],
    ),
)
def test_the_other_way_round_is_the_same_answer(seed, kind, offset):
    """Scores negated, or taken from 1, and less is better: ranks, p and sweep are the same ones."""
    series, flags = world(seed, kind)
    settings = RescoreSettings(
        permutations=199, draws=50, sweep_permutations=99, least=20, references=("c", "d")
    )
    up = rows_of(tables_of(series, [flags], settings))
    down = rows_of(tables_of([lowered(one, offset) for one in series], [flags], settings))
    assert up.keys() == down.keys()
    made = {"scores", "as_published", "rankings", "pairs", "sweep", "aggregate"}
    assert {key[0] for key in up} >= made
    for key, row in up.items():
        other = down[key]
        for name, value in row.items():
            if name in ("note", "metrics", "higher_is_better", "adjusted_by") or "relative" in name:
                continue
            base, place = mirrored(name)
            if isinstance(value, float):
                level = base in LEVELS or name in ("mean_full", "mean_clean")
                sign = -1 if level or base in SIGNED else 1
                expected = sign * value + (offset if level else 0)
                assert other[place] == pytest.approx(expected, abs=1e-9), (key, name)
            else:
                assert other[place] == value, (key, name)
        if "higher_is_better" in row:
            assert (row["higher_is_better"], other["higher_is_better"]) == (True, False)


def test_every_figure_says_how_it_turns():
    """A new column is a score, a difference or neither; a forgotten one would keep its sign."""
    for name in ("SCORES", "AS_PUBLISHED", "RANKINGS", "PAIRS", "SWEEP"):
        for field in getattr(score_schemas, name):
            if not pa.types.is_floating(field.type):
                continue
            plain = field.name
            for end in ("_lo", "_hi", "_low", "_high", "_holm", "_bh"):
                plain = plain.removesuffix(end)
            known = plain in LEVELS | SIGNED | UNSIGNED or plain.startswith(
                ("rank_", "p_", "error_", "relative_", "plain_relative_")
            )
            assert known, f"{name}.{field.name}"


def test_a_leak_of_a_metric_that_counts_down_is_found_by_the_sweep():
    """The leaky model loses little on what it has read, the honest one as much as anywhere."""
    rng = np.random.default_rng(4)
    contamination = np.concatenate([rng.uniform(0.6, 1, 150), rng.uniform(0, 0.4, 250)])
    flags = flags_of(["contaminated"] * 150 + ["clean"] * 250, contamination=contamination)
    loss = rng.normal(3, 0.5, 400)
    leaky = loss - np.where(np.arange(400) < 150, 0.8, 0)
    honest = loss + rng.normal(0, 0.1, 400)
    series = [
        lowered(series_of(-leaky, model="leaky", metric="loss"), 0.0),
        lowered(series_of(-honest, model="honest", metric="loss"), 0.0),
    ]
    rows = schemas.rows(tables_of(series, [flags], FAST)["sweep"])
    best = {row["model"]: row for row in rows if row["best"]}
    assert best["leaky"]["best_p"] <= 0.02
    assert best["honest"]["best_p"] > 0.05
    # In units of the loss: without what it has read it is higher.
    assert best["leaky"]["epg"] < 0
    assert not best["leaky"]["higher_is_better"]


def test_errors_of_0_and_1_keep_their_exact_tests():
    rng = np.random.default_rng(2)
    flags = flags_of(["contaminated"] * 40 + ["clean"] * 80)
    wrong = [(rng.random(120) < p).astype(float) for p in (0.2, 0.6)]
    series = [
        lowered(series_of(1 - score, model=name, metric="error"), 1.0)
        for name, score in zip("ab", wrong, strict=True)
    ]
    tables = tables_of(series, [flags], FAST)
    (pair,) = schemas.rows(tables["pairs"])
    assert pair["first"] == "a"
    assert pair["p_full"] == pytest.approx(mcnemar(*wrong))
    for row in schemas.rows(tables["scores"]):
        assert row["full_lo"] < row["full"] < row["full_hi"]
        assert row["bound_low"] <= row["full"] <= row["bound_high"]


def test_benchmarks_that_count_in_different_directions_have_no_mean_but_a_win_rate():
    rng = np.random.default_rng(8)
    flags = flags_of(["contaminated"] * 40 + ["clean"] * 80)
    skill = {"good": 0.9, "bad": 0.2}
    series = []
    for model, p in skill.items():
        right = (rng.random(120) < p).astype(float)
        series.append(series_of(right, model=model, benchmark="quiz"))
        own = series_of(right * 3, model=model, benchmark="speech", metric="wer")
        series.append(lowered(own, 9.0))
    rows = {
        row["model"]: row for row in schemas.rows(tables_of(series, [flags], FAST)["aggregate"])
    }
    assert rows["good"]["win_rate_full"] == 0.5
    assert rows["bad"]["win_rate_full"] == 0
    for row in rows.values():
        assert row["mean_full"] is None
        assert row["higher_is_better"] is None
        assert row["note"]
        assert row["metrics"] == "quiz: acc; speech: wer, lower is better"


def log_of(*metrics, tool="helm", model="m", **directions):
    return Log(
        tool=tool,
        path=f"{model}.json",
        digest=model,
        model=model,
        benchmark="b",
        items=(LoggedItem(item_id="1"),),
        columns=tuple(
            mean_column(name, np.ones(1), higher_is_better=directions.get(name)) for name in metrics
        ),
    )


LOWER = (
    *("loss", "word_perplexity,none", "bits_per_byte,none", "wer", "wer_score", "TER", "error"),
    *("error_rate", "edit-distance", "brier_score", "log_loss", "nll", "ece_10_bin", "match/error"),
)
HIGHER = (
    *("acc", "exact_match,strict-match", "f1", "bleu", "score", "terse", "glossary", "pass@1"),
    *("interesting", "answer", "character", "mirror", "lossless"),
)


@pytest.mark.parametrize("name", LOWER)
def test_names_of_metrics_that_count_down(name):
    assert sounds_lower(name)
    # A tool's log is read so and says so; a plain table must be told.
    (found,) = directed([log_of(name)])
    assert found.columns[0].higher_is_better is False
    assert found.notes
    with refused(LogError, f"--lower-is-better {name}"):
        directed([log_of(name, tool="table")])
    for way in ("lower", "higher"):
        (found,) = directed([log_of(name, tool="table")], **{way: (name,)})
        assert found.columns[0].higher_is_better is (way == "higher")


@pytest.mark.parametrize("name", HIGHER)
def test_other_names_count_up(name):
    assert not sounds_lower(name)
    (found,) = directed([log_of(name, tool="table")])
    assert found.columns[0].higher_is_better is True


def test_what_a_log_records_goes_before_the_name_and_the_user_before_both():
    (found,) = directed([log_of("loss", loss=True)])
    assert found.columns[0].higher_is_better is True
    (found,) = directed([log_of("acc,none", **{"acc,none": True})], lower=("acc",))
    assert found.columns[0].higher_is_better is False
    assert found.notes
    # One log of a benchmark records it, another one is silent.
    found = directed([log_of("wer", model="a"), log_of("wer", model="b", wer=True)])
    assert [log.columns[0].higher_is_better for log in found] == [True, True]


def test_contradictions_and_unknown_names_are_errors():
    two = [log_of("acc", model="a", acc=True), log_of("acc", model="b", acc=False)]
    with refused(LogError, "acc", "a.json", "b.json"):
        directed(two)
    assert [log.columns[0].higher_is_better for log in directed(two, lower=("acc",))] == [False] * 2
    for ways in ({"lower": ("f1",)}, {"lower": ("acc",), "higher": ("acc",)}):
        with pytest.raises(UsageError):
            directed(two, **ways)


ROWS = "id,model,metric,score{head}\n" + "".join(
    f"q{at},m,wer,0.{at}{{cell}}\n" for at in range(1, 9)
)


@pytest.mark.parametrize(
    ("column", "cell", "expected"),
    [
        ("lower_is_better", "true", False),
        ("lower_is_better", "0", True),
        ("higher_is_better", "False", False),
        ("higher_is_better", "yes", True),
    ],
)
def test_a_column_of_a_table_says_which_way_its_scores_count(tmp_path, column, cell, expected):
    path = tmp_path / "scores.csv"
    path.write_text(ROWS.format(head=f",{column}", cell=f",{cell}"))
    (log,) = directed(read_logs([path]))
    assert log.columns[0].higher_is_better is expected
    path.write_text(f"id,model-a,{column}\n" + "".join(f"q{at},0.{at},{cell}\n" for at in range(9)))
    (log,) = directed(read_logs([path]))
    assert (log.model, log.columns[0].higher_is_better) == ("model-a", expected)


@pytest.mark.parametrize(
    ("cells", "line"), [(["", "true"], 2), (["maybe", "true"], 2), (["true", "false"], 9)]
)
def test_a_cell_that_does_not_say_it_and_rows_that_disagree_are_errors(tmp_path, cells, line):
    path = tmp_path / "scores.csv"
    first, last = cells
    text = ROWS.format(head=",lower_is_better", cell=",true")
    text = text.replace("0.1,true", f"0.1,{first}").replace("0.8,true", f"0.8,{last}")
    path.write_text(text)
    with refused(LogError, f"{path}:{line}"):
        read_logs([path])


# ------------------------------------------------------------------- the main metric of a benchmark


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
