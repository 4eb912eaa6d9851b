"""`contam export`: which items go out, in which form, and what is refused."""

import json
from collections import defaultdict

import numpy as np
import pytest

import contam as library
from contam.detect.labels import CLEAN, CONTAMINATED, NOT_CHECKABLE, SUSPECT
from contam.errors import LogError
from contam.rescore.evaluator import (
    LabelledLog,
    clean_results,
    lm_eval_samples,
)
from contam.rescore.logs.lm_eval import is_results
from contam.rescore.logs.read import read_logs
from tests.cli.processes import assert_one_line_error, contam_here
from tests.rescore.export.test_harness import needs, run
from tests.rescore.logs.small import TIME, lm_eval, lm_eval_group
from tests.rescore.panels import refused


@pytest.fixture(scope="module")
def verdicts(bench_fixtures, tmp_path_factory):
    items = bench_fixtures / "items" / "lantern_quiz.jsonl"
    result = library.scan(bench_fixtures / "corpus", items, workers=1)
    return library.write_report(result, tmp_path_factory.mktemp("export") / "verdicts")


@pytest.fixture(scope="module")
def docs(bench_fixtures):
    lines = (bench_fixtures / "items" / "lantern_quiz.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in reversed(lines)]


@pytest.fixture(scope="module")
def clean(verdicts):
    return {v.item_id for v in library.load_report(verdicts) if v.label == "clean"}


def judged(path, labels):
    (log,) = read_logs([path])
    return LabelledLog(log=log, policy="contam", label=np.array(labels, np.int8))


def renumbered(path, ids):
    """The rows of a log under other document ids, as a run on a part of the task has them."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [{**row, "doc_id": place} for row, place in zip(rows, ids, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


# -------------------------------------------------------------------------------------- lm-eval


def test_the_clean_documents_go_out_by_their_place_in_the_task(verdicts, docs, clean, tmp_path):
    rows = [{key: row.get(key) for key in ("question", "choices", "passage")} for row in docs]
    scores = [float(place % 3 > 0) for place in range(len(rows))]
    lm_eval(tmp_path / "logs", scores, docs=rows)
    process = contam_here("export", "--verdicts", verdicts, "--logs", tmp_path / "logs")
    assert process.returncode == 0, process.stderr
    wanted = [place for place, row in enumerate(docs) if row["id"] in clean]
    assert json.loads(process.stdout) == {"lantern": wanted}
    for count in ("17 clean by contam", "3 suspect", "26 contaminated", "2 not_checkable"):
        assert count in process.stderr
    mean = sum(scores[place] for place in wanted) / len(wanted)
    assert f"acc,none: {mean:.6f} on 17 clean items" in process.stderr


def test_only_clean_documents_of_all_models_go_out_ascending(tmp_path):
    short = judged(lm_eval(tmp_path / "a", [1, 0]), [CONTAMINATED, CLEAN])
    long = judged(
        lm_eval(tmp_path / "b", [1, 0, 1, 1, 0], model="b"),
        [CONTAMINATED, CLEAN, SUSPECT, CLEAN, NOT_CHECKABLE],
    )
    assert lm_eval_samples([long, short]) == {"lantern": [1, 3]}


def test_a_task_without_a_clean_item_is_refused_because_lm_eval_would_run_it_whole(tmp_path):
    with refused(LogError, "lantern", "2 items"):
        lm_eval_samples([judged(lm_eval(tmp_path, [1, 0]), [CONTAMINATED, NOT_CHECKABLE])])


def test_two_versions_of_a_task_are_refused(tmp_path):
    one = judged(lm_eval(tmp_path / "a", [1, 0]), [CLEAN, CLEAN])
    other = judged(lm_eval(tmp_path / "b", [1, 0], model="b", doc_hash="else"), [CLEAN, CLEAN])
    with refused(LogError, "document 0 of lantern"):
        lm_eval_samples([one, other])


@pytest.mark.parametrize(
    ("ids", "fine"),
    [
        ([0, 1, 2, 3, 4], True),
        ([3, 7, 12, 99, 250], True),
        ([0, 2, 4, 1, 3], True),  # two processes, every second document each
        ([0, 3, 1, 4, 2], True),  # three
        ([7, 3, 250, 12, 99], False),
        ([4, 3, 2, 1, 0], False),
        ([1, 3, 0, 2, 4], False),
    ],
)
def test_document_ids_that_lm_eval_may_have_given_wrongly_are_refused(tmp_path, ids, fine):
    one = judged(renumbered(lm_eval(tmp_path, [1, 0, 1, 0, 1]), ids), [CLEAN] * 5)
    if fine:
        assert lm_eval_samples([one]) == {"lantern": sorted(ids)}
    else:
        with refused(LogError, tmp_path, "--samples"):
            lm_eval_samples([one])


def test_a_log_without_its_results_is_refused(tmp_path):
    path = lm_eval(tmp_path, [1, 0])
    (tmp_path / f"results_{TIME}.json").unlink()
    with refused(LogError, path):
        lm_eval_samples([judged(path, [CLEAN, CLEAN])])


# -------------------------------------------------------------------------------------- the call


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--policy", "ghost"], 2, "ghost"),
        ([], 1, "lm-eval"),
    ],
)
def test_what_does_not_fit_is_one_line(verdicts, bench_fixtures, tmp_path, arguments, code, words):
    logs = bench_fixtures / "logs" / "lantern_quiz.csv"
    process = contam_here(
        "export", "--verdicts", verdicts, "--logs", logs, *arguments, cwd=tmp_path
    )
    assert_one_line_error(process, code, words)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_kept(verdicts, docs, tmp_path):
    rows = [{key: row.get(key) for key in ("question", "choices", "passage")} for row in docs]
    lm_eval(tmp_path / "logs", [1.0] * len(rows), docs=rows)
    out = tmp_path / "out.json"
    out.write_text("mine")
    options = ["--verdicts", verdicts, "--logs", tmp_path / "logs"]
    assert_one_line_error(contam_here("export", *options, "--out", out), 1, "already exists")
    assert out.read_text() == "mine"
    assert contam_here("export", *options, "--out", out, "--overwrite").returncode == 0
    assert len(json.loads(out.read_bytes())["lantern"]) == 17


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
