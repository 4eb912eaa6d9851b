"""`contam rescore` as a user runs it: files, exit codes, refusals."""

import csv
import json
import shutil

import pyarrow.parquet as pq
import pytest

import contam as library
from tests.cli.processes import assert_one_line_error, contam_here


@pytest.fixture(scope="module")
def verdicts(bench_fixtures, tmp_path_factory):
    result = library.scan(bench_fixtures / "corpus", bench_fixtures / "items", workers=1)
    return library.write_report(result, tmp_path_factory.mktemp("rescore") / "verdicts")


def test_a_planted_leak_is_found_and_the_ranking_flips(verdicts, bench_fixtures, tmp_path):
    out = tmp_path / "scores"
    given = ("rescore", "--verdicts", verdicts, "--logs", bench_fixtures / "logs", "--out", out)
    given += ("--permutations", "999")
    process = contam_here(*given, "--least", "12", "--json", "--quiet")
    assert process.returncode == 0, process.stderr
    tree = json.loads(process.stdout)
    whole = {
        (row["benchmark"], row["model"]): row for row in tree["scores"] if row["subset_by"] == "all"
    }
    assert len(whole) == 9
    # Is the model contaminated at all, and on which benchmarks: Holm for the one, BH for the other.
    # Questions of the quiz share passages, so that it says less than as many that do not.
    assert min(one["gap_p_holm"] for (_, m), one in whole.items() if m == "quokka-7b") < 0.01
    for benchmark in ("brook_math", "lantern_quiz"):
        assert whole[benchmark, "quokka-7b"]["gap_p"] < 0.05
        assert whole[benchmark, "heron-8b"]["gap_p"] > 0.05
        assert whole[benchmark, "quokka-7b"]["full"] > whole[benchmark, "heron-8b"]["full"]
        assert whole[benchmark, "quokka-7b"]["clean"] < whole[benchmark, "heron-8b"]["clean"]
    told_apart = {row["subset_by"] for row in tree["scores"]}
    assert {"all", "exposure", "kind", "source", "year"} <= told_apart
    best = {row["model"]: row for row in tree["aggregate"]}
    assert best["quokka-7b"]["mean_full"] > best["heron-8b"]["mean_full"]
    assert best["quokka-7b"]["mean_clean"] < best["heron-8b"]["mean_clean"]
    names = {path.name for path in out.iterdir()}
    tables = {f"{name}.parquet" for name in ("scores", "rankings", "sweep")}
    assert {*tables, "run.json", "summary.md"} <= names
    assert pq.read_table(out / "scores.parquet").num_rows == len(tree["scores"])
    assert_one_line_error(contam_here(*given), 1, "--overwrite")
    # Another bar for what is estimated, other plots: they take the place of the old ones.
    replaced = contam_here(*given, "--overwrite", "--quiet")
    assert replaced.returncode == 0, replaced.stderr
    assert {path.name for path in out.iterdir()} < names


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (["--policy", "gpt3-test"], 2, "no policy gpt3-test"),
        (["--reference", "ghost-1b"], 2, "ghost-1b"),
        (["--logs", "/nowhere"], 2, "nowhere"),
        (["--verdicts", "/nowhere"], 2, "nowhere"),
    ],
)
def test_what_does_not_fit_is_one_line(verdicts, bench_fixtures, tmp_path, change, code, words):
    options = {
        "--verdicts": [verdicts],
        "--logs": [bench_fixtures / "logs"],
        "--out": [tmp_path / "out"],
    }
    options |= {change[0]: change[1:]}
    flat = [part for name, values in options.items() for part in (name, *values)]
    assert_one_line_error(contam_here("rescore", *flat), code, words)
    assert not (tmp_path / "out").exists()


def test_a_plan_needs_verdicts_alone(verdicts, bench_fixtures, tmp_path):
    done = contam_here("rescore", "--verdicts", verdicts, "--plan", "--policy", "contam", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["benchmark"]: row for row in json.loads(done.stdout)["plan"]}
    assert (rows["brook_math"]["n_flagged"], rows["brook_math"]["n_clean"]) == (36, 13)
    # Below 50 items of a side nothing is tested; 13 clean ones show large gaps alone.
    assert rows["brook_math"]["note"]
    assert 0.4 < rows["brook_math"]["smallest_gap"] < 0.5
    table = contam_here("rescore", "--verdicts", verdicts, "--plan")
    assert "brook_math" in table.stdout
    for beside in (["--logs", bench_fixtures / "logs"], ["--out", tmp_path / "out"]):
        refused = contam_here("rescore", "--verdicts", verdicts, "--plan", *beside)
        assert_one_line_error(refused, 2, beside[0])
    for missing in ("--logs", "--out"):
        given = {"--logs": bench_fixtures / "logs", "--out": tmp_path / "out"}
        del given[missing]
        flat = [part for pair in given.items() for part in pair]
        assert_one_line_error(contam_here("rescore", "--verdicts", verdicts, *flat), 2, missing)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\nbrook-001,contaminated\n")
    assert_one_line_error(contam_here("rescore", "--verdicts", labels, "--plan"), 2)


def test_verdicts_of_another_benchmark_are_refused(bench_fixtures, tmp_path):
    items = tmp_path / "other.jsonl"
    items.write_text(
        json.dumps({"id": "a", "question": "Which colour has the ferry on the far bank?"}) + "\n"
    )
    result = library.scan(bench_fixtures / "corpus", items, workers=1)
    verdicts = library.write_report(result, tmp_path / "verdicts")
    process = contam_here(
        "rescore",
        "--verdicts",
        verdicts,
        "--logs",
        bench_fixtures / "logs",
        "--out",
        tmp_path / "out",
    )
    assert_one_line_error(process, 1)


@pytest.mark.slow
def test_damaged_logs_stop_a_rescore_unless_they_are_left_out_by_name(
    verdicts, bench_fixtures, tmp_path
):
    logs = tmp_path / "logs"
    shutil.copytree(bench_fixtures / "logs", logs)
    cut = logs / "cut.json"
    cut.write_text('{"status": "success", "eval": {', encoding="utf-8")
    started = logs / "started.json"
    started.write_text(json.dumps({"status": "started", "eval": {}, "plan": {}}), encoding="utf-8")
    out = tmp_path / "out"
    command = ["rescore", "--verdicts", verdicts, "--logs", logs, "--out", out, "--quiet"]
    process = contam_here(*command, "--least", "12")
    assert_one_line_error(process, 1, str(cut))
    assert "--skip-damaged" in process.stderr
    assert not out.exists()
    process = contam_here(*command[:-1], "--least", "12", "--skip-damaged")
    assert process.returncode == 0, process.stderr
    assert str(cut) in process.stderr
    run = json.loads((out / "run.json").read_text())
    assert [one["path"] for one in run["inputs"]["damaged"]] == [str(cut), str(started)]
    assert run["parameters"]["skip_damaged"] is True
    summary = (out / "summary.md").read_text(encoding="utf-8")
    assert "## Left out" in summary
    assert str(started) in summary


def errors_of(bench_fixtures, path):
    """The log of the fixtures as a long table of errors, 1 where an answer is wrong."""
    with (bench_fixtures / "logs" / "brook_math.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["item_id", "question", "model", "metric", "score"])
        for row in rows:
            for model in ("heron-8b", "plover-3b", "quokka-7b"):
                error = 1 - int(row[model])
                out.writerow([row["item_id"], row["question"], model, "error", error])
    return path


def test_a_table_of_errors_is_refused_until_it_is_said_that_less_is_better(
    verdicts, bench_fixtures, tmp_path
):
    logs = errors_of(bench_fixtures, tmp_path / "errors.csv")
    given = ["rescore", "--verdicts", verdicts, "--logs", logs, "--least", "12", "--quiet"]
    given += ["--permutations", "99"]
    refused = contam_here(*given, "--out", tmp_path / "none")
    assert_one_line_error(refused, 1, "--lower-is-better error")
    twice = ("--lower-is-better", "error", "--higher-is-better", "error")
    assert_one_line_error(contam_here(*given, "--out", tmp_path / "none", *twice), 2)
    unknown = contam_here(*given, "--out", tmp_path / "none", "--lower-is-better", "wer")
    assert_one_line_error(unknown, 2, "wer")
    assert not (tmp_path / "none").exists()
    told = contam_here(*given, "--out", tmp_path / "scores", "--lower-is-better", "error")
    assert told.returncode == 0, told.stderr
    tables = {
        name: pq.read_table(tmp_path / "scores" / f"{name}.parquet").to_pylist()
        for name in ("scores", "rankings")
    }
    whole = {row["model"]: row for row in tables["scores"] if row["subset_by"] == "all"}
    assert not any(row["higher_is_better"] for row in whole.values())
    # The model that knows the items by heart errs more often on the clean ones.
    assert whole["quokka-7b"]["gain"] < -0.3
    ranks = {row["model"]: row for row in tables["rankings"]}
    assert ranks["quokka-7b"]["rank_full"] == 1
    assert ranks["quokka-7b"]["full"] == min(row["full"] for row in ranks.values())
    assert "lower is better" in (tmp_path / "scores" / "summary.md").read_text()
    assert "error (lower is better)" in told.stdout
