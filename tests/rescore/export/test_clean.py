"""Clean scores of lm-eval have the form of its results file: what prints one prints the other."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest

from contam.detect.labels import CLEAN, CONTAMINATED
from contam.rescore.export.evaluator import LabelledLog, clean_results
from contam.rescore.logs.read import read_logs
from contam.rescore.logs.tools.lm_eval import is_results
from tests.rescore.export.test_harness import needs, run
from tests.rescore.logs.small import TIME, lm_eval, lm_eval_group

PRINT = """
import json, sys
from lm_eval.utils import make_table
for line in open(sys.argv[1]):
    tree = json.loads(line)
    print("FOUND" + json.dumps([make_table(tree), make_table(tree, "groups")]))
"""


def labelled(log, labels):
    return LabelledLog(log=log, policy="contam", label=np.array(labels, np.int8))


def grouped(folder):
    """A run of two tasks in a group, with what lm-eval says of both."""
    scores = {"herons": (1, 0, 1, 0), "plovers": (1, 1, 0, 0)}
    lm_eval_group(folder, scores, 0.5, name="birds")
    path = folder / f"results_{TIME}.json"
    tree = json.loads(path.read_bytes())
    tree["groups"]["birds"]["alias"] = "birds of the shore"
    tree["results"]["herons"]["alias"] = " - herons"
    tree |= {
        "versions": {"birds": 2, "herons": 1.0, "plovers": 3, "another": 7},
        "n-shot": {"herons": 0, "plovers": 5},
        "higher_is_better": {"birds": {"acc": True}, "herons": {"acc": True}},
    }
    path.write_text(json.dumps(tree))
    return read_logs([folder])


def test_what_lm_eval_says_of_a_run_stands_in_its_clean_scores(tmp_path):
    logs = grouped(tmp_path)
    tree = clean_results([labelled(log, [CLEAN, CLEAN, CLEAN, CONTAMINATED]) for log in logs], {})
    assert tree["versions"] == {"birds": 2, "herons": 1.0, "plovers": 3}
    assert tree["n-shot"] == {"herons": 0, "plovers": 5}
    assert tree["higher_is_better"] == {"birds": {"acc": True}, "herons": {"acc": True}}
    assert tree["group_subtasks"] == {"birds": ["herons", "plovers"]}
    assert tree["results"]["herons"]["alias"] == " - herons"
    assert tree["results"]["birds"] == tree["groups"]["birds"]
    assert tree["groups"]["birds"] == {
        "alias": "birds of the shore",
        "acc,none": pytest.approx(2 / 3),
    }
    assert not is_results(tree), "it would be taken for a run of lm-eval"


def test_an_error_that_is_not_known_is_written_as_lm_eval_writes_it(tmp_path):
    (log,) = read_logs([lm_eval(tmp_path, [1, 0])])
    for labels in ([CLEAN, CONTAMINATED], [CONTAMINATED, CONTAMINATED]):
        own = clean_results([labelled(log, labels)], {})["results"]["lantern"]
        assert {own[key] for key in own if "_stderr," in key} == {"N/A"}


def printed(trees, home):
    path = home / "trees.jsonl"
    path.write_text("".join(json.dumps(tree) + "\n" for tree in trees))
    lines = run(PRINT, path, home=home).splitlines()
    return [json.loads(line.removeprefix("FOUND")) for line in lines if line.startswith("FOUND")]


def test_lm_eval_prints_the_clean_scores_of_a_group(tmp_path):
    needs("lm_eval")
    logs = grouped(tmp_path)
    tree = clean_results([labelled(log, [CLEAN, CLEAN, CLEAN, CONTAMINATED]) for log in logs], {})
    ((tasks, groups),) = printed([tree], tmp_path)
    assert [line.split("|")[1].strip() for line in tasks.splitlines()[2:]] == [
        "birds of the shore", "-  - herons", "- plovers",
    ]  # fmt: skip
    assert "0.6667" in groups
    assert "5" in tasks.splitlines()[-1]


def test_lm_eval_prints_the_clean_scores_of_every_real_log(shared, tmp_path):
    needs("lm_eval")
    runs = defaultdict(list)
    for log in read_logs([shared / "eval-logs" / "lm-eval"]):
        runs[log.path.rpartition("/")[0], log.run_id].append(log)
    rng = np.random.default_rng(1)
    trees = []
    for logs in runs.values():
        for share in (0, 0.5, 1):
            judged = [labelled(log, rng.random(len(log.items)) < share) for log in logs]
            trees.append(clean_results(judged, {}))
    assert len(trees) > 30
    tables = printed(trees, tmp_path)
    for tree, (tasks, groups) in zip(trees, tables, strict=True):
        for name, own in tree["results"].items():
            assert own.get("alias", name).strip() in tasks
            for value in own.values():
                if isinstance(value, float):
                    assert f"{value:.4f}".rstrip("0").rstrip(".") in tasks
        assert len(groups.splitlines()) == 2 + len(tree["groups"])
