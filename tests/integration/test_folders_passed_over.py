"""Folders whose names keep them from being searched are said wherever a result is."""

import json

import pytest

from contam.benchmark.read_files import read_benchmarks
from contam.rescore.logs.read import find_logs
from tests.cli.processes import contam_here

QUESTION = "Which of the lanterns on the old pier at Varnholt is lit first after the winter storms?"


@pytest.fixture
def corpus(tmp_path):
    for name in ("a.jsonl", ".kept/b.jsonl", "_year=2024/c.jsonl"):
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"text": f"A page of {name}. {QUESTION}"}) + "\n")
    (tmp_path / "items.jsonl").write_text(json.dumps({"question": QUESTION, "answer": "3"}) + "\n")
    return tmp_path


def test_scan_index_query_and_clean_name_what_they_did_not_enter(corpus):
    call = ("--corpus", str(corpus / "corpus"))
    asked = ("--benchmark", str(corpus / "items.jsonl"), "--out")
    index = ("--index", str(corpus / "ix"))
    answers = [
        contam_here("scan", *call, *asked, str(corpus / "out")),
        contam_here("index", "build", *call, *index),
        contam_here("query", *index, *asked, str(corpus / "asked")),
        contam_here("clean", *call, *asked, str(corpus / "cleaned")),
    ]
    for answer in answers:
        assert answer.returncode == 0, answer.stderr
        assert "NOT SEARCHED 1 folder" in answer.stdout
        assert ".kept" in answer.stdout
    for file in ("out/run.json", "asked/run.json", "cleaned/clean.json"):
        coverage = json.loads((corpus / file).read_text())["coverage"]
        assert (coverage["passed_over"], coverage["rows"]) == ([".kept"], 2)
    added = contam_here("index", "add", "--corpus", str(corpus / "corpus/.kept"), *index)
    assert "NOT SEARCHED" not in added.stdout
    again = contam_here("query", *index, *asked, str(corpus / "again"))
    assert "NOT SEARCHED" not in again.stdout


def test_benchmarks_and_logs_name_them_too(tmp_path):
    for name in ("a.jsonl", ".kept/b.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"question": QUESTION, "answer": "3"}) + "\n")
    (benchmark,) = read_benchmarks([tmp_path])
    assert [row.source for row in benchmark.skipped] == [str(tmp_path / ".kept")]
    (tmp_path / "logs/.old").mkdir(parents=True)
    rows = "model,benchmark,id,score\nheron,lanterns,q0,1\n"
    for name in ("scores.csv", ".old/scores.csv"):
        (tmp_path / "logs" / name).write_text(rows)
    assert dict(find_logs([tmp_path / "logs"]).skipped).keys() == {str(tmp_path / "logs/.old")}


def test_a_stray_table_is_excluded_by_the_flag_that_the_hint_names(corpus):
    (corpus / "corpus/stray notes.csv").write_text('a,b\n1,"2\n')
    call = ("scan", "--corpus", str(corpus / "corpus"), "--benchmark", str(corpus / "items.jsonl"))
    told = contam_here(*call, "--out", str(corpus / "out"))
    assert told.returncode == 4
    assert "--exclude 'stray notes.csv'" in told.stderr
    left = contam_here(*call, "--out", str(corpus / "left"), "--exclude", "stray notes.csv")
    assert left.returncode == 0
