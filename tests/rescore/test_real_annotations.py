"""The clean scores of real logs, by a file of labels in place of a scan."""

from __future__ import annotations

import hashlib
import json

import pytest

from contam.rescore.annotations import decon_text
from contam.rescore.panel import RescoreSettings
from contam.rescore.run import rescore
from tests.rescore.logs.small import write_lines

pytestmark = pytest.mark.labelled

FAST = RescoreSettings(permutations=99, draws=20, sweep_permutations=20)
LOGS = ("lm-eval/gsm8k", "inspect/gsm8k-eval", "helm/gsm_local:,model=replay_memo-6b")


@pytest.fixture(scope="module")
def home(shared):
    return shared / "eval-logs"


@pytest.fixture(scope="module")
def questions(home):
    """(question, whether it is planted) of the 300 items."""
    planted = json.loads((home / "benchmarks/planted.json").read_bytes())["gsm8k"]
    digests = {one["question_sha256"] for one in planted}
    lines = (home / "benchmarks/gsm8k_test_300.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line)["question"] for line in lines]
    return [(one, hashlib.sha256(one.encode()).hexdigest() in digests) for one in found]


def clean_scores(home, verdicts, **options):
    paths = [home / name for name in LOGS]
    result = rescore(verdicts, paths, settings=FAST, separate_runs=True, **options)
    return {
        (row["model"].partition(" ")[0], row["metric"]): row
        for row in result.rows("scores")
        if row["subset_by"] == "all"
    }


def assert_as_expected(home, found):
    rows = json.loads((home / "expected.json").read_bytes())
    rows = rows if isinstance(rows, list) else rows["rows"]
    checked = 0
    for row in rows:
        ours = found.get((row["model"], row["metric"]))
        if ours is None or not row["file"].startswith(LOGS[0]):
            continue
        assert ours["n_flagged"] == row["n_contaminated"]
        assert ours["clean"] == pytest.approx(row["clean"], abs=1e-6)
        checked += 1
    assert checked >= 6


def test_own_labels_give_the_clean_scores_of_every_tool(home, questions, tmp_path):
    rows = [
        {"question": question, "label": "leaked" if planted else "clean"}
        for question, planted in questions
    ]
    found = clean_scores(home, write_lines(tmp_path / "mine.jsonl", rows))
    assert_as_expected(home, found)
    assert all(row["n_flagged"] == 48 for row in found.values() if row["n"] == 300)


def test_a_report_of_decon_gives_them_too(home, questions, tmp_path):
    rows = [
        {
            "training_file": "a.jsonl",
            "training_line": place,
            "eval_key": "gsm8k",
            "eval_instance_index": place,
            "split": "test",
            "contamination_score": 0.9,
            "eval_question_text": decon_text(question),
        }
        for place, (question, planted) in enumerate(questions)
        if planted
    ]
    report = write_lines(tmp_path / "report.jsonl", rows)
    assert_as_expected(home, clean_scores(home, report, unlisted="clean"))
