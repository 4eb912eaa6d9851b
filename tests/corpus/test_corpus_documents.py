"""The second look: metadata, texts and turns of single rows."""

import datetime as dt
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from contam.corpus.columns import select_columns
from contam.corpus.documents import DocumentMeta, read_documents, read_metadata
from contam.corpus.opening import open_shards
from contam.corpus.shards import shard_digest
from contam.errors import ShardError
from tests import corpus_files
from tests.corpus_files import WRITERS, find_shards, read_texts

FORMATS = ["parquet", "arrow", "jsonl", "jsonl.gz"]
#: These have neither structs nor numbers nor a text that is null.
PLAIN = ["csv", "tsv", "csv.gz"]


def store(folder, kind, records):
    """Write one shard in the given format and return it with its selection."""
    path = folder / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(records), path, row_group_size=2)
    elif kind == "arrow":
        table = pa.Table.from_pylist(records)
        with ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    elif kind in PLAIN:
        raw = corpus_files.table(records, "\t" if kind == "tsv" else ",")
        path.write_bytes(gzip.compress(raw) if kind.endswith("gz") else raw)
    else:
        raw = "".join(json.dumps(record) + "\n" for record in records).encode()
        path.write_bytes(gzip.compress(raw) if kind.endswith("gz") else raw)
    shard = find_shards([path])[0]
    return shard, select_columns(shard)


def row(i):
    return {
        "text": f"text {i}",
        "id": f"doc-{i}",
        "url": f"https://example.org/{i}" if i % 2 else None,
        "date": f"2024-01-0{i + 1}",
        "source": "web",
        "language": "en",
    }


@pytest.mark.parametrize("kind", [*FORMATS, *PLAIN])
def test_metadata_of_any_rows_in_the_order_asked(tmp_path, kind):
    shard, selection = store(tmp_path, kind, [row(i) for i in range(7)])
    found = read_metadata(shard, selection, [6, 1, 1, 0])
    assert [meta.document_id for meta in found] == ["doc-6", "doc-1", "doc-1", "doc-0"]
    assert found[1] == DocumentMeta("doc-1", "https://example.org/1", "2024-01-02", "web", "en")
    assert found[3].url is None
    assert read_metadata(shard, selection, []) == []


@pytest.mark.parametrize("kind", [*FORMATS, *PLAIN])
def test_texts_of_any_rows_are_those_the_scan_saw(tmp_path, read_corpus, kind):
    records = [{"text": text} for text in ["a", None, "", "naïve 漢字", "z"]]
    shard, selection = store(tmp_path, kind, records)
    seen = read_corpus(tmp_path).texts[0]
    assert read_texts(shard, selection, [4, 3, 1, 0]) == [seen[i] for i in (4, 3, 1, 0)]


@pytest.mark.parametrize("kind", [*FORMATS, *PLAIN])
def test_a_row_past_the_end_is_an_error(tmp_path, kind):
    shard, selection = store(tmp_path, kind, [row(0), row(1)])
    for read in (read_metadata, read_texts):
        with pytest.raises(ShardError, match="row 2 is not there"):
            read(shard, selection, [0, 2])


@pytest.mark.parametrize("kind", FORMATS)
def test_metadata_inside_structs_and_json_text(tmp_path, kind):
    shard, selection = store(
        tmp_path,
        kind,
        [{"text": "x", "metadata": {"WARC-Record-ID": "w1", "url": "u"}, "meta": "no"}],
    )
    assert read_metadata(shard, selection, [0]) == [DocumentMeta("w1", "u", None, None, None)]
    inner = json.dumps({"pile_set_name": "Books", "url": "v", "timestamp": 5})
    shard, selection = store(
        tmp_path,
        kind,
        [{"text": "x", "id": 7, "meta": inner}, {"text": "y", "id": 8, "meta": None}],
    )
    assert read_metadata(shard, selection, [0, 1]) == [
        DocumentMeta("7", "v", "5", "Books", None),
        DocumentMeta("8", None, None, None, None),
    ]


def test_typed_columns_are_written_as_text(tmp_path):
    table = pa.table(
        {
            "text": ["x"],
            "id": pa.array([2**60], pa.int64()),
            "timestamp": pa.array(
                [dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")
            ),
            "source": pa.array(["s"]).dictionary_encode(),
            "language": pa.array([b"e\xff"], pa.binary()),
            "url": pa.array([["u1"]]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    shard = find_shards([tmp_path])[0]
    meta = read_metadata(shard, select_columns(shard), [0])[0]
    assert meta == DocumentMeta(str(2**60), None, "2024-05-06T07:08:09+00:00", "s", "e\ufffd")


def read_as(selection):
    """The columns of the text and of the metadata, as a user writes them."""
    names = ("id", "url", "date", "source", "language")
    refs = [selection.text, *(next(iter(selection.metadata.get(n, ())), None) for n in names)]
    return [ref and ref.dotted for ref in refs]


def test_the_usual_names_of_published_corpora_are_found(tmp_path):
    def paths(record):
        _, selection = store(tmp_path, "jsonl", [record])
        return read_as(selection)

    fineweb = {"text": "t", "id": "i", "dump": "d", "url": "u", "date": "2024", "language": "en"}
    assert paths(fineweb) == ["text", "id", "url", "date", "dump", "language"]
    dolma = {"id": "i", "text": "t", "source": "s", "created": "c", "added": "a"}
    assert paths(dolma) == ["text", "id", None, "created", "source", None]
    redpajama = {"raw_content": "t", "doc_id": "i", "url": "u", "digest": "d"}
    assert paths(redpajama) == ["raw_content", "doc_id", "url", None, None, None]
    stack = {"hexsha": "h", "content": "t", "lang": "C", "max_stars_repo_name": "r"}
    assert paths(stack) == ["content", "hexsha", None, None, "max_stars_repo_name", "lang"]
    slim = {"text": "t", "meta": {"redpajama_set_name": "s"}}
    assert paths(slim) == ["text", None, None, None, "meta.redpajama_set_name", None]


CHAT = [
    {"role": "user", "content": "héllo"},
    {"role": "assistant", "content": None},
    {"role": "assistant", "content": "bye 🙂"},
]


@pytest.mark.parametrize("kind", FORMATS)
def test_positions_in_a_chat_lead_to_their_turn(tmp_path, kind):
    shard, selection = store(tmp_path, kind, [{"messages": CHAT[:1]}, {"messages": CHAT}])
    text = read_texts(shard, selection, [1])[0]
    assert text == "héllo\n\nbye 🙂"
    (document,) = read_documents(shard, selection, [1])
    assert document.turn_at(text.index("h")) == "0:user"
    assert document.turn_at(text.index("bye")) == "2:assistant"
    assert document.turn_at(len(text) - 1) == "2:assistant"
    assert document.turn_at(len(text) + 5) is None


ROWS = [{"id": str(n), "text": f"document {n} of a few words"} for n in range(5)]
#: More than there are threads, so that each reads several.
COPIES = 40


def write_copies(folder, kind, copies=COPIES):
    data = WRITERS[kind](ROWS)
    for number in range(copies):
        (folder / f"{number:02}.{kind}").write_bytes(data)
    return find_shards([folder])


def test_a_shard_replaced_while_it_is_looked_at_is_a_failure_with_no_chunks(tmp_path, monkeypatch):
    (shard,) = write_copies(tmp_path, "parquet", 1)
    kind = type(shard.kind)
    chunks = kind.chunks

    def replaced(self, path, *args):
        found = chunks(self, path, *args)
        other = tmp_path / "other"
        other.write_bytes(WRITERS["parquet"](ROWS[:2]))
        other.replace(shard.uri)
        return found

    monkeypatch.setattr(kind, "chunks", replaced)
    found = open_shards([shard])
    assert [failure.name for failure in found.failures] == [shard.name]
    assert "after it was listed" in found.failures[0].reason
    assert (found.digests, found.chunks) == ((None,), [])


def test_what_cannot_be_opened_fails_in_the_words_of_who_opens_it(tmp_path):
    shards = write_copies(tmp_path, "jsonl", 2)
    (tmp_path / "00.jsonl").unlink()
    found = open_shards(shards)
    assert [failure.name for failure in found.failures] == ["00.jsonl"]
    assert [one is None for one in found.digests] == [True, False]
    with pytest.raises(ShardError) as alone:
        shard_digest(shards[0])
    assert "00.jsonl" in alone.value.message
