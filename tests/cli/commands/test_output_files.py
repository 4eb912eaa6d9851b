"""No output file replaces what a command reads, or lies inside a result, an audit or an index."""

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.detect.report import write_report
from contam.detect.scan import scan
from contam.index.build import build
from tests.cli.processes import assert_one_line_error, contam_here

QUESTION = "How many copper kettles does the lighthouse keeper polish before the third bell rings?"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A corpus, a benchmark, a result of both and an index, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").mkdir()
    pq.write_table(pa.table({"text": [QUESTION, "cheese"]}), tmp_path / "corpus/a.parquet")
    (tmp_path / "corpus/b.jsonl").write_text(json.dumps({"text": QUESTION}) + "\n")
    (tmp_path / "items").mkdir()
    (tmp_path / "items/quiz.csv").write_text(f"id,question\nq1,{QUESTION}\nq2,{QUESTION}\n")
    (tmp_path / "items/quiz.json").write_text(json.dumps([{"id": "q1", "question": QUESTION}]))
    write_report(scan("corpus", "items", workers=1), "result")
    build("corpus", "index", workers=1)
    return tmp_path


def contents(home):
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


def through(way, target, home):
    """Another name of the same file."""
    if way == "itself":
        return target
    link = home / f"link{target.suffix}"
    if way == "symbolic link":
        link.symlink_to(target)
    elif way == "hard link":
        os.link(target, link)
    else:
        (home / "folder").symlink_to(target.parent)
        link = home / "folder" / target.name
    return link


COMMANDS = {
    "show": ("show", "result", "--html"),
    "sql": ("sql", "result", "select 1 a", "--out"),
    "dupes": ("dupes", "--benchmark", "items", "--out"),
}


@pytest.mark.parametrize("way", ["itself", "symbolic link", "hard link", "linked folder"])
@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("show", "corpus/b.jsonl"),
        ("show", "items/quiz.csv"),
        ("sql", "corpus/a.parquet"),
        ("sql", "items/quiz.json"),
        ("dupes", "items/quiz.csv"),
        ("dupes", "items/quiz.json"),
    ],
)
def test_no_input_is_replaced(home, command, target, way):
    out = through(way, home / target, home)
    before = contents(home)
    done = contam_here(*COMMANDS[command], out, "--overwrite")
    assert_one_line_error(done, 2, "would replace an input", "choose another file")
    assert contents(home) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "target",
    ["result/verdicts.parquet", "result/new.json", "result/deep/new.csv", "index/new.parquet"],
)
def test_nothing_is_written_into_a_result_or_an_index(home, command, target):
    before = contents(home)
    done = contam_here(*COMMANDS[command], home / target, "--overwrite")
    assert_one_line_error(done, 2, "lies inside", "outside")
    assert contents(home) == before


def test_a_benchmark_named_from_another_folder_is_known_by_its_bytes(home, monkeypatch):
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    before = contents(home)
    done = contam_here("show", "../result", "--html", "../items/quiz.csv", "--overwrite")
    assert_one_line_error(done, 2, "would replace an input")
    assert contents(home) == before


def test_hashes_do_not_replace_their_benchmark(home):
    before = contents(home)
    done = contam_here(
        "hash", "--benchmark", "items/quiz.csv", "--out", "items/quiz.csv", "--overwrite"
    )
    assert_one_line_error(done, 2, "would replace an input")
    assert contents(home) == before


def test_other_files_are_replaced(home):
    for command, name in (("show", "a.html"), ("sql", "b.csv"), ("dupes", "c.csv")):
        out = home / name
        out.write_text("old")
        assert contam_here(*COMMANDS[command], out, "--overwrite").returncode == 0
        assert out.read_text() != "old"


def test_the_run_json_of_another_program_is_no_result(home):
    (home / "other").mkdir()
    (home / "other/run.json").write_text('{"tool": "other", "outputs": {}}')
    assert contam_here(*COMMANDS["sql"], "other/a.csv").returncode == 0
    shutil.rmtree(home / "other")
