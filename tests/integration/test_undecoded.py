"""A shard whose texts are in another encoding is not read, whatever the format; never clean."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.index.build import build

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
