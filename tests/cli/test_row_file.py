"""CSV for people: no cell is a formula of a spreadsheet, and none steers the terminal."""

import csv
import io
import json

from hypothesis import given
from hypothesis import strategies as st

from contam.cli.row_file import csv_text
from contam.detect.report import write_report
from contam.detect.scan import scan
from tests.cli.processes import contam_here

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


def test_what_show_dupes_and_sql_print_runs_no_formula(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    question = "How many copper kettles does the keeper polish before the third bell rings out?"
    items = [{"id": f"{start}cmd|\x1b[31m'!A0", "question": question} for start in "=+-@"]
    (tmp_path / "quiz.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": question, "id": "=1+1"}) + "\n")
    write_report(scan("a.jsonl", "quiz.jsonl", workers=1), "out")
    printed = [
        contam_here("show", "out", "--csv").stdout,
        contam_here("sql", "out", "select item_id, best_document_id from verdicts", "--csv").stdout,
    ]
    done = contam_here("dupes", "--benchmark", "quiz.jsonl", "--within", "--out", "pairs.csv")
    assert done.returncode == 0, done.stderr
    for text in (*printed, (tmp_path / "pairs.csv").read_text()):
        rows = read(text)
        assert len(rows) > len(items)
        for cell in (cell for row in rows for cell in row):
            assert not cell.startswith(("=", "+", "-", "@"))
            assert "\x1b" not in cell
    assert "'=cmd|<U+001B>[31m'!A0" in printed[0]
    assert "'=1+1" in printed[0]
