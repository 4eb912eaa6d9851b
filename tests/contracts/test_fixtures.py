"""bench_fixtures is what its generator writes, and its truth is true."""

import hashlib
import json

import pyarrow.parquet as pq
import pytest

from tests.cli.processes import python

SHARDS = ("part-000.parquet", "part-001.parquet", "part-002.parquet", "archive/part-003.parquet")


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory, bench_fixtures):
    folder = tmp_path_factory.mktemp("fixtures")
    made = python(bench_fixtures / "make_fixtures.py", "--out", folder)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.mark.parametrize("folder", ["logs", "studies"])
def test_the_scores_are_what_their_generator_writes(tmp_path, bench_fixtures, folder):
    made = python(bench_fixtures / f"make_{folder}.py", "--out", tmp_path)
    assert made.returncode == 0, made.stderr
    names = {path.name for path in (bench_fixtures / folder).iterdir()}
    assert names == {path.name for path in (tmp_path / folder).iterdir()}
    for name in names:
        written = (tmp_path / folder / name).read_bytes()
        assert written == (bench_fixtures / folder / name).read_bytes()


@pytest.fixture(scope="module")
def truth(bench_fixtures):
    lines = (bench_fixtures / "truth.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def documents(bench_fixtures):
    return {shard: pq.read_table(bench_fixtures / "corpus" / shard).to_pylist() for shard in SHARDS}


def test_the_corpus_holds_these_shards_and_no_others(bench_fixtures):
    corpus = bench_fixtures / "corpus"
    assert {p.relative_to(corpus).as_posix() for p in corpus.rglob("*.*")} == set(SHARDS)


@pytest.mark.parametrize("shard", SHARDS)
def test_a_shard_is_what_its_generator_writes(bench_fixtures, rebuilt, shard):
    committed, fresh = bench_fixtures / "corpus" / shard, rebuilt / "corpus" / shard
    ours, theirs = pq.ParquetFile(committed), pq.ParquetFile(fresh)
    assert ours.schema_arrow.equals(theirs.schema_arrow)
    assert ours.read().equals(theirs.read())
    groups = [ours.metadata.row_group(i).num_rows for i in range(ours.metadata.num_row_groups)]
    assert groups == [
        theirs.metadata.row_group(i).num_rows for i in range(theirs.metadata.num_row_groups)
    ]
    if ours.metadata.created_by == theirs.metadata.created_by:
        # Another release of the writer may lay the same table out otherwise; the same may not.
        assert committed.read_bytes() == fresh.read_bytes()


def test_the_truth_is_what_the_generator_writes(bench_fixtures, rebuilt):
    assert (bench_fixtures / "truth.jsonl").read_bytes() == (rebuilt / "truth.jsonl").read_bytes()


def test_every_span_holds_what_was_planted(truth, documents):
    planted = [row for row in truth if row["document_id"] is not None]
    assert planted
    for row in planted:
        document = documents[row["shard"]][row["row"]]
        assert document["id"] == row["document_id"]
        span = document["text"][row["char_start"] : row["char_end"]]
        if row["char_start2"] is not None:
            span += document["text"][row["char_start2"] : row["char_end2"]]
        assert hashlib.sha256(span.encode()).hexdigest()[:16] == row["span_sha256"]


def test_every_item_has_its_truth(truth, bench_fixtures):
    ids = []
    for path in sorted((bench_fixtures / "items").glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        ids += [row.get("id") or row["task_id"] for row in rows]
    assert len(set(ids)) == len(ids)
    assert {row["item_id"] for row in truth} == set(ids)
    absent = {row["item_id"] for row in truth if row["transformation"] == "absent"}
    met = {row["item_id"] for row in truth if row["document_id"] is not None}
    assert not absent & met
