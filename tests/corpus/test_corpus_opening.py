"""Planning says of a shard what the openings for each question would say."""

from __future__ import annotations

import pytest

from contam.corpus.opening import open_shards
from contam.corpus.shards import Shard, shard_digest
from contam.errors import ShardError
from tests.corpus_files import WRITERS, find_shards, plan_chunks

ROWS = [{"id": str(n), "text": f"document {n} of a few words"} for n in range(5)]
#: More than there are threads, so that each reads several.
COPIES = 40


def write_copies(folder, kind, copies=COPIES):
    data = WRITERS[kind](ROWS)
    for number in range(copies):
        (folder / f"{number:02}.{kind}").write_bytes(data)
    return find_shards([folder])


@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl", "csv", "warc"])
def test_opening_tells_what_each_question_alone_would(kind, tmp_path):
    shards = write_copies(tmp_path, kind)
    found = open_shards(shards)
    assert found.shards == shards
    assert not found.failures
    assert found.digests == tuple(map(shard_digest, shards))
    assert (found.chunks, []) == plan_chunks(shards, found.selections)


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


def test_a_shard_without_a_state_gets_the_one_it_is_opened_in(tmp_path):
    (shard,) = write_copies(tmp_path, "parquet", 1)
    found = open_shards([Shard(shard.uri, shard.name, shard.format, 0)])
    assert found.shards[0].state == shard.state
    assert found.shards[0].size_bytes == shard.size_bytes
