"""Benchmarks at addresses are the items that copies of them are."""

from __future__ import annotations

import gzip

import pytest

from contam.benchmark.read_files import read_benchmarks
from contam.errors import BenchmarkError, CorpusError
from tests.corpus_files import WRITERS
from tests.remote.conftest import BUCKET

ROWS = [{"question": f"How many {n} are in the box?", "answer": str(n)} for n in range(5)]
FILES = {
    "jsonl": WRITERS["jsonl"](ROWS),
    "jsonl.gz": gzip.compress(WRITERS["jsonl"](ROWS)),
    "csv": WRITERS["csv"](ROWS),
    "parquet": WRITERS["parquet"](ROWS),
    "arrow": WRITERS["arrow"](ROWS),
}


def questions(benchmarks):
    return [(item.item_id, item.question) for each in benchmarks for item in each.items]


@pytest.mark.parametrize("suffix", FILES)
def test_a_benchmark_in_a_bucket_is_its_copy(s3, suffix, tmp_path):
    (tmp_path / f"boxes_test.{suffix}").write_bytes(FILES[suffix])
    s3.put(f"/{BUCKET}/items/boxes_test.{suffix}", FILES[suffix])
    local = read_benchmarks([tmp_path])
    for named in (
        f"s3://{BUCKET}/items",
        f"s3://{BUCKET}/items/*",
        f"s3://{BUCKET}/items/boxes_test.{suffix}",
    ):
        remote = read_benchmarks([named])
        assert [each.name for each in remote] == [each.name for each in local] == ["boxes"]
        assert questions(remote) == questions(local)
        (source,), (copy,) = remote[0].sources, local[0].sources
        assert source.path == f"s3://{BUCKET}/items/boxes_test.{suffix}"
        assert (source.sha256, source.n_rows) == (copy.sha256, copy.n_rows)


@pytest.mark.parametrize("suffix", FILES)
def test_a_benchmark_replaced_while_it_is_read_is_refused(s3, suffix):
    path = f"/{BUCKET}/items/boxes.{suffix}"
    s3.put(path, FILES[suffix])
    # What a table is, and that it is no pointer, is asked before.
    after = 1 if suffix in ("parquet", "arrow") else 0
    s3.fail(lambda: s3.put(path, FILES[suffix]), key="boxes", method="GET", after=after)
    with pytest.raises(BenchmarkError, match="replaced"):
        read_benchmarks([f"s3://{BUCKET}/items"])


@pytest.mark.parametrize("suffix", FILES)
def test_a_benchmark_that_its_store_does_not_give_is_refused(s3, suffix):
    s3.put(f"/{BUCKET}/items/boxes.{suffix}", FILES[suffix])
    s3.fail("403", key="boxes", method="GET", times=None)
    with pytest.raises(CorpusError, match=r"the store answered .* no other object"):
        read_benchmarks([f"s3://{BUCKET}/items"])


def test_a_folder_without_items_is_refused(s3):
    s3.put(f"/{BUCKET}/items/readme.md", b"# none")
    with pytest.raises(BenchmarkError, match="no benchmark files"):
        read_benchmarks([f"s3://{BUCKET}/items"])
    with pytest.raises(BenchmarkError, match="no object is there"):
        read_benchmarks([f"s3://{BUCKET}/none"])
