import os

from contam.corpus.shards import survey
from contam.files.listed import FileState


def written(path, data, modified_ns=1_700_000_000_123_456_789):
    path.write_bytes(data)
    os.utime(path, ns=(modified_ns, modified_ns))
    return FileState.at(str(path))


def test_a_stamp_is_the_same_for_a_copy_that_kept_its_time(tmp_path):
    first = written(tmp_path / "a.jsonl", b"one")
    copy = written(tmp_path / "b.jsonl", b"one")
    assert first.inode != copy.inode
    assert first.stamp == copy.stamp


def test_a_stamp_differs_for_another_size_or_time(tmp_path):
    path = tmp_path / "a.jsonl"
    stamps = {
        written(path, b"one").stamp,
        written(path, b"four").stamp,
        written(path, b"one", 1_700_000_000_123_456_790).stamp,
    }
    assert len(stamps) == 3


def test_a_stamp_of_an_object_is_its_version():
    one = FileState(3, 5, version="etag=abc")
    assert one.stamp == "etag=abc"
    assert FileState(3, 5, version="etag=def").stamp != one.stamp


def test_a_listed_shard_has_the_stamp_of_its_file(tmp_path):
    state = written(tmp_path / "a.jsonl", b'{"text": "one"}\n')
    (shard,), _ = survey([tmp_path])
    assert shard.state is not None
    assert shard.state.stamp == state.stamp
