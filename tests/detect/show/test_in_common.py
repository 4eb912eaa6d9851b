"""What is said to be in common is the part's own words that the document has, each once."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import contam
from contam.benchmark.items import BenchItem
from contam.detect.report import Report
from contam.detect.show.choose import flagged_items
from contam.detect.show.side_by_side import mark, tokens_in_common, view_items
from contam.server.page import compare_item
from contam.tables import schemas

WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "nu", "pe") for b in ("rat", "sel", "tin", "dom")]
SLICES = st.lists(st.tuples(st.integers(0, 30), st.integers(5, 30)), min_size=1, max_size=5)


def scanned(question, text, policies):
    result = contam.scan(
        [{"id": "d", "text": text}],
        [{"id": "q", "question": question, "answer": "zzyzx"}],
        policies=policies,
    )
    return Report(
        folder=Path("memory"),
        run=result.run,
        verdicts=result.verdicts,
        evidence=result.evidence,
        items=result.items,
    )


def covered(question, rows):
    """Words of the question of which every character is in some row's span, counted by hand."""
    inside = {at for row in rows for at in range(row["item_start"], row["item_end"])}
    at = found = 0
    for word in question.split():
        at = question.index(word, at)
        found += inside.issuperset(range(at, at + len(word)))
        at += len(word)
    return found


@given(st.lists(st.sampled_from(WORDS), min_size=12, max_size=40), SLICES, st.booleans())
@example([*WORDS, *WORDS[::-1]], [(0, 40), (3, 30), (10, 30)], False)
@example([*WORDS, *WORDS[::-1]], [(0, 40)], True)
def test_no_more_words_are_in_common_than_the_document_has(words, slices, two_units):
    question = " ".join(words)
    pieces = [" ".join(words[start : start + n]) for start, n in slices]
    text = " and then something else was said of it. ".join(["It said:", *pieces])
    policies = ["contam", "gpt3-test", *(["gpt4-50char"] if two_units else [])]
    report = scanned(question, text, policies)
    for view in view_items(report, flagged_items(report)):
        rows = schemas.rows(report.evidence)
        for document in view.documents:
            for part in document.parts:
                own = [row for row in rows if row["part"] == part.part]
                assert part.n_tokens == covered(question, own) <= len(words)


def test_a_copy_that_stands_there_twice_counts_once():
    question = " ".join([*WORDS, *WORDS[::-1], *WORDS[::2]])
    text = f"{question} Somebody else wrote this. {' '.join(WORDS)} Then more. {question[40:200]}"
    report = scanned(question, text, ["contam", "gpt3-test", "gpt4-50char"])
    rows = [row for row in schemas.rows(report.evidence) if row["part"] == "question"]
    assert sum(row["n_tokens"] for row in rows) > 50
    (view,) = view_items(report, flagged_items(report))
    (part,) = view.documents[0].parts
    assert part.n_tokens == 50


ROW = {"part": "question", "answer_mark": None}


def rows_of(*stretches):
    return [
        {**ROW, "item_start": start, "item_end": end, "n_tokens": n} for start, end, n in stretches
    ]


@pytest.mark.parametrize(
    ("stretches", "text", "units", "most", "n"),
    [
        ([(0, 7, 2), (8, 11, 1)], "one two six", ("word",), None, 3),
        ([(0, 7, 2), (4, 11, 2)], "one two six", ("word",), None, 3),
        ([(0, 11, 3), (0, 11, 3)], "one two six", ("word",), None, 3),
        ([(0, 11, 3), (0, 11, 3)], None, ("word",), None, 3),
        ([(0, 7, 2), (4, 11, 2)], None, ("word",), 3, 2),
        ([(0, 11, 9)], "one two six", ("word", "char"), 3, 3),
        ([(0, 11, 9)], None, ("word", "char"), 3, 3),
        ([(0, 7, 6), (2, 7, 5)], "one two six", ("char",), 9, 6),
        ([(0, 9, 4), (0, 5, 2)], "été sécu", ("tokens.json",), None, 4),
        ([(0, 3, 1), (0, 8, 2)], "été sécu", ("word",), None, 2),
    ],
)
def test_stretches_that_overlap_are_counted_in_the_text(stretches, text, units, most, n):
    assert tokens_in_common(rows_of(*stretches), text, units, most) == n


def test_the_page_of_the_service_counts_alike():
    question = "one two six"
    item = BenchItem(benchmark="b", split="", item_id="q", question=question, source="s", line=1)
    row = {
        "document_id": "d", "shard": "s", "row": 0, "url": None, "date": None, "source": None,
        "similarity": None, "document_text": None, "alignment": 0,
        "document_start": 0, "document_end": 11,
    }  # fmt: skip
    rows = [{**row, **found} for found in rows_of((0, 11, 3), (4, 11, 2))]
    (document,) = compare_item(item, rows, "word").documents
    assert [part.n_tokens for part in document.parts] == [3]


@given(
    st.text(max_size=60),
    st.lists(st.tuples(st.integers(-5, 70), st.integers(-5, 70)), max_size=5),
    st.integers(0, 20),
)
def test_marks_hold_every_matching_character_once_and_in_order(text, spans, context):
    at, matched = 0, set()
    for piece in mark(text, spans, context):
        if piece.kind == "gap":
            assert piece.n_left_out > 0
            at += piece.n_left_out
            continue
        assert piece.text == text[at : at + len(piece.text)] != ""
        if piece.kind == "match":
            matched |= set(range(at, at + len(piece.text)))
        at += len(piece.text)
    assert at == len(text)
    wanted = {i for a, b in spans for i in range(max(a, 0), min(b, len(text)))}
    assert matched == wanted
