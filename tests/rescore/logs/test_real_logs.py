"""Every row of the table of real logs: n, full and clean scores, the tool's own number, the twin."""

import hashlib
import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from contam.benchmark.read_files import read_benchmarks
from contam.errors import LogError
from contam.rescore.join import Joiner
from contam.rescore.logs.model import find_groups, self_check
from contam.rescore.logs.read import benchmark_of, read_logs, write_items
from tests.rescore.logs.small import items_table

pytestmark = pytest.mark.labelled

TOOLS = ("lm-eval", "inspect", "helm", "lighteval", "openai-evals", "human-eval", "every-eval-ever")
N_ROWS = 48
TRUTH = 5e-7 + 1e-9  # expected.json has six decimals


@cache
def everything(home):
    return read_logs([Path(home, tool) for tool in (*TOOLS, "simple-csv")])


@pytest.fixture
def home(shared):
    return shared / "eval-logs"


@pytest.fixture
def logs(home):
    return everything(str(home))


class Planted:
    """Which items are planted, found in each tool's log by the text it holds."""

    def __init__(self, home):
        planted = json.loads((home / "benchmarks/planted.json").read_bytes())
        digests = {one["question_sha256"] for one in planted["gsm8k"]}
        for subject in planted["mmlu"].values():
            digests |= {one["question_sha256"] for one in subject}
        self.questions = []
        for path in (home / "benchmarks").glob("*_test*.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines():
                question = json.loads(line)["question"]
                if hashlib.sha256(question.encode()).hexdigest() in digests:
                    self.questions.append(question)
        self.tasks = set(json.loads((home / "human-eval/planted_task_ids.json").read_bytes()))
        self.gsm8k = {one["index"] for one in planted["gsm8k"]}

    def mask(self, log):
        """bool[n]: the planted items of a log."""
        if log.tool == "human-eval":
            return np.array([item.item_id in self.tasks for item in log.items])
        if all(item.question is None and item.prompt is None for item in log.items):
            return np.array([int(item.item_id) in self.gsm8k for item in log.items])
        texts = [item.question or item.prompt for item in log.items]
        exact = set(self.questions)
        return np.array(
            [
                text in exact or (text not in exact and any(q in text for q in self.questions))
                for text in texts
            ]
        )


@cache
def planted_in(home):
    return Planted(Path(home))


def log_of(logs, home, row):
    wanted = (home / row["file"]).resolve()
    found = [log for log in logs if Path(log.path).resolve() == wanted]
    assert len(found) == 1, row["file"]
    return found[0]


METRICS = {"pass@1 (mean of 2 samples)": "pass@1"}


def test_every_expected_row_comes_out(home, logs):
    planted = planted_in(str(home))
    rows = json.loads((home / "expected.json").read_bytes())
    assert len(rows) == N_ROWS
    for row in rows:
        log = log_of(logs, home, row)
        assert log.tool == row["tool"]
        assert log.model == row["model"]
        assert log.benchmark.startswith(row["task"].rstrip(":"))
        column = log.column(METRICS.get(row["metric"], row["metric"]))
        # human-eval's table counts samples: two of every task.
        each = 2 if log.tool == "human-eval" else 1
        flagged = planted.mask(log)
        assert each * np.count_nonzero(column.scored) == row["n"]
        assert each * np.count_nonzero(column.scored & flagged) == row["n_contaminated"]
        assert each * np.count_nonzero(column.scored & ~flagged) == row["n_clean"]
        everyone = np.ones(len(log.items), np.bool_)
        assert column.aggregate(everyone) == pytest.approx(row["full"], abs=TRUTH)
        assert column.aggregate(~flagged) == pytest.approx(row["clean"], abs=TRUTH), row
        if row["reported"] is not None:
            assert column.reported == pytest.approx(row["reported"], abs=1e-6)


def test_every_reported_number_is_made_anew_from_the_rows(logs):
    checked = 0
    for log in logs:
        self_check(log)
        checked += sum(c.reported is not None and c.kind != "none" for c in log.columns)
    assert checked >= 44


@pytest.mark.parametrize("tool", ["lm-eval", "inspect", "helm", "lighteval", "table"])
@pytest.mark.parametrize(
    ("memo", "honest"), [("memo-6b", "gpt3-6b-finetuning"), ("memo-40", "honest-40")]
)
def test_without_the_planted_items_the_twin_scores_what_its_honest_brother_scores(
    home, logs, tool, memo, honest
):
    planted = planted_in(str(home))
    pairs = 0
    of = {
        name: [log for log in logs if log.tool == tool and log.model.endswith(name)]
        for name in (memo, honest)
    }
    for left in of[memo]:
        for right in of[honest]:
            if left.benchmark != right.benchmark or len(left.items) != len(right.items):
                continue
            for a in left.columns:
                b = right.column(a.metric)
                mask = planted.mask(left)
                assert a.aggregate(~mask) == b.aggregate(~planted.mask(right))
                assert a.aggregate(mask) > b.aggregate(mask)
                pairs += 1
    assert pairs > 0 or (tool == "table" and memo == "memo-40")


def test_the_twin_of_human_eval_scores_the_same(home, logs):
    mask = planted_in(str(home)).mask
    left, right = (log for log in logs if log.tool == "human-eval")
    for a, b in zip(left.columns, right.columns, strict=True):
        assert a.aggregate(~mask(left)) == b.aggregate(~mask(right))


def test_the_twin_of_every_eval_ever_scores_what_lm_eval_does(home, logs):
    mask = planted_in(str(home)).mask
    (shared_form,) = (log for log in logs if log.tool == "every-eval-ever")
    honest = next(
        log for log in logs if log.tool == "lm-eval" and log.model == "replay/gpt3-6b-finetuning"
    )
    clean = honest.column("exact_match,strict-match").aggregate(~mask(honest))
    assert shared_form.columns[0].aggregate(~mask(shared_form)) == clean


def test_groups_are_weighed_as_the_reported_number_shows(home, logs):
    mask = planted_in(str(home)).mask
    clean = {
        group.model: group.aggregate([~mask(log) for log in group.logs])
        for group in find_groups(logs)
        if group.model.startswith("replay/")
    }
    assert {name: round(value, 4) for name, value in clean.items()} == {
        "replay/honest-40": 0.3859,
        "replay/honest-65": 0.6739,
        "replay/memo-40": 0.3859,
    }
    assert all(g.weighting == "micro" for g in find_groups(logs))


def test_epochs_are_reduced_as_the_tool_did_and_items_leave_whole(logs):
    (log,) = (one for one in logs if one.benchmark == "gsm8k_local_epochs")
    assert len(log.items) == 21
    everyone = np.ones(21, np.bool_)
    full = {c.metric: c.aggregate(everyone) for c in log.columns}
    assert round(full["match,mean"], 4) == 0.2262
    assert round(full["match,mode"], 4) == 0.2381
    assert round(full["match,at_least_2"], 4) == 0.2857
    assert round(full["match,pass_at_1"], 4) == 0.2262
    assert {"two_scores/correct,mean", "two_scores/length,mean"} <= set(full)
    assert (log.column("match,mean").repeats == 4).all()
    without_first = everyone.copy()
    without_first[0] = False
    reduced = log.column("match,mean")
    assert reduced.aggregate(without_first) == pytest.approx(reduced.score[1:].mean(), abs=1e-12)


def test_errors_and_unscored_samples_do_not_count(logs):
    (log,) = (one for one in logs if one.benchmark == "gsm8k_local_errors")
    assert (len(log.items), log.n_errors, log.n_unscored) == (24, 3, 2)
    assert np.count_nonzero(log.columns[0].scored) == 19
    assert 0.5 in log.columns[0].score


def test_corpus_metrics_are_made_anew_over_the_items_that_stay(logs):
    (log,) = (one for one in logs if one.benchmark == "bbh_navigate_local")
    everyone = np.ones(120, np.bool_)
    assert round(log.column("f1,none").aggregate(everyone), 4) == 0.6606
    assert round(log.column("mcc,none").aggregate(everyone), 4) == 0.3782
    half = np.arange(120) % 2 == 0
    pairs = [pair for pair, kept in zip(log.column("f1,none").raw, half, strict=True) if kept]
    hits = sum(gold == said == 1 for gold, said in pairs)
    wrong = sum(gold != said for gold, said in pairs)
    assert log.column("f1,none").aggregate(half) == 2 * hits / (2 * hits + wrong)
    (rolling,) = (one for one in logs if one.benchmark == "gsm8k_local_ppl")
    half = np.arange(40) < 20
    raw = rolling.column("bits_per_byte,none").raw[:20]
    bits = -sum(a for a, _ in raw) / sum(b for _, b in raw) / math.log(2)
    assert rolling.column("bits_per_byte,none").aggregate(half) == pytest.approx(bits, abs=1e-12)


def test_a_run_that_only_predicted_is_refused_with_the_reason(home):
    (log,) = read_logs([home / "lm-eval/variants/predict-only"])
    assert {column.kind for column in log.columns} == {"none"}
    with pytest.raises(LogError):
        log.columns[0].aggregate(np.ones(len(log.items), np.bool_))


def test_repeats_are_counted_and_voted_scores_kept(logs):
    (log,) = (one for one in logs if one.benchmark == "gsm8k_local_sc4")
    assert (log.columns[0].repeats == 4).all()


@pytest.mark.parametrize(
    "folder", ["lm-eval/gsm8k", "lm-eval/mmlu", "inspect/gsm8k-eval", "inspect/mmlu-eval"]
)
def test_logs_alone_make_the_benchmark_their_own_items_join(home, tmp_path, folder):
    logs = read_logs([home / folder])
    write_items(benchmark_of(logs).rows, tmp_path / "made.jsonl")
    made = [
        item for benchmark in read_benchmarks([tmp_path / "made.jsonl"]) for item in benchmark.items
    ]
    assert len(made) in {235, 300}
    joiner = Joiner(items_table(made))
    for log in logs:
        joined = joiner.join(log)
        assert joined.by["item"] == len(log.items)
        assert joined.n_unmatched == joined.n_duplicate == 0
