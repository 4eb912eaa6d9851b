"""One large file, read in pieces: every row once, under its own number."""

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from contam.corpus import opening, streams
from contam.corpus.batches import read_chunk
from contam.corpus.columns import select_columns
from contam.corpus.documents import MetadataStream
from contam.corpus.streams import ByteSpan, line_number, span_pieces
from contam.errors import ShardError
from contam.tables.blocks import TextBlock, texts_of
from tests.corpus_files import find_shards, plan_chunks, select_all

LINE = st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b""))


@given(st.lists(LINE, max_size=12), st.booleans(), st.integers(1, 40), st.integers(1, 16))
def test_spans_hold_every_line_once(lines, ends, step, piece):
    raw = b"\n".join(lines) + (b"\n" if ends else b"")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "PIECE_BYTES", piece)
        path = Path(folder) / "a"
        path.write_bytes(raw)
        spans = [ByteSpan(at, min(at + step, len(raw))) for at in range(0, len(raw), step)]
        read = [b"".join(span_pieces(str(path), span)) for span in spans]
        assert b"".join(read) == raw
        for span, found in zip(spans, read, strict=True):
            starts = [0, *(i + 1 for i, byte in enumerate(raw) if byte == 10)]
            if found:
                first = sum(len(one) for one in read[: spans.index(span)])
                assert span.begin <= first < span.end
                assert line_number(str(path), span.begin) == starts.index(first)


def documents(folder, *, workers=1, order=1, column=None):
    """Every document by (shard, row), and how many units there were."""
    shards = find_shards([folder])
    selections, _ = select_all(shards, column)
    planned, failures = plan_chunks(shards, selections)
    assert not failures

    def read(unit):
        return [
            (batch.shard, batch.first_row + i, text)
            for batch in read_chunk(unit, shards, selections)
            for i, text in enumerate(texts_of(TextBlock(batch.data, batch.offsets, 0, 0, 0)))
        ]

    with ThreadPoolExecutor(workers) as pool:
        found = [one for part in pool.map(read, planned[::order]) for one in part]
    return sorted(found), len(planned)


TEXTS = [f"row {i} " + "x" * (i * 37 % 200) for i in range(500)]


@pytest.fixture(params=["jsonl", "arrow", "parquet"])
def large(request, tmp_path, monkeypatch):
    """One shard of 500 rows that is cut into many units."""
    path = tmp_path / f"a.{request.param}"
    if request.param == "jsonl":
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    elif request.param == "parquet":
        pq.write_table(pa.table({"text": TEXTS}), path, row_group_size=7)
    else:
        table = pa.table({"text": TEXTS, "n": list(range(500))})
        options = ipc.IpcWriteOptions(compression="lz4")
        with ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=7)
    monkeypatch.setattr(opening, "CHUNK_BYTES", 2000)
    return tmp_path


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("order", [1, -1])
def test_rows_keep_their_numbers_whoever_reads_them_and_when(large, workers, order):
    found, n_units = documents(large, workers=workers, order=order)
    assert found == [(0, i, text) for i, text in enumerate(TEXTS)]
    assert n_units > 10


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n"])
def test_a_line_longer_than_a_piece_belongs_to_where_it_begins(tmp_path, monkeypatch, end):
    texts = ["a", "b" * 5000, "c", "", "d" * 3000]
    lines = [json.dumps({"text": text}) for text in texts]
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + ("\n".join(lines) + end).encode())
    monkeypatch.setattr(opening, "CHUNK_BYTES", 500)
    found, n_units = documents(tmp_path)
    expected = [*texts, ""] if end == "\n\n" else texts
    assert [text for _, _, text in found] == expected
    assert [row for _, row, _ in found] == list(range(len(expected)))
    assert n_units > 10


def test_a_bad_line_in_a_later_piece_is_named_with_its_number(tmp_path, monkeypatch):
    lines = [json.dumps({"text": text}) for text in TEXTS]
    lines[400] = '{"text": "cut'
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    monkeypatch.setattr(opening, "CHUNK_BYTES", 2000)
    with pytest.raises(ShardError, match=r"a\.jsonl, line 401: not JSON"):
        documents(tmp_path, order=-1)


def test_a_file_that_shrinks_meanwhile_is_an_error(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x"}\n' * 3)
    with pytest.raises(ShardError, match="ends at byte 42"):
        list(span_pieces(str(path), ByteSpan(28, 60)))


@pytest.mark.parametrize("kind", ["jsonl", "arrow"])
def test_metadata_stays_beside_its_text_in_every_piece(tmp_path, monkeypatch, kind):
    rows = [{"text": text, "id": f"d{i}"} for i, text in enumerate(TEXTS)]
    path = tmp_path / f"a.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        table = pa.Table.from_pylist(rows)
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
    monkeypatch.setattr(opening, "CHUNK_BYTES", 2000)
    (shard,) = find_shards([path])
    selection = select_columns(shard)
    found = {}
    for unit in reversed(plan_chunks([shard], selection)[0]):
        stream = MetadataStream(unit, shard, selection)
        for batch in read_chunk(unit, [shard], [selection]):
            ids = stream.take(batch.n_docs)["id"]
            found |= {batch.first_row + i: one for i, one in enumerate(ids)}
    assert found == {i: f"d{i}" for i in range(500)}
