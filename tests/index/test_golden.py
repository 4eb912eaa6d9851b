"""The golden index of the format: it is as it was written, opens, and finds what it always found."""

from __future__ import annotations

import hashlib
import json
import runpy

import pytest

import contam
from contam.index.manifest import read_manifest
from contam.index.open import Index
from contam.index.verify import verify
from contam.text.tokenizer import tokenize_bytes
from tests.index.builds import keys_of
from tests.kernels.support import u64s

#: SHA-256 over all files of each golden index: a change to one of them is never right.
FROZEN = {
    "v2-word-5": "cf60421854dfd33d931ff0a8cad565d3ff70f31b292a40eb0b7d59e082e34a04",
}


@pytest.fixture(scope="module")
def golden(repository):
    return repository / "indexes" / "golden" / "v2-word-5"


@pytest.fixture(scope="module")
def truth(golden):
    return json.loads((golden / "truth.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def maker(repository):
    return runpy.run_path(str(repository / "indexes" / "golden" / "make_golden.py"))


@pytest.mark.parametrize("name", FROZEN)
def test_no_byte_of_it_has_changed(repository, name):
    golden = repository / "indexes" / "golden" / name
    digest = hashlib.sha256()
    for path in sorted(path for path in golden.rglob("*") if path.is_file()):
        digest.update(path.relative_to(golden).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    assert digest.hexdigest() == FROZEN[name]


def test_it_opens_and_nothing_in_it_is_damaged(golden):
    index = Index.open(golden / "index")
    assert (index.guarantee, len(index.segments), len(index.retired)) == (8, 2, 1)
    assert index.names == ("part-0.parquet", "part-1.parquet", "part-2.jsonl")
    assert index.coverage().complete
    report = verify(golden / "index")
    assert not report.damaged
    # Its shards lie beside it, and not where the manifest has them: no place fits every checkout.
    assert {finding.place for finding in report.findings} == {
        f"/golden/{name}" for name in index.names
    }


def test_it_finds_every_document_that_shares_eight_words(golden, truth):
    index = Index.open(golden / "index")
    found = set()
    for line in (golden / "items.jsonl").read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        for part in ("passage", "question", "answer"):
            found |= {
                (item["id"], candidate) for candidate in candidates(index, item.get(part, ""))
            }
    expected = {(item, document) for item, document, _ in truth["shared"]}
    retired = {pair for pair in expected if pair[1] in truth["retired"]}
    assert len(retired) == 1
    assert found >= expected - retired
    assert not found & retired


def test_it_finds_the_copy_that_shares_no_sampled_gram(golden, truth):
    result = contam.query(golden / "index", golden / "items.jsonl", corpus=golden / "corpus")
    rows = result.evidence.to_pylist()
    near = [row for row in rows if row["similarity"] is not None]
    assert {(row["item_id"], row["document_id"]) for row in near} == set(map(tuple, truth["near"]))
    assert all(0.75 < row["similarity"] < 0.9 for row in near)
    assert len(rows) > len(near)


def candidates(index, text):
    """Ids of the documents that hold an indexed gram of the text."""
    hashes = tokenize_bytes(text.encode()).hashes
    keys = u64s(keys_of(hashes, index.recipe.gram))
    for segment in index.segments:
        documents = segment.grams.documents(*segment.grams.find(keys))
        kept = documents[~index.retired.holds(*segment.place_of(documents))]
        yield from (document.document_id for document in segment.documents(kept.tolist()))


def test_a_build_of_today_writes_the_same_segments(golden, maker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    maker["make"](tmp_path / "again")
    old = read_manifest(golden / "index").segments
    new = read_manifest(tmp_path / "again" / "index").segments
    arrays = [[file for file in one.files if file.name.endswith(".npy")] for one in old]
    assert arrays == [[file for file in one.files if file.name.endswith(".npy")] for one in new]
    truth = (tmp_path / "again" / "truth.json").read_bytes()
    assert truth == (golden / "truth.json").read_bytes()
