import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.audit.verify import _is_mark
from contam.benchmark.items import ItemName
from contam.corpus.shards import shard_digest
from contam.detect.report import load_report, write_report
from contam.detect.show.choose import find_items, flagged_items
from contam.detect.show.side_by_side import view_items
from contam.errors import UsageError
from tests.corpus_files import find_shards
from tests.detect.samples import DOCUMENT, QUESTION, make_result

Q9 = ItemName("quiz", "test", "q9")


def write_corpus(folder, texts=(DOCUMENT, "Another document.")):
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"text": list(texts)}), folder / "a.parquet")
    return folder / "a.parquet"


def shard_entry(path):
    (shard,) = find_shards([path])
    return {
        "name": shard.name,
        "uri": shard.uri,
        "format": shard.format,
        "size_bytes": shard.size_bytes,
        "digest": shard_digest(shard),
    }


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus")


@pytest.fixture
def report(tmp_path, corpus):
    folder = write_report(make_result(shard=shard_entry(corpus)), tmp_path / "out")
    return load_report(folder)


def matches(marks):
    return [m.text for m in marks if m.kind == "match"]


def test_the_matching_characters_are_marked_on_both_sides(report):
    (view,) = view_items(report, [Q9])
    (document,) = view.documents
    (part,) = document.parts
    assert document.problem is None
    assert part.part == "question"
    assert matches(part.item) == [QUESTION]
    assert matches(part.document) == [QUESTION]
    assert "".join(m.text for m in part.document) == DOCUMENT
    assert (document.date, document.url) == ("2024-01-31", "https://example.org/1")


def test_a_clean_item_has_its_text_and_no_documents(report):
    (view,) = view_items(report, find_items(report, "m1"))
    assert view.documents == ()
    assert view.texts == {"question": "Question of m1", "choices": "8\n9", "answer": "9"}


def test_unknown_names_say_what_there_is(report):
    with pytest.raises(UsageError, match="no item 'q99'") as caught:
        find_items(report, "q99")
    assert "q9" in caught.value.hint
    with pytest.raises(UsageError, match="no verdicts of policy 'gpt4'") as caught:
        flagged_items(report, "gpt4")
    assert "lmeval-13" in caught.value.hint


def gone(path):
    path.unlink()


def rewritten(path):
    write_corpus(path.parent, (DOCUMENT + " Longer.", "Another document."))


def same_size(path):
    content = bytearray(path.read_bytes())
    content[8] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (gone, "is gone"),
        (rewritten, "has changed since the scan"),
        (same_size, "has changed since the scan"),
        (cut, "has changed since the scan"),
    ],
)
def test_a_shard_that_is_not_what_was_scanned_is_said_and_no_crash(report, corpus, change, message):
    change(corpus)
    (view,) = view_items(report, [Q9])
    (document,) = view.documents
    assert message in document.problem
    assert document.parts[0].document == ()
    assert matches(document.parts[0].item) == [QUESTION]


def test_secret_items_show_the_document_alone(tmp_path, corpus):
    result = make_result(shard=shard_entry(corpus), keep_text=False)
    (view,) = view_items(load_report(write_report(result, tmp_path / "secret")), [Q9])
    assert view.texts == {}
    assert view.documents[0].parts[0].item == ()
    assert matches(view.documents[0].parts[0].document) == [QUESTION]
    for file in (tmp_path / "secret").iterdir():
        assert b"apples" not in file.read_bytes()


def test_a_chat_names_the_turn(tmp_path):
    path = tmp_path / "a.jsonl"
    turns = [{"role": "user", "content": "Hello there"}, {"role": "assistant", "content": DOCUMENT}]
    path.write_text(json.dumps({"messages": turns}) + "\n")
    result = make_result(shard=shard_entry(path) | {"name": "a.parquet"})
    shift = len("Hello there\n")
    for name in ("document_start", "document_end"):
        result.evidence_columns[name] = [result.evidence_columns[name][0] + shift]
    (view,) = view_items(load_report(write_report(result, tmp_path / "out")), [Q9])
    (part,) = view.documents[0].parts
    assert part.turn == "1:assistant"
    assert matches(part.document) == [QUESTION]


# ---------------------------------------------------------------------- answers by letter or number


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
