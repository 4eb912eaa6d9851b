"""Shards that are pointers of Git LFS, or texts in another encoding, are called that and never clean."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.errors import CorpusError
from contam.index.build import build

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


QUESTION = "Which of the nine brass lanterns did the old ferry keeper polish before the fair?"
OTHER = "Whose garden has more than forty kinds of pear, and who waters them in dry summers?"
ITEMS = [{"id": "q", "question": QUESTION}, {"id": "o", "question": OTHER}]
RUSSIAN = "Какой из девяти медных фонарей старый паромщик начистил перед ярмаркой"


def parquet(path, texts):
    pq.write_table(pa.table({"text": pa.array(texts, pa.binary())}), path / "a.parquet")


def arrow(path, texts):
    table = pa.table({"text": pa.array(texts, pa.large_binary())})
    with pa.OSFile(str(path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as to:
        to.write_table(table)


def jsonl(path, texts):
    lines = b"".join(b'{"text": "%b"}\n' % text.replace(b"\n", b" ") for text in texts)
    (path / "a.jsonl.gz").write_bytes(gzip.compress(lines))


def answers(tmp_path, corpus):
    yield contam.scan(corpus, ITEMS)
    build(corpus, tmp_path / "index", workers=1)
    yield contam.query(tmp_path / "index", ITEMS)


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "z.jsonl").write_text(json.dumps({"text": "a quiet document"}) + "\n")
    return folder


@pytest.mark.parametrize("write", [parquet, arrow])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_texts_in_utf_16_are_not_called_clean(tmp_path, corpus, write, encoding):
    write(corpus, [f"{n}: {QUESTION}".encode(encoding) for n in range(12)] + [b""])
    for result in answers(tmp_path, corpus):
        assert {verdict.label for verdict in result} == {"not_checkable"}
        (failed,) = result.coverage["shards_failed"]
        assert "none of its 12 texts is UTF-8" in failed["reason"]
        assert not result.complete


def test_an_old_encoding_in_a_json_file_is_not_called_clean(tmp_path, corpus):
    jsonl(corpus, [RUSSIAN.encode("koi8-r")] * 3)
    for result in answers(tmp_path, corpus):
        assert {verdict.label for verdict in result} == {"not_checkable"}


@pytest.mark.parametrize("write", [parquet, arrow, jsonl])
def test_texts_with_a_few_bytes_of_an_older_encoding_are_read(tmp_path, corpus, write):
    write(corpus, [f"{QUESTION} Café".encode("latin-1")] * 3)
    for result in answers(tmp_path, corpus):
        assert [verdict.label for verdict in result] == ["clean", "contaminated"]
        assert result.coverage["n_undecodable"] == 3


def test_utf_16_among_readable_texts_is_counted(tmp_path, corpus):
    parquet(corpus, [OTHER.encode("utf-16-le"), QUESTION.encode(), b"NUL\x00 in a text of bytes"])
    for result in answers(tmp_path, corpus):
        assert [verdict.label for verdict in result] == ["clean", "contaminated"]
        assert result.coverage["n_undecodable"] == 1
        assert result.coverage["undecodable_bytes"] == len(OTHER)
