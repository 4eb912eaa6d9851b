"""Real logs of seven tools beside a real result: every score of the table, and the built-in twin."""

import hashlib
import json
from dataclasses import replace
from functools import cache

import pytest

import contam
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore, write_rescore
from contam.tables import schemas

pytestmark = pytest.mark.labelled

FILES = (
    "gsm8k_test_300.jsonl",
    "mmlu_abstract_algebra_test.jsonl",
    "mmlu_anatomy_test.jsonl",
    "HumanEval.jsonl.gz",
)
FAST = RescoreSettings(permutations=99, draws=20, sweep_permutations=20, least=1)
#: Rows of the table whose logs are of another benchmark, which is an error and not a score.
STRANGERS = ("bbh_navigate_local",)


@pytest.fixture(scope="module")
def logs(shared):
    return shared / "eval-logs"


@pytest.fixture(scope="module")
def verdicts(logs, tmp_path_factory):
    """A result over the real items in which exactly the planted ones are contaminated."""
    folder = tmp_path_factory.mktemp("verdicts")
    corpus = folder / "corpus.jsonl"
    corpus.write_text(json.dumps({"text": "Nothing of any test stands in this small corpus."}))
    result = contam.scan(corpus, [logs / "benchmarks" / name for name in FILES], workers=1)
    planted = json.loads((logs / "benchmarks/planted.json").read_bytes())
    digests = {one["question_sha256"] for one in planted["gsm8k"]}
    for subject in planted["mmlu"].values():
        digests |= {one["question_sha256"] for one in subject}
    tasks = set(json.loads((logs / "human-eval/planted_task_ids.json").read_bytes()))
    leaked = {
        (item.benchmark, item.item_id)
        for item in result.items_in_order
        if hashlib.sha256(item.question.encode()).hexdigest() in digests or item.item_id in tasks
    }
    columns = {name: schemas.column(result.verdicts, name) for name in result.verdicts.schema.names}
    columns["best_row"] = [-1] * len(columns["label"])
    keys = zip(columns["benchmark"], columns["item_id"], strict=True)
    columns["label"] = ["contaminated" if key in leaked else "clean" for key in keys]
    columns["score"] = [1.0 if label == "contaminated" else 0.0 for label in columns["label"]]
    marked = replace(result, verdict_columns=columns)
    return contam.write_report(marked, folder / "out")


@pytest.fixture(scope="module")
def expected(logs):
    return json.loads((logs / "expected.json").read_bytes())


@cache
def rows_of(verdicts, log):
    result = rescore(verdicts, log, settings=FAST)
    return [row for row in result.rows("scores") if row["subset_by"] == "all"]


@pytest.mark.slow
def test_every_score_of_the_table_comes_out_of_the_whole_pipeline(verdicts, logs, expected):
    checked = 0
    for case in expected:
        if case["task"] in STRANGERS:
            continue
        metric = case["metric"].partition(" (")[0]
        found = [
            row
            for row in rows_of(verdicts, logs / case["file"])
            if row["model"] == case["model"] and row["metric"] == metric
        ]
        assert len(found) == 1, (case["file"], metric)
        (row,) = found
        # A row of human-eval's table is a sample, a row of ours an item.
        samples = 2 if case["tool"] == "human-eval" else 1
        assert row["n"] * samples == case["n"]
        assert row["n_flagged"] * samples == case["n_contaminated"]
        assert row["full"] == pytest.approx(case["full"], abs=1e-6)
        assert row["clean"] == pytest.approx(case["clean"], abs=1e-6)
        checked += 1
    assert checked == 47


@pytest.mark.parametrize(
    ("metric", "memo", "honest"),
    [
        ("match", "lm-eval/gsm8k/replay__memo-6b", "lm-eval/gsm8k/replay__gpt3-6b-finetuning"),
        ("acc", "lm-eval/mmlu/replay__memo-40", "lm-eval/mmlu/replay__honest-40"),
        (
            "final_number",
            "helm/gsm_local:,model=replay_memo-6b",
            "helm/gsm_local:,model=replay_gpt3-6b-finetuning",
        ),
        (
            "pass@1",
            "human-eval/samples_memo-50.jsonl_results.jsonl",
            "human-eval/samples_honest-50.jsonl_results.jsonl",
        ),
    ],
)
def test_without_the_planted_items_a_memorising_model_is_its_twin(
    verdicts, logs, metric, memo, honest
):
    def clean(path):
        rows = rows_of(verdicts, logs / path)
        return {(row["benchmark"], row["metric"]): (row["clean"], row["full"]) for row in rows}

    one, two = clean(memo), clean(honest)
    assert one.keys() == two.keys()
    # HELM also counts tokens and seconds, in which the twins may differ.
    scored = [key for key in one if metric in key[1]]
    assert scored
    for key in scored:
        assert one[key][0] == two[key][0]
        assert one[key][1] > two[key][1]


def test_groups_are_scored_again_with_their_clean_items(verdicts, logs):
    result = rescore(verdicts, logs / "lm-eval/mmlu", settings=FAST)
    rows = [row for row in result.rows("scores") if row["subset_by"] == "group"]
    assert {row["model"]: round(row["clean"], 4) for row in rows} == {
        "replay/honest-40": 0.3866,
        "replay/honest-65": 0.6723,
        "replay/memo-40": 0.3866,
    }
    for row in rows:
        assert (row["benchmark"], row["subset"]) == ("mmlu_local", "micro")
        parts = [
            one
            for one in result.rows("scores")
            if (one["model"], one["metric"]) == (row["model"], row["metric"])
            and one["subset_by"] == "all"
        ]
        whole = sum(part["n"] * part["full"] for part in parts) / sum(part["n"] for part in parts)
        assert row["full"] == pytest.approx(whole, abs=1e-9)
    assert "mmlu_local" in {row["benchmark"] for row in result.rows("rankings")}
    assert "mmlu_local" not in {row["benchmark"] for row in result.rows("sweep")}


@pytest.mark.slow
def test_a_rescoring_is_written_whole_and_twice_the_same(verdicts, logs, tmp_path):
    paths = [logs / "lm-eval/gsm8k"]
    names = set()
    for name in ("one", "two"):
        write_rescore(rescore(verdicts, paths, settings=FAST), tmp_path / name)
        names |= {path.name for path in (tmp_path / name).iterdir()}
    tables = {f"{name}.parquet" for name in ("scores", "rankings", "sweep")}
    assert tables | {"summary.md", "run.json"} <= names
    assert any(name.endswith(".svg") for name in names)
    for name in sorted(names - {"run.json"}):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    runs = [json.loads((tmp_path / name / "run.json").read_bytes()) for name in ("one", "two")]
    for run in runs:
        run.pop("timings")
    assert runs[0] == runs[1]
    with pytest.raises(contam.errors.OutputError):
        write_rescore(rescore(verdicts, paths, settings=FAST), tmp_path / "one")
