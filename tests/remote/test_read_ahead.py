"""Chunks of a store are read while others are worked on, and no more than is asked for."""

import io
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.benchmark.read_files import read_benchmarks
from contam.corpus import batches as batches_module
from contam.corpus import opening as chunks_module
from contam.corpus.batches import read_chunk, read_chunks
from contam.corpus.opening import open_shards
from contam.corpus.shards import survey
from contam.corpus.tokens import settled
from contam.detect.scan import scan
from contam.errors import BenchmarkError, CorpusError, ShardError
from contam.tables import object_stores
from tests.corpus.formats.test_token_formats import END, HOW, encoded
from tests.integration.inputs import FILLER, labels
from tests.remote.conftest import BUCKET, N_ROWS
from tests.remote.s3 import S3Handler, put_folder
from tests.remote.server import Handler, running
from tests.waiting import wait_until

BATCH_BYTES = 200
DATA = f"s3://{BUCKET}/data"


@pytest.fixture
def small_chunks(monkeypatch):
    """Every row group, and every two lines of JSON, are a chunk."""
    monkeypatch.setattr(chunks_module, "CHUNK_BYTES", 100)


def opened(place):
    return open_shards(survey([str(place)], look=False)[0])


def values(batch):
    return batch.shard, batch.first_row, batch.data.tobytes(), batch.offsets.tolist(), batch.records


def names_of_threads():
    return {thread.name for thread in threading.enumerate() if "contam-read" in thread.name}


@pytest.mark.usefixtures("bucket", "small_chunks")
def test_the_batches_are_those_of_each_chunk(folder):
    for place in (DATA, folder):
        corpus = opened(place)
        asked = (corpus.shards, corpus.selections, BATCH_BYTES)
        assert len(corpus.chunks) > len(corpus.shards)
        expected = [
            [values(batch) for batch in read_chunk(chunk, *asked)] for chunk in corpus.chunks
        ]
        found = [
            (chunk, [values(batch) for batch in batches])
            for chunk, batches in read_chunks(corpus.chunks, *asked)
        ]
        assert found == list(zip(corpus.chunks, expected, strict=True))
        assert not names_of_threads()


@pytest.mark.usefixtures("bucket")
def test_what_comes_next_is_read_once_there_is_work(bucket):
    corpus = opened(DATA)
    bucket.requests.clear()
    reading = read_chunks(corpus.chunks, corpus.shards, corpus.selections, BATCH_BYTES)
    chunk, batches = next(reading)
    assert chunk == corpus.chunks[0]
    keys = [shard.uri.removeprefix("s3:/") for shard in corpus.shards]

    def begun():
        return {keys.index(request.path) for request in bucket.requests}

    next(iter(batches))
    ahead = {chunk.shard for chunk in corpus.chunks[1 : 1 + batches_module._MOST_AHEAD]}
    wait_until(lambda: begun() == {0} | ahead)
    reading.close()
    assert begun() == {0} | ahead
    assert not names_of_threads()


def test_a_shard_that_fails_lets_the_others_be_read(s3, files):
    shards = {"1.parquet": "a.parquet", "2.jsonl": "c.jsonl", "3.arrow": "b.arrow"}
    put_folder(s3, BUCKET, {name: files[like] for name, like in shards.items()})
    corpus = opened(f"s3://{BUCKET}")
    s3.put(f"/{BUCKET}/2.jsonl", files["c.jsonl"])
    n_batches, failed = [], []
    for chunk, batches in read_chunks(corpus.chunks, corpus.shards, corpus.selections, 1):
        n_batches.append(0)
        try:
            for _ in batches:
                n_batches[-1] += 1
        except ShardError:
            failed.append(corpus.shards[chunk.shard].name)
    assert failed == ["2.jsonl"]
    assert n_batches == [N_ROWS, 0, N_ROWS]


HUGE = 1 << 60


class Endless(S3Handler):
    """A bucket whose listing always says that there is more, until `ended` is set."""

    ended = threading.Event()

    def _list(self, bucket, query):
        more = "false" if self.ended.is_set() else "true"
        begin = int(query.get("continuation-token") or 0)
        rows = "".join(
            f"<Contents><Key>data/{number:012}.jsonl</Key><Size>1</Size></Contents>"
            for number in range(begin, begin + 1000)
        )
        self.send(
            200,
            f'<?xml version="1.0"?><ListBucketResult><Name>{bucket}</Name>{rows}<IsTruncated>{more}'
            f"</IsTruncated><NextContinuationToken>{begin + 1000}</NextContinuationToken>"
            "</ListBucketResult>".encode(),
            "application/xml",
        )


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["_LISTING_BYTES", "_LISTING_S"])
def test_a_listing_without_end_is_an_error(credentials, monkeypatch, limit):
    del credentials
    monkeypatch.setattr(object_stores, limit, {"_LISTING_BYTES": 16 << 20, "_LISTING_S": 2}[limit])
    with running(Endless) as store:
        store.buckets.add("endless")
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.url)
        Endless.ended.clear()
        with pytest.raises(CorpusError, match="does not end"):
            survey(["s3://endless/data/"])
        # What was given up goes on in its thread, and would take all memory of the tests.
        Endless.ended.set()
        wait_until(lambda: all(thread.name != "listing" for thread in threading.enumerate()))


class Boaster(Handler):
    """States a size that no file has, and sends the few bytes it has of it."""

    def answer(self, request):
        data = self.server.contents[request.path].data
        begin, end = request.range or (0, len(data))
        part = data[begin : (end if end is not None else begin) + 1]
        last = begin + max(0, len(part) - 1)
        self.send(206, part, **{"Content-Range": f"bytes {begin}-{last}/{HUGE}"})


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.csv", "a.jsonl.gz"])
def test_a_size_that_no_file_has_is_not_believed(certified, name, items):
    with running(Boaster, certified) as store:
        store.put(f"/{name}", b'{"text": "a page"}\n' * 10)
        address = f"{store.url}/{name}"
        result = scan([address], items)
        assert not result.complete
        assert set(labels(result).values()) == {"not_checkable"}
        if name == "a.jsonl":
            with pytest.raises(BenchmarkError, match="bytes"):
                read_benchmarks([address])


@pytest.mark.parametrize("packed", [False, True])
def test_of_many_groups_of_token_ids_only_some_are_fetched_to_try_them(s3, packed):
    """Three places are tried; a row that is read on needs the group behind it, not all of them."""
    words = np.random.default_rng(3).choice(FILLER.split(), (100, 2000))
    ids = [[*one, END] for one in encoded(map(" ".join, words))] * 30
    if packed:
        ids = np.concatenate(ids)
        ids = ids[: len(ids) // 999 * 999].reshape(-1, 999).tolist()
    data = io.BytesIO()
    pq.write_table(pa.table({"input_ids": ids}), data, row_group_size=50)
    s3.put(f"/{BUCKET}/ids.parquet", data.getvalue())
    shards = survey([f"s3://{BUCKET}/ids.parquet"], look=False)[0]
    s3.requests.clear()
    corpus = open_shards(shards, named=settled(HOW))
    shard, selection = corpus.shards[0], corpus.selections[0]
    assert selection.text.tokens.packed == packed
    assert len(list(shard.kind.documents(shard.path, selection.sources, [0, 9]))) == 2
    ranges = [request.range for request in s3.requests if request.range]
    assert sum(end - begin for begin, end in ranges) < len(data.getvalue()) / 2
