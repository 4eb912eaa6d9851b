"""What counts as a shard, what it is called, and in which order."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.corpus.listing import passed_over
from contam.corpus.shards import file_sha256, leave_out, shard_digest, survey
from contam.errors import CorpusError, ShardError
from tests.corpus_files import find_shards


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b'{"text": "a"}\n')


def names(*paths):
    return [shard.name for shard in find_shards(paths)]


def test_folders_are_searched_deeply_in_natural_order(tmp_path):
    make(tmp_path, "part-10.jsonl", "part-9.jsonl", "b/x.jsonl", "lang=en/2.jsonl.gz", "Z.ndjson")
    assert names(tmp_path) == [
        "Z.ndjson", "b/x.jsonl", "lang=en/2.jsonl.gz", "part-9.jsonl", "part-10.jsonl",
    ]  # fmt: skip


def test_every_known_suffix_is_a_shard(tmp_path):
    make(
        tmp_path,
        "a.parquet",
        "b.pq",
        "c.arrow",
        "d.feather",
        "e.jsonl.zstd",
        "f.json.gz",
        "g.jsonl.XZ",
    )
    assert [shard.format for shard in find_shards([tmp_path])] == [
        "parquet", "parquet", "arrow", "arrow", "jsonl", "jsonl", "jsonl",
    ]  # fmt: skip


def test_what_lies_beside_a_corpus_is_left_out_with_reasons(tmp_path):
    make(tmp_path, "a.jsonl", "README.md", "_SUCCESS", ".a.jsonl.crc", "b.parquet.lock")
    make(tmp_path, ".cache/c.jsonl", "_temporary/d.jsonl")
    (tmp_path / "manifest.json").write_text(json.dumps({"shards": 1}, indent=1))
    (tmp_path / "state.json").write_text(json.dumps({"shards": 1}))
    (tmp_path / "items.json").write_text("[1, 2]")
    shards, skipped = survey([tmp_path])
    assert [shard.name for shard in shards] == ["a.jsonl"]
    assert {entry.path.name: entry.reason for entry in skipped} == {
        "README.md": "a text about the folder",
        "_SUCCESS": "starts with _",
        ".a.jsonl.crc": "hidden",
        "b.parquet.lock": "lock file",
        "manifest.json": "a JSON document over several lines",
        "state.json": "a single JSON object",
        "items.json": "a JSON array, not one object a line",
        ".cache": "its name begins with a dot",
        "_temporary": "its name begins with _",
    }
    assert passed_over(skipped) == (".cache", "_temporary")
    assert not survey([tmp_path, tmp_path / ".cache", tmp_path / "_temporary/d.jsonl"])[1][0].folder


def test_partitions_are_read_and_folders_of_tools_are_named_where_they_hold_shards(tmp_path):
    make(tmp_path, "_year=2023/_lang=en/a.jsonl", "b.jsonl", "x/_split/c.jsonl", ".git/d.md")
    make(tmp_path, ".git/config.json", "_logs/e.txt", ".tmp/f/g.parquet.part")
    (tmp_path / ".git/config.json").write_text("{\n}")
    shards, skipped = survey([tmp_path])
    assert [shard.name for shard in shards] == ["_year=2023/_lang=en/a.jsonl", "b.jsonl"]
    assert passed_over(skipped) == (".tmp", "x/_split")
    everything = survey([tmp_path, tmp_path / "x/_split", f"{tmp_path}/.tmp/*/*"])
    assert passed_over(everything[1]) == ()


def test_shards_without_a_suffix_are_told_by_their_first_bytes(tmp_path):
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "blob")
    (tmp_path / "notes").write_text("words")
    assert [(s.name, s.format) for s in find_shards([tmp_path])] == [("blob", "parquet")]
    (tmp_path / "lines").write_text('{"text": "a"}\n')
    assert find_shards([tmp_path / "lines"])[0].format == "jsonl"


def test_colliding_names_get_their_argument_in_front(tmp_path):
    make(tmp_path, "x/data/a.jsonl", "y/data/a.jsonl", "z/a.jsonl", "z/b.jsonl")
    assert names(tmp_path / "x/data", tmp_path / "z") == ["b.jsonl", "data/a.jsonl", "z/a.jsonl"]
    both = names(tmp_path / "x/data", tmp_path / "y/data")
    assert len(set(both)) == 2
    assert all(name.endswith("data/a.jsonl") for name in both)


@pytest.mark.parametrize(
    "folders",
    [
        ["corpus", "more/corpus"],
        ["a/data", "b/data", "other"],
        ["a/x/data", "b/x/data", "c/y/data"],
        ["data", "data/data", "data/data/data"],
    ],
)
def test_shards_of_one_name_are_called_alike_wherever_the_corpus_is(tmp_path, folders):
    told = []
    for home in (tmp_path / "here", tmp_path / "there" / "below"):
        make(home, *(f"{folder}/part.jsonl" for folder in folders))
        files = [home / folder / "part.jsonl" for folder in folders]
        shards, _ = survey(files)
        assert sorted(shard.uri for shard in shards) == sorted(map(str, files))
        assert all(shard.uri.endswith(f"/{shard.name}") for shard in shards)
        told.append([shard.name for shard in shards])
        assert len(set(told[-1])) == len(files)
        assert not any(str(tmp_path) in name for name in told[-1])
    assert told[0] == told[1]


def test_a_file_reached_twice_is_listed_once(tmp_path):
    make(tmp_path, "x/a.jsonl")
    assert names(tmp_path, tmp_path / "x", tmp_path / "x/a.jsonl", f"{tmp_path}/*/*") == [
        "x/a.jsonl"
    ]


def test_one_file_under_several_names_is_read_once_by_the_name_that_tells_its_format(tmp_path):
    (tmp_path / "hub/blobs").mkdir(parents=True)
    (tmp_path / "hub/snapshots/1a").mkdir(parents=True)
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "hub/blobs/0f")
    (tmp_path / "hub/snapshots/1a/a.parquet").symlink_to("../../blobs/0f")
    (tmp_path / "hub/snapshots/2b").symlink_to("1a")
    (tmp_path / "hub/twin.parquet").hardlink_to(tmp_path / "hub/blobs/0f")
    expected = ["snapshots/1a/a.parquet"]
    shards, skipped = survey([tmp_path / "hub"])
    assert [shard.name for shard in shards] == expected
    assert {one.path.name: one.reason for one in skipped} == {
        "0f": "the same file as snapshots/1a/a.parquet",
        "twin.parquet": "the same file as snapshots/1a/a.parquet",
    }
    assert (
        names(tmp_path / "hub", tmp_path / "hub/snapshots/2b", tmp_path / "hub/blobs") == expected
    )


def test_a_file_of_two_names_is_excluded_only_by_both(tmp_path):
    make(tmp_path, "blobs/0f.jsonl")
    for commit in ("1a", "2b"):
        (tmp_path / "snapshots" / commit).mkdir(parents=True)
        (tmp_path / f"snapshots/{commit}/a.jsonl").symlink_to(tmp_path / "blobs/0f.jsonl")
    shards = find_shards([tmp_path / "snapshots"])
    for patterns in (["1a"], ["2b"]):
        left, gone = leave_out(shards, patterns)
        assert (left, gone) == (shards, ())
    with pytest.raises(CorpusError, match="every shard"):
        leave_out(shards, ["1a", "2b"])


def test_links_keep_their_own_name_and_loops_end(tmp_path):
    make(tmp_path, "blobs/1234")
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot/a.jsonl").symlink_to("../blobs/1234")
    (tmp_path / "snapshot/again").symlink_to(tmp_path / "snapshot")
    (tmp_path / "snapshot/gone.jsonl").symlink_to("nowhere")
    shards = find_shards([tmp_path / "snapshot"])
    assert [shard.name for shard in shards] == ["a.jsonl", "gone.jsonl"]
    assert shards[0].uri == str(tmp_path / "snapshot/a.jsonl")


def test_a_folder_without_shards_lists_what_was_seen(tmp_path):
    with pytest.raises(CorpusError, match="no files seen"):
        find_shards([tmp_path])
    make(tmp_path, "README.log", "model.pt")
    with pytest.raises(
        CorpusError, match=r"files seen: README.log \(unsupported format\), model.pt"
    ):
        find_shards([tmp_path])
    with pytest.raises(CorpusError, match="no path given"):
        find_shards([])


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_closed_folder_is_an_error(tmp_path):
    make(tmp_path, "x/a.jsonl")
    (tmp_path / "x").chmod(0)
    with pytest.raises(CorpusError, match="cannot be listed"):
        find_shards([tmp_path])


def test_digests_notice_a_rewritten_or_cut_shard(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["one", "two"]}), path)
    shard = find_shards([path])[0]
    first = shard_digest(shard), file_sha256(shard)
    assert (shard_digest(shard), file_sha256(shard)) == first
    pq.write_table(pa.table({"text": ["one", "too many"]}), path)
    for digest in (shard_digest, file_sha256):
        with pytest.raises(ShardError, match=r"^a\.parquet: .* after it was listed"):
            digest(shard)
    other = find_shards([path])[0]
    second = shard_digest(other), file_sha256(other)
    assert not set(first) & set(second)
    path.write_bytes(path.read_bytes()[:-1])
    cut = shard_digest(find_shards([path])[0])
    path.write_bytes(b"")
    assert len({first[0], second[0], cut, shard_digest(find_shards([path])[0])}) == 4
    path.unlink()
    for digest in (shard_digest, file_sha256):
        with pytest.raises(ShardError, match=r"a\.parquet"):
            digest(other)


def test_a_folder_of_texts_that_is_named_is_read_whatever_other_folders_hold(tmp_path):
    make(tmp_path, "data/a.jsonl", "data/about.txt", "texts/b.txt", "texts/c.txt")
    assert names(tmp_path / "data") == ["a.jsonl"]
    assert names(tmp_path) == ["data/a.jsonl"]
    for both in (["data", "texts"], ["texts", "data"]):
        assert names(*(tmp_path / one for one in both)) == ["a.jsonl", "b.txt", "c.txt"]
    everything = ["data/a.jsonl", "texts/b.txt", "texts/c.txt"]
    assert names(tmp_path, tmp_path / "texts") == everything
    assert names(tmp_path / "texts/b.txt", tmp_path / "texts") == ["b.txt", "c.txt"]
