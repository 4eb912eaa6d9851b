"""Clean scores say what they leave out, and which of it an index alone left open."""

import json
import shutil

import pytest

import contam
from contam.client.annotate import find_runs, write_clean
from tests.cli.processes import contam_here
from tests.index.builds import build, recipe_of
from tests.rescore.logs.small import lm_eval

LEAKED = "Which of the seven painted boats did the miller's youngest daughter sink before the fair?"
SHORT = "Who fed the blue heron twice?"
LONG = "How many lanterns hang above the cooper's gate when the second ferry has left the quay?"


@pytest.fixture
def home(tmp_path):
    """Verdicts of an index and logs of the same items: one leaked, one short, two not there."""
    (tmp_path / "corpus").mkdir()
    texts = [f"Old notes. {LEAKED} The rest is lost.", "Rain fell on the roof all evening long."]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (tmp_path / "corpus" / "a.jsonl").write_text(lines)
    build(tmp_path / "corpus", tmp_path / "index", recipe_of())
    docs = [{"question": text, "answer": "x"} for text in (LEAKED, SHORT, LONG, "Why?")]
    lm_eval(tmp_path / "logs", [1, 1, 0, 0], docs=docs, task="boats")
    rows = [{"id": str(place), **doc} for place, doc in enumerate(docs)]
    result = contam.query(tmp_path / "index", rows)
    contam.write_report(result, tmp_path / "verdicts")
    return tmp_path


def test_all_labels_the_scores_and_what_the_index_left_open_are_said(home):
    (written,) = write_clean(find_runs([home / "logs"])[0], home / "verdicts")
    (row,) = written.scores()
    counts = {"contaminated": 1, "suspect": 0, "clean": 1, "not_checkable": 2}
    assert row["items"] == counts
    assert (row["full"], row["clean"], row["n_clean"]) == (0.5, 0.0, 1)
    (note,) = written.notes
    assert "2 items" in note
    tree = json.loads(written.out.read_text())
    assert tree["items"]["boats"] == counts
    assert note in tree["notes"]
    line = written.line()
    for part in ("1 contaminated", "0 suspect", "1 clean", "2 not checkable", note, "0.0000"):
        assert part in line
    call = ("annotate", home / "logs", "--verdicts", home / "verdicts", "--overwrite")
    shown = contam_here(*call, cwd=home).stdout
    assert note in shown
    assert all(
        word in shown for word in ("contaminated", "suspect", "not checkable", "clean score")
    )
    told = json.loads(contam_here(*call, "--json", cwd=home).stdout)
    assert (told["scores"], told["notes"]) == ([row], [note])


def test_what_is_left_out_of_two_logs_alike_is_said_once(home):
    shutil.copytree(home / "logs", home / "again")
    call = ("annotate", home / "logs", home / "again", "--verdicts", home / "verdicts", "--json")
    told = json.loads(contam_here(*call, cwd=home).stdout)
    assert (len(told["scores"]), len(told["notes"])) == (2, 1)


def test_where_a_scan_judged_no_index_is_blamed(home):
    rows = [{"id": "s", "question": SHORT}, {"id": "l", "question": LEAKED}]
    contam.write_report(contam.scan(home / "corpus", rows), home / "scanned")
    (written,) = write_clean(find_runs([home / "logs"])[0], home / "scanned", allow_unmatched=True)
    (note,) = written.notes
    assert "2 items" in note
    assert "index" not in note
