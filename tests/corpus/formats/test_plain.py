"""Plain text: a file is a document, unless it stands beside shards."""

import gzip
import json

import pytest

import contam
from contam.errors import CorpusError
from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.corpus_files import find_shards
from tests.integration.inputs import ABSENT, FILLER, QUESTION, labels, write_items

TEXT = f"{FILLER}\n\n{QUESTION}\n{FILLER}"


@pytest.fixture
def items(tmp_path):
    return write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.tex", "a.rst", "A.TXT", "a.txt.gz"])
def test_a_file_is_a_document(tmp_path, items, name):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    data = TEXT.encode()
    (corpus / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (corpus / "empty.txt").write_bytes(b"")
    for given in (corpus, corpus / name):
        result = contam.scan(given, items, workers=1)
        assert labels(result) == {"q0": "contaminated", "q1": "clean"}
        places = {(row["shard"], row["row"]) for row in result.evidence.to_pylist()}
        assert places == {(name, 0)}
        assert result.coverage["rows"] == 1


def test_beside_shards_text_is_left_out_and_named(tmp_path, items):
    corpus = tmp_path / "corpus"
    (corpus / "in").mkdir(parents=True)
    (corpus / "README.md").write_text(TEXT)
    (corpus / "in" / "notes.txt").write_text(TEXT)
    (corpus / "a.jsonl").write_text(json.dumps({"text": FILLER}) + "\n")
    result = contam.scan(corpus, items, workers=1)
    assert labels(result) == {"q0": "clean", "q1": "clean"}
    skipped = {entry["path"] for entry in result.run["inputs"]["skipped_files"]}
    assert {path.rpartition("/")[2] for path in skipped} == {"README.md", "notes.txt"}
    # Named itself, it is part of the corpus.
    both = contam.scan([corpus, corpus / "README.md"], items, workers=1)
    assert labels(both)["q0"] == "contaminated"


def test_bytes_that_are_no_text_are_counted_or_refused(tmp_path, items):
    (tmp_path / "a.txt").write_bytes(TEXT.encode() + b"\xff\xfe caf\xe9")
    result = contam.scan(tmp_path / "a.txt", items, workers=1)
    assert labels(result)["q0"] == "contaminated"
    assert result.coverage["n_undecodable"] == 1
    for encoding in ("utf-16", "utf-16-le", "utf-32-be"):
        (tmp_path / "b.txt").write_bytes(f"“Ω” {TEXT}".encode(encoding))
        result = contam.scan(tmp_path / "b.txt", items, workers=1)
        assert set(labels(result).values()) == {"not_checkable"}, encoding
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(TEXT.encode())[:-9])
    result = contam.scan(tmp_path / "c.txt.gz", items, workers=1)
    assert set(labels(result).values()) == {"not_checkable"}


@pytest.mark.parametrize("action", ["drop", "mask", "cut"])
def test_a_corpus_of_text_is_cleaned_and_searched_again(tmp_path, items, action):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    (corpus / "b.txt").write_text(FILLER)
    contam.clean(corpus, items, tmp_path / "out", action=action, workers=1)
    new = (tmp_path / "out" / "corpus" / "a.txt").read_text("utf-8")
    assert QUESTION not in new
    assert (FILLER.strip() in new) == (action != "drop")
    assert (tmp_path / "out" / "corpus" / "b.txt").read_text() == FILLER
    assert labels(contam.scan(tmp_path / "out" / "corpus", items, workers=1))["q0"] == "clean"


def test_an_index_of_text_answers_as_a_scan(tmp_path, items):
    (tmp_path / "a.txt").write_text(TEXT)
    build(tmp_path / "a.txt", tmp_path / "index", load_recipe("complete"), workers=1)
    assert labels(contam.query(tmp_path / "index", items)) == {"q0": "contaminated", "q1": "clean"}


def test_an_unknown_suffix_is_still_refused(tmp_path):
    (tmp_path / "a.log").write_text(TEXT)
    with pytest.raises(CorpusError):
        find_shards([tmp_path / "a.log"])


def test_by_lines_every_line_is_a_document_and_every_byte_stays(tmp_path):
    (tmp_path / "corpus").mkdir()
    path = tmp_path / "corpus" / "notes.txt"
    kept = b"\xef\xbb\xbffirst line\r\n  \n", b"\xff broken bytes\r\nlast line"
    path.write_bytes(kept[0] + QUESTION.encode() + b"\r\n" + kept[1])
    (tmp_path / "items.jsonl").write_text(json.dumps({"question": QUESTION}))
    asked = tmp_path / "corpus", tmp_path / "items.jsonl"
    result = contam.scan(*asked, lines=True)
    assert [row["row"] for row in result.evidence.to_pylist()] == [2]
    assert (result.coverage["rows"], result.coverage["n_blank"]) == (4, 1)
    assert result.coverage["n_undecodable"] == 1
    contam.clean(*asked, tmp_path / "dropped", lines=True)
    assert (tmp_path / "dropped/corpus/notes.txt").read_bytes() == b"".join(kept)
    contam.clean(*asked, tmp_path / "masked", lines=True, action="mask")
    masked = (tmp_path / "masked/corpus/notes.txt").read_bytes()
    assert masked.startswith(kept[0] + b"[...]")
    assert masked.endswith(b"\r\n" + kept[1])
