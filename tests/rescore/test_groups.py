"""Numbers over a group of tasks: weighed as the reported one was, full, clean and refused."""

import numpy as np
import pytest

from contam.rescore.join import Joiner
from contam.rescore.logs import read_logs
from contam.rescore.panel import RescoreSettings, group_series
from contam.tables import schemas
from tests.rescore.logs.small import item, items_table, lm_eval_group
from tests.rescore.panels import flags_of, scores_in, tables_of

FAST = RescoreSettings(permutations=99, draws=20, sweep_permutations=20, least=2)
TASKS = {"one": [1, 1, 1, 0, 1, 0, 1, 1], "two": [0, 1, 0, 1]}
LABELS = ["contaminated"] * 3 + ["clean"] * 5 + ["contaminated"] + ["clean"] * 3
MICRO, MACRO = 8 / 12, (6 / 8 + 2 / 4) / 2


def docs_of(task, n):
    return [{"question": f"Question {at} of {task}?", "answer": "x"} for at in range(n)]


@pytest.fixture
def tables(tmp_path):
    def make(reported, *, keep=tuple(TASKS), labels=tuple(LABELS)):
        docs = {task: docs_of(task, len(scores)) for task, scores in TASKS.items()}
        lm_eval_group(tmp_path, TASKS, reported, docs=docs)
        logs = [log for log in read_logs([tmp_path]) if log.benchmark in keep]
        items = [
            item(at, doc["question"], answer="x", benchmark=task)
            for task, own in docs.items()
            for at, doc in enumerate(own)
        ]
        joiner = Joiner(items_table(items))
        indices = {log: joiner.join(log).index for log in logs}
        groups = list(group_series(indices))
        return tables_of(groups, [flags_of(list(labels))], FAST)

    return make


def the_group(tables):
    (row,) = [row for row in scores_in(tables) if row["subset_by"] == "group"]
    return row


def test_items_alike_gives_a_group_all_that_a_benchmark_has(tables):
    found = tables(MICRO)
    row = the_group(found)
    assert (row["benchmark"], row["metric"], row["subset"]) == ("all", "acc,none", "micro")
    assert (row["n"], row["n_clean"], row["n_flagged"]) == (12, 8, 4)
    assert row["full"] == pytest.approx(MICRO, abs=1e-12)
    assert row["clean"] == pytest.approx((3 + 2) / 8, abs=1e-12)
    assert row["epg"] == pytest.approx(row["full"] - row["clean"])
    assert row["clean_lo"] < row["clean"] < row["clean_hi"]
    assert row["epg_p"] is not None


def test_tasks_alike_stays_tasks_alike_without_the_flagged_items(tables):
    row = the_group(tables(MACRO))
    assert row["subset"] == "macro"
    assert row["full"] == pytest.approx(MACRO, abs=1e-12)
    assert row["clean"] == pytest.approx((3 / 5 + 2 / 3) / 2, abs=1e-12)
    assert row["epg"] == pytest.approx(row["full"] - row["clean"])
    assert row["clean_lo"] is None


def test_a_task_without_a_clean_item_has_no_part_in_a_mean_of_tasks(tables):
    labels = LABELS[:8] + ["contaminated"] * 4
    row = the_group(tables(MACRO, labels=labels))
    assert (row["clean"], row["epg"]) == (None, None)
    assert row["note"]


@pytest.mark.parametrize(("reported", "keep"), [(0.9, tuple(TASKS)), (MICRO, ("one",))])
def test_a_number_that_no_weighting_gives_is_not_scored_again(tables, reported, keep):
    assert schemas.rows(tables(reported, keep=keep)["scores"]) == []


def test_flags_of_a_group_are_dealt_out_within_its_tasks(tmp_path):
    """One easy task is flagged more than a hard one: within each task the flag says nothing."""
    rng = np.random.default_rng(2)
    scores = {"one": [1] * 60, "two": [0] * 60}
    docs = {task: docs_of(task, 60) for task in scores}
    lm_eval_group(tmp_path, scores, 0.5, docs=docs)
    logs = read_logs([tmp_path])
    labels = np.where(rng.random(120) < np.repeat([0.8, 0.2], 60), "contaminated", "clean")
    indices = {log: np.arange(60) + 60 * (log.benchmark == "two") for log in logs}
    groups = list(group_series(indices))
    row = the_group(tables_of(groups, [flags_of(list(labels))], FAST))
    assert row["epg"] > 0.2
    assert row["epg_p"] == 1.0
