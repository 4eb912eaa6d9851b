"""The same documents give the same text in every format, however they are cut."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from contam.corpus.batches import read_chunk
from contam.tables.blocks import TextBlock, texts_of
from tests.corpus_files import (
    delimited,
    find_shards,
    plan_chunks,
    read_texts,
    select_all,
    wet_records,
)

TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TURN = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXT})


def store(folder, records, kind, rows):
    table = pa.table({"text": pa.array(records, kind)})
    pq.write_table(table, folder / "a.parquet", row_group_size=rows)
    with ipc.new_file(folder / "b.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    raw = [json.dumps({"text": record}).encode() + b"\n" for record in records]
    (folder / "c.jsonl").write_bytes(b"".join(raw))
    (folder / "d.jsonl.gz").write_bytes(b"".join(map(gzip.compress, raw)))
    (folder / "e.jsonl.zst").write_bytes(b"".join(map(zstandard.compress, raw)))


def store_plain(folder, records):
    """The formats that know no chats and no missing text."""
    texts = [record or "" for record in records]
    for name, delimiter in (("f.csv", ","), ("g.tsv", "\t")):
        (folder / name).write_bytes(delimited(texts, delimiter))
        (folder / f"{name}.gz").write_bytes(gzip.compress(delimited(texts, delimiter)))
    members = wet_records(texts)
    (folder / "h.warc.wet").write_bytes(b"".join(members))
    (folder / "i.warc.wet.gz").write_bytes(b"".join(map(gzip.compress, members)))


def assert_all_read(folder, expected, nulls, batch_bytes, n_plain=0):
    shards = find_shards([folder])
    selections, failures = select_all(shards, "text")
    units, more = plan_chunks(shards, selections)
    assert not failures
    assert not more
    texts = [[] for _ in shards]
    n_null = [0] * len(shards)
    for unit in units:
        for batch in read_chunk(unit, shards, selections, batch_bytes):
            assert batch.first_row == len(texts[batch.shard])
            texts[batch.shard] += texts_of(TextBlock(batch.data, batch.offsets, 0, 0, 0))
            n_null[batch.shard] += batch.n_null
    assert texts == [expected] * (5 + n_plain)
    assert n_null == [nulls] * 5 + [0] * n_plain
    for shard, selection in zip(shards, selections, strict=True):
        assert read_texts(shard, selection, range(len(expected))) == expected


@pytest.mark.slow
@given(st.lists(TEXT, min_size=1, max_size=12), st.integers(1, 5), st.integers(1, 60))
def test_texts(records, rows, batch_bytes):
    with tempfile.TemporaryDirectory() as folder:
        store(Path(folder), records, pa.string(), rows)
        store_plain(Path(folder), records)
        expected = [record or "" for record in records]
        assert_all_read(folder, expected, records.count(None), batch_bytes, n_plain=6)


@pytest.mark.slow
@given(st.lists(st.none() | st.lists(TURN, max_size=4), min_size=1, max_size=8), st.integers(1, 60))
def test_chats(records, batch_bytes):
    kind = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    with tempfile.TemporaryDirectory() as folder:
        store(Path(folder), records, kind, 3)
        expected = ["\n".join(turn["content"] or "" for turn in record or []) for record in records]
        assert_all_read(folder, expected, records.count(None), batch_bytes)
