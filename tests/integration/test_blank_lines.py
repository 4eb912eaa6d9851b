"""Blank lines in JSONL are no documents anywhere, and rows stay line numbers."""

import json

import pytest

import contam
from contam.cleaning.clean import clean
from contam.detect.query import query
from contam.index.build import build
from contam.index.change import retire

QUESTION = "Which of the lanterns on the old pier at Varnholt is lit first after the winter storms?"


@pytest.fixture
def corpus(tmp_path):
    lines = ["", json.dumps({"text": "A page about rope."}), "  \t", json.dumps({"text": ""})]
    lines += ["\r", "", json.dumps({"text": QUESTION}), ""]
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/a.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def read(coverage):
    return {name: coverage[name] for name in ("rows", "n_empty", "n_null", "n_blank")}


def test_scan_query_and_clean_count_documents_alone(corpus):
    expected = {"rows": 3, "n_empty": 1, "n_null": 0, "n_blank": 5}
    items = [{"question": QUESTION}]
    scanned = contam.scan(corpus / "corpus", items)
    assert read(scanned.coverage) == expected
    assert [row["row"] for row in scanned.evidence.to_pylist()] == [6]
    build(corpus / "corpus", corpus / "ix")
    asked = query(corpus / "ix", items)
    assert read(asked.coverage) == expected
    (corpus / "items.jsonl").write_text(json.dumps(items[0]) + "\n")
    cleaned = clean(corpus / "corpus", corpus / "items.jsonl", corpus / "cleaned").record
    documents = cleaned["documents"]
    assert (documents["before"], documents["dropped"], documents["after"]) == (3, 1, 2)
    again = contam.scan(corpus / "cleaned/corpus", items)
    assert (again.coverage["rows"], again.counts()["items"]["contam"]["clean"]) == (2, 1)
    retire(corpus / "ix", documents=["a.jsonl:6"])
    assert query(corpus / "ix", items).counts()["items"]["contam"]["clean"] == 1
