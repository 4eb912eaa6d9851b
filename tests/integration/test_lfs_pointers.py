"""A shard that is a pointer of Git LFS is called that, and nothing is clean over it."""

from __future__ import annotations

import json

import pytest

import contam
from contam.errors import CorpusError
from contam.index.build import build
from contam.index.change import add
from contam.index.manifest import read_manifest

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 12345\n"
)
SUFFIXES = [
    ".parquet", ".arrow", ".feather", ".jsonl", ".json", ".ndjson", ".jsonl.gz", ".jsonl.zst",
    ".json.gz", ".jsonl.xz", ".jsonl.bz2", ".csv", ".csv.gz", ".tsv", ".warc.wet", ".warc.wet.gz",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A folder with one whole shard."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "whole.jsonl").write_text('{"text": "what anybody may read"}\n', encoding="utf-8")
    return corpus


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.jsonl"
    question = "Who lit the lamp over the weir when the ferrymen of the town were all asleep?"
    path.write_text(json.dumps({"id": "1", "question": question}) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_scan_and_build_name_a_pointer_among_the_shards(folder, items, tmp_path, suffix, named):
    pointer = folder / f"fetched{suffix}"
    pointer.write_text(POINTER, encoding="utf-8")
    corpus = [pointer, folder / "whole.jsonl"] if named else folder
    result = contam.scan(corpus=corpus, benchmark=items)
    (failed,) = result.run["coverage"]["shards_failed"]
    assert failed["shard"] == pointer.name
    assert failed["reason"].startswith(f"{pointer.name} is a Git LFS pointer")
    assert [one.label for one in result] == ["not_checkable"]
    manifest = build(corpus, tmp_path / "index")
    (failed,) = [shard for shard in manifest.shards if shard.failure]
    assert failed.failure.startswith(f"{pointer.name} is a Git LFS pointer")


def test_a_pointer_without_a_known_suffix_that_is_named_is_called_so(folder, items):
    pointer = folder / "shard-000"
    pointer.write_text(POINTER, encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        contam.scan(corpus=pointer, benchmark=items)
    assert "git lfs pull" in caught.value.hint


def test_a_pointer_that_is_added_to_an_index_is_called_so(folder, tmp_path):
    build(folder, tmp_path / "index")
    pointer = folder / "fetched.parquet"
    pointer.write_text(POINTER, encoding="utf-8")
    add(tmp_path / "index", pointer)
    manifest = read_manifest(tmp_path / "index")
    (failure,) = [shard.failure for shard in manifest.shards if shard.failure]
    assert "is a Git LFS pointer" in failure
