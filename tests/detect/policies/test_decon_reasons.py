"""What `decon-default` says of an item that a document holds and decon does not find."""

from __future__ import annotations

import json

import contam

QUESTION = (
    "Which of the two ferrymen at Ostrand kept a lantern burning on the northern landing through"
    " all the foggy weeks of November, and who of their neighbours paid for the oil that it took?"
)
OPTIONS = ["the widow of the tall miller", "a guild of eight coopers from the hill"]
PASSAGE = (
    "Ostrand has had a ferry since the bridge fell, and two brothers rowed it by turns, one of"
    " them by night; the parish book of the year lists their wages, their fines and the oil."
)
OTHER = (
    "How many herons did the keepers of the three locks below the weir count in March, when the"
    " water stood a hand above the lowest mark and nobody had yet mown the reeds along the bank?"
)
FILLER = " ".join(f"Page {n} of the almanac lists seeds and tides." for n in range(60))


def reason(tmp_path, text, **item):
    """The clean verdict's reason on one document of this text."""
    corpus, items = tmp_path / "corpus", tmp_path / "items.jsonl"
    corpus.mkdir()
    rows = [{"text": text}, {"text": FILLER}]
    (corpus / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    lines = [{"id": "1", "question": QUESTION, **item}, {"id": "2", "question": OTHER}]
    items.write_text("".join(json.dumps(row) + "\n" for row in lines), "utf-8")
    result = contam.scan(corpus=corpus, benchmark=items, policies=["decon-default"])
    (found,) = (one for one in result if one.item_id == "1")
    assert found.label == "clean", found
    return found.reason


def test_options_too_far_behind_the_question(tmp_path):
    said = reason(tmp_path, f"{QUESTION} {FILLER} {' '.join(OPTIONS)}", choices=OPTIONS)
    assert "whole question" in said
    assert "100 tokens behind" in said
    assert "before" not in said


def test_options_and_passage_on_the_wrong_sides(tmp_path):
    text = f"{' '.join(OPTIONS)} {FILLER} {QUESTION} {FILLER} {PASSAGE}"
    said = reason(tmp_path, text, passage=PASSAGE, choices=OPTIONS)
    assert "whole question" in said
    assert "tokens behind" in said
    assert "tokens before" in said


def test_a_passage_without_its_question(tmp_path):
    said = reason(tmp_path, f"{FILLER} {PASSAGE} {FILLER}", passage=PASSAGE)
    assert "whole passage" in said


def test_a_question_that_stands_there_in_part_is_not_said_to_be_whole(tmp_path):
    said = reason(tmp_path, " ".join(QUESTION.split()[:14]) + f" {FILLER}", choices=OPTIONS)
    assert "whole" not in said


def test_a_document_too_short_for_decon(tmp_path):
    said = reason(
        tmp_path,
        "Who rowed the ferry by night?",
        passage=PASSAGE,
        question="Who rowed the ferry by night?",
    )
    assert "whole question" in said
    assert "10 pieces" in said
