"""An answer that a document gives by its letter or number: the evidence says so, and shows so."""

import json

import pytest

import contam
from contam.audit.verify import _is_mark
from contam.detect.report import load_report, write_report
from contam.detect.show.choose import find_items
from contam.detect.show.side_by_side import view_items

STEM = (
    "Which of the four towers on the {} shore was the first to be built by the keepers of the"
    " old harbour lantern society"
)
CHOICES = ["Alder", "Birch", "Cedar", "Dogwood"]
TEXTS = {
    "letter": "? Answer: B. And more follows.",
    "small letter": "? The answer is (b), as they say.",
    "number": "? answer: 1. And more follows.",
    "text": "? Answer: Birch. And more follows.",
    "neither": "? Nobody knows it to this day.",
}
MARKS = {"letter": "letter", "small letter": "letter", "number": "number"}


@pytest.fixture(scope="module", params=TEXTS)
def scanned(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marks")
    question = STEM.format("northern")
    item = {"id": "a", "question": question, "choices": CHOICES, "answer": "B"}
    (folder / "items.jsonl").write_text(json.dumps(item), "utf-8")
    text = f"Some words before it. {question}{TEXTS[request.param]}"
    (folder / "corpus.jsonl").write_text(json.dumps({"text": text}), "utf-8")
    write_report(contam.scan(folder / "corpus.jsonl", folder / "items.jsonl"), folder / "out")
    return request.param, text, load_report(folder / "out")


def test_evidence_says_whether_it_quotes_the_answer_or_names_it(scanned):
    form, text, report = scanned
    rows = [row for row in report.evidence.to_pylist() if row["part"] == "answer"]
    assert [row["answer_mark"] for row in rows] == ([] if form == "neither" else [MARKS.get(form)])
    for row in rows:
        quoted = text[row["document_start"] : row["document_end"]]
        wanted = {"letter": "b", "number": "1", None: "birch"}[row["answer_mark"]]
        assert quoted.lower() == wanted
        assert (row["item_start"], row["item_end"]) == (0, len("Birch"))
    others = [row for row in report.evidence.to_pylist() if row["part"] != "answer"]
    assert {row["answer_mark"] for row in others} == {None}


def test_either_way_the_answer_stands_beside_the_question(scanned):
    form, _, report = scanned
    (verdict,) = report.verdicts.to_pylist()
    assert verdict["label"] == "contaminated"
    assert verdict["exposure"] == ("question" if form == "neither" else "question+answer")


def test_what_is_shown_marks_no_text_that_is_not_there(scanned):
    form, _, report = scanned
    (view,) = view_items(report, find_items(report, "a"))
    shown = {part.part: part for document in view.documents for part in document.parts}
    if form == "neither":
        assert "answer" not in shown
        return
    answer = shown["answer"]
    assert answer.mark == MARKS.get(form, "")
    matched = "".join(one.text for one in answer.item if one.kind == "match")
    assert matched == ("" if answer.mark else "Birch")


@pytest.mark.parametrize(
    ("span", "mark", "stands"),
    [("B", "letter", True), ("b", "letter", True), ("A", "letter", False), ("1", "number", True),
     ("2", "number", False), ("Birch", "letter", False)],
)  # fmt: skip
def test_a_verified_mark_is_that_of_the_right_choice(span, mark, stands):
    assert _is_mark(span, mark, {"choices": CHOICES, "answer": "Birch"}) is stands
