"""What commands print and write: tables, CSV that runs no formula, and nothing over an input."""

import csv
import io
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.cli.progress import Reporter
from contam.cli.render import coverage_lines, share, verdict_table
from contam.cli.terminal import csv_text, laid_out, plain, visible
from contam.detect.report import write_report
from contam.detect.scan import scan
from contam.facts import size
from contam.index.build import build
from tests.cli.processes import assert_one_line_error, contam_here


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 10, "0.0 %"), (10, 10, "100.0 %"), (1, 30_000, "<0.1 %"),
        (29_999, 30_000, ">99.9 %"), (1, 3, "33.3 %"), (0, 0, "-"),
    ],
)  # fmt: skip
def test_a_share_is_never_rounded_to_none_or_all(part, whole, shown):
    assert share(part, whole) == shown


def test_sizes():
    assert (size(0), size(1), size(999)) == ("0 bytes", "1 byte", "999 bytes")
    assert (size(1500), size(2_500_000), size(2_500_000_000)) == ("1.5 kB", "2.5 MB", "2.5 GB")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_table_loses_no_number_and_is_whole_in_eighty_columns(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    labels = {"contaminated": 1_201, "suspect": 321, "clean": 100_025, "not_checkable": 4_400}
    text = laid_out([verdict_table({"brook_math": {"contam": labels}})])
    assert all(len(line) <= width for line in text.splitlines())
    row = text.splitlines()[-1].split()
    if width < 80:
        assert "…" not in text
    else:
        numbers = ["105,947", "1,201", "321", "100,025", "4,400", "1.4", "%"]
        assert row == ["brook_math", "contam", *numbers]


def test_a_total_ends_the_table_of_several_benchmarks(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    labels = {"contaminated": 1, "suspect": 2, "clean": 3, "not_checkable": 4}
    counts = {"one": {"contam": labels, "palm-70": labels}, "two": {"contam": labels}}
    total, other = laid_out([verdict_table(counts)]).splitlines()[-2:]
    assert total.split() == ["total", "contam", "20", "2", "4", "6", "8", "30.0", "%"]
    assert other.split() == ["palm-70", "10", "1", "2", "3", "4", "30.0", "%"]
    assert "total" not in laid_out([verdict_table({"one": counts["one"]})])


def test_no_progress_goes_beyond_what_there_is(capsys):
    with Reporter(quiet=False) as progress:
        progress.start(20_000_000)
        for _ in range(3):
            progress.advance(9_000_000)
    told = capsys.readouterr().err.splitlines()
    assert told[-1].split()[:6] == ["100", "%", "20", "of", "20", "MB"]


def test_steering_characters_become_visible():
    assert visible("a\x1b[2Jb\r\u202ec\u2066\x07\x9b\nd\te") == (
        "a<U+001B>[2Jb<U+000D><U+202E>c<U+2066><U+0007><U+009B>\nd\te"
    )
    assert visible("Zoë 数学 🙂 👩‍🚀 עברית") == "Zoë 数学 🙂 👩‍🚀 עברית"
    assert plain("two\nlines\t ") == "two lines"


def test_many_failures_are_named_in_part_and_counted():
    coverage = {
        "shards_expected": 9, "shards_read": 2, "rows": 5, "n_bytes": 10,
        "shards_failed": [{"shard": f"s{i}", "reason": "gone"} for i in range(7)],
    }  # fmt: skip
    lines = list(coverage_lines(coverage))
    assert lines[1] == "NOT READ s0: gone"
    assert lines[-1] == "NOT READ 2 more shards, see run.json"


STARTS = ("=", "+", "-", "@", "\t", "\r", "\x1b", "'", "")


def read(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@given(st.lists(st.tuples(st.sampled_from(STARTS), st.text()).map("".join), min_size=1))
def test_no_cell_is_a_formula_or_holds_a_control_character(cells):
    (found,) = read(csv_text(cells, []))
    for cell, was in zip(found, cells, strict=True):
        try:
            float(was)
        except ValueError:
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")), was
        assert not [sign for sign in cell if sign < " " and sign not in "\n\t"]


def test_numbers_and_plain_texts_stay_as_they_are():
    rows = [[-1, -0.5, "-1.5e3", "+7", "a-b", "x=y", None, "it's"]]
    assert csv_text(["a"] * 8, rows).splitlines()[1] == "-1,-0.5,-1.5e3,+7,a-b,x=y,,it's"


def test_what_sql_prints_runs_no_formula(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    question = "How many copper kettles does the keeper polish before the third bell rings out?"
    items = [{"id": f"{start}cmd|\x1b[31m'!A0", "question": question} for start in "=+-@"]
    (tmp_path / "quiz.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": question, "id": "=1+1"}) + "\n")
    write_report(scan("a.jsonl", "quiz.jsonl", workers=1), "out")
    query = "select item_id, best_document_id from verdicts"
    printed = contam_here("sql", "out", query, "--csv").stdout
    rows = read(printed)
    assert len(rows) > len(items)
    for cell in (cell for row in rows for cell in row):
        assert not cell.startswith(("=", "+", "-", "@"))
        assert "\x1b" not in cell
    assert "'=cmd|<U+001B>[31m'!A0" in printed
    assert "'=1+1" in printed


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


@pytest.mark.parametrize(
    "target",
    ["result/verdicts.parquet", "result/new.json", "result/deep/new.csv", "index/new.parquet"],
)
def test_nothing_is_written_into_a_result_or_an_index(home, target):
    before = contents(home)
    done = contam_here("show", "result", "--html", home / target, "--overwrite")
    assert_one_line_error(done, 2, "--html")
    assert contents(home) == before


def test_other_files_are_replaced(home):
    out = home / "a.html"
    out.write_text("old")
    assert contam_here("show", "result", "--html", out, "--overwrite").returncode == 0
    assert out.read_text() != "old"


def test_the_run_json_of_another_program_is_no_result(home):
    (home / "other").mkdir()
    (home / "other/run.json").write_text('{"tool": "other", "outputs": {}}')
    assert contam_here("show", "result", "--html", "other/a.html").returncode == 0
    shutil.rmtree(home / "other")
