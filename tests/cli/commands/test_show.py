"""`contam show`: items side by side, and of every result what of the corpus was read."""

import json
import os
import pty
import subprocess

import pytest

from contam.detect.report import RUN_FILE, load_report, write_report
from tests.cli.processes import assert_one_line_error, command, contam, contam_here, environment
from tests.detect.samples import DOCUMENT, QUESTION, make_result
from tests.detect.show.test_show import shard_entry, write_corpus
from tests.integration import inputs
from tests.integration.inputs import ABSENT, FILLER, corpus_of, run_scan, write_items


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
    assert "contaminated  contam, score 1, question+answer, exact, 1 document, 1 occurrence" in text
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_terminal_without_unicode_gets_other_marks(folder):
    text = contam("show", folder, "q9", PYTHONIOENCODING="ascii", COLUMNS="200").stdout
    assert "[[How many apples does Zo\\xeb hold" in text


def test_json_has_both_sides(folder):
    told = json.loads(contam_here("show", folder, "--json").stdout)
    (item,) = told["items"]
    (document,) = item["documents"]
    (part,) = document["parts"]
    assert [m["text"] for m in part["document"] if m["kind"] == "match"] == [QUESTION]
    assert (item["verdicts"][0]["label"], item["texts"]["question"]) == ("contaminated", QUESTION)
    assert_one_line_error(contam_here("show", folder, "--policy", "gpt4"), 2, "gpt4", "lmeval-13")


def test_one_item_by_name_flagged_or_not(folder):
    text = contam_here("show", folder, "quiz/q10").stdout
    assert "clean  contam, score 0: nothing found" in text
    assert "Question of q10" in text
    assert_one_line_error(contam_here("show", folder, "q11"), 2, "q11", "q10")


def test_a_limit_says_how_many_are_left(tmp_path):
    result = make_result()
    result.verdict_columns = {**result.verdict_columns, "label": ["suspect"] * 6}
    folder = write_report(result, tmp_path / "many")
    text = contam_here("show", folder, "--limit", "1").stdout
    assert "2 more items: --limit 3" in text
    assert text.count("quiz/") + text.count("maths/") == 1
    assert len(json.loads(contam_here("show", folder, "--json").stdout)["items"]) == 3


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


SCANS = {
    "read whole": ((), (), ("read 2 of 2 shards",), 0),
    "read in part": (("part-1",), (), ("read 1 of 2 shards", "NOT READ part-1.parquet"), 1),
    "not read": (
        ("part-0", "part-1"), (),
        ("read 0 of 2 shards", "NOT READ part-0.parquet", "NOT READ part-1.parquet"), 2,
    ),
    "allowed": (
        ("part-1",), ("--allow-missing",),
        ("read 1 of 2 shards", "NOT READ part-1.parquet"), 0,
    ),
    "excluded": (
        (), ("--exclude", "part-1.parquet"),
        ("read 1 of 1 shard", "EXCLUDED on purpose 1 shard: part-1.parquet"), 0,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=SCANS)
def scanned(request, tmp_path_factory):
    """A result folder, its scan's lines on coverage, and how many items were left unchecked."""
    damaged, options, lines, unchecked = SCANS[request.param]
    folder = tmp_path_factory.mktemp("coverage")
    corpus = corpus_of(folder / "corpus", [FILLER + inputs.QUESTION], [FILLER])
    items = write_items(folder / "items.jsonl", inputs.QUESTION, ABSENT)
    for name in damaged:
        cut(corpus / f"{name}.parquet")
    said = run_scan(corpus, items, folder / "out", *options).stdout.splitlines()
    lines = [line for start in lines for line in said if line.startswith(start)]
    assert len(lines) == len(SCANS[request.param][2]), said
    return folder / "out", lines, unchecked


def unchecked_line(unchecked):
    things = "1 item" if unchecked == 1 else f"{unchecked} items"
    return [f"{things} could not be checked"] if unchecked else []


@pytest.mark.parametrize(
    ("label", "documents"),
    [(None, None), ("clean", "1"), ("not_checkable", None), ("suspect", "1")],
)
def test_a_list_ends_with_the_lines_of_the_scan(scanned, label, documents):
    folder, lines, unchecked = scanned
    options = (("--label", label) if label else ()) + (
        ("--documents", documents) if documents else ()
    )
    done = contam_here("show", folder, *options)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    for line in lines + unchecked_line(unchecked):
        assert line in printed
    assert ("could not be checked" in done.stdout) == bool(unchecked)


def test_json_holds_the_coverage_and_the_unchecked_items(scanned):
    folder, _, unchecked = scanned
    told = json.loads(contam_here("show", folder, "--json").stdout)
    assert told["coverage"] == load_report(folder).run["coverage"]
    assert told["not_checkable"] == unchecked


def test_the_page_says_it_above_the_list(scanned, tmp_path):
    folder, lines, unchecked = scanned
    page = tmp_path / "items.html"
    assert contam_here("show", folder, "--html", page).returncode == 0
    head, _, _ = page.read_text("utf-8").partition("</header>")
    for line in lines + unchecked_line(unchecked):
        assert line in head


def test_a_result_that_does_not_say_what_was_read_is_no_clean_bill(scanned):
    folder, _, _ = scanned
    run = json.loads((folder / RUN_FILE).read_text())
    del run["coverage"]["shards_read"]
    kept = (folder / RUN_FILE).read_text()
    try:
        (folder / RUN_FILE).write_text(json.dumps(run))
        assert "run.json" in contam_here("show", folder).stdout
    finally:
        (folder / RUN_FILE).write_text(kept)
