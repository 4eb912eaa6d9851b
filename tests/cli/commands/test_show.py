import json
import os
import pty
import subprocess

import pytest

from contam.detect.report import write_report
from tests.cli.processes import assert_one_line_error, command, contam, contam_here, environment
from tests.detect.samples import DOCUMENT, QUESTION, make_result
from tests.detect.show.test_show import shard_entry, write_corpus


@pytest.fixture
def folder(tmp_path):
    corpus = write_corpus(
        tmp_path / "corpus", (DOCUMENT.replace("Some quiz", "Some \x1b[31mquiz"),)
    )
    shift = len("\x1b[31m")
    result = make_result(shard=shard_entry(corpus), document_url="https://example.org/\x9b1m\u202e")
    for name in ("document_start", "document_end"):
        result.evidence_columns[name] = [result.evidence_columns[name][0] + shift]
    return write_report(result, tmp_path / "out")


def columns_of(text):
    """The words of the two sides of the table, left and right."""
    rows = [line for line in text.splitlines() if "⟦" in line or "⟧" in line]
    return " ".join(rows)


def test_an_item_is_shown_side_by_side_with_marks(folder):
    process = contam_here("show", folder, "q9", COLUMNS="200")
    assert process.returncode == 0, process.stderr
    text = process.stdout
    assert "quiz/test/q9" in text
    assert (
        "contaminated  contam, score 1, question+answer, exact, documents 1, occurrences 1" in text
    )
    assert columns_of(text).count(f"⟦{QUESTION}⟧") == 2
    assert "Answer: 9" in text
    assert "q10" not in text
    assert process.stderr == ""


def test_nothing_in_the_data_steers_the_terminal(folder):
    text = contam_here("show", folder, "q9").stdout
    for character in "\x1b\x9b\u202e":
        assert character not in text
    assert "<U+001B>[31m" in text
    assert "<U+009B>" in text


def test_a_terminal_sees_colour_unless_it_asks_for_none(folder):
    for extra, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        ours, theirs = pty.openpty()
        env = environment(**{"TERM": "xterm-256color", "COLUMNS": "120", **extra})
        with subprocess.Popen(
            command("show", folder, "q9"), stdout=theirs, stderr=subprocess.PIPE, env=env
        ) as process:
            os.close(theirs)
            said = b""
            try:
                while part := os.read(ours, 65536):
                    said += part
            except OSError:
                os.close(ours)
            assert process.wait() == 0
        assert (b";43m" in said) == coloured, extra
        assert "⟦".encode() in said


def test_a_terminal_without_unicode_gets_other_marks(folder):
    text = contam("show", folder, "q9", PYTHONIOENCODING="ascii", COLUMNS="200").stdout
    assert "[[How many apples does Zo\\xeb hold" in text


def test_json_has_both_sides(folder):
    told = json.loads(contam_here("show", folder, "--json").stdout)
    (item,) = told["items"]
    (document,) = item["documents"]
    (part,) = document["parts"]
    assert [m["text"] for m in part["document"] if m["kind"] == "match"] == [QUESTION]
    assert item["verdicts"][0]["label"] == "contaminated"
    assert item["texts"]["question"] == QUESTION


def test_one_item_by_name_flagged_or_not(folder):
    text = contam_here("show", folder, "quiz/q10").stdout
    assert "clean  contam, score 0: nothing found" in text
    assert "Question of q10" in text
    assert_one_line_error(contam_here("show", folder, "q11"), 2, "no item 'q11'", "q10")


def test_one_policy(folder):
    text = contam_here("show", folder, "q9", "--policy", "lmeval-13").stdout
    assert "lmeval-13, score 1" in text
    assert "contam, score" not in text
    assert_one_line_error(contam_here("show", folder, "--policy", "gpt4"), 2, "gpt4", "lmeval-13")


def test_a_shard_that_is_gone_is_said(folder, tmp_path):
    (tmp_path / "corpus" / "a.parquet").unlink()
    process = contam_here("show", folder, "--documents", "1")
    assert process.returncode == 0
    assert "its text cannot be shown" in process.stdout
    assert f"⟦{QUESTION[:20]}" in process.stdout


def test_no_flagged_item_is_said(tmp_path):
    result = make_result()
    result.verdict_columns = {**result.verdict_columns, "label": ["clean"] * 6}
    folder = write_report(result, tmp_path / "clean")
    assert contam_here("show", folder).stdout.startswith("no item is flagged")


def test_a_limit_says_how_many_are_left(tmp_path):
    result = make_result()
    result.verdict_columns = {**result.verdict_columns, "label": ["suspect"] * 6}
    folder = write_report(result, tmp_path / "many")
    text = contam_here("show", folder, "--limit", "1").stdout
    assert "2 more items: --limit 3" in text
    assert text.count("quiz/") + text.count("maths/") == 1
    assert len(json.loads(contam_here("show", folder, "--json").stdout)["items"]) == 3


@pytest.mark.parametrize("change", ["missing", "cut", "folder"])
def test_a_result_that_is_not_whole_is_one_line(folder, change):
    if change == "missing":
        (folder / "evidence.parquet").unlink()
    elif change == "cut":
        (folder / "verdicts.parquet").write_bytes(b"PAR1")
    else:
        folder = folder.parent
    assert_one_line_error(contam_here("show", folder), 1)
