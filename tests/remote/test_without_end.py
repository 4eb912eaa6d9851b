"""What a server states or sends without end ends in an error, within bounds of memory and time."""

from __future__ import annotations

import pytest

from contam.benchmark.read_files import read_benchmarks
from contam.corpus.shards import survey
from contam.detect.scan import scan
from contam.errors import BenchmarkError, CorpusError
from contam.tables import object_stores
from tests.integration.inputs import labels
from tests.remote.s3 import S3Handler
from tests.remote.server import Handler, running

HUGE = 1 << 60


class Endless(S3Handler):
    """A bucket whose listing always says that there is more."""

    def _list(self, bucket, query):
        begin = int(query.get("continuation-token") or 0)
        rows = "".join(
            f"<Contents><Key>data/{number:012}.jsonl</Key><Size>1</Size></Contents>"
            for number in range(begin, begin + 1000)
        )
        self.send(
            200,
            f'<?xml version="1.0"?><ListBucketResult><Name>{bucket}</Name>{rows}<IsTruncated>true'
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
        with pytest.raises(CorpusError, match="does not end"):
            survey(["s3://endless/data/"])


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
