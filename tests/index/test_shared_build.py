"""Groups of shards indexed anywhere, by anybody and more than once, merge to the bytes of one build."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import pytest

from contam.corpus.shards import Shard
from contam.errors import OutputError, UsageError
from contam.index import cut
from contam.index.build import build
from contam.index.change import add
from contam.index.cut import cut_groups
from contam.index.shared_build import (
    GROUP_FILE,
    PLAN_FILE,
    build_groups,
    group_folder,
    open_index_plan,
    plan_index,
)
from contam.index.shared_merge import merge_groups
from contam.index.verify import verify
from contam.index.writing.intake import new_record
from tests.property.worlds import write_shard

N_SHARDS = 5


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    """Groups of a shard each."""
    monkeypatch.setattr(cut, "LEAST_BYTES", 1)


@pytest.fixture
def home(tmp_path):
    for number in range(N_SHARDS):
        texts = [
            f"the {number * 10 + n}th lantern of the old harbour burns green" for n in range(7)
        ]
        write_shard(tmp_path / "corpus" / f"part-{number}.parquet", texts)
    return tmp_path


def content(folder):
    """Every file of an index but its lock, and the states of files on this machine."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def planned(home, **more):
    plan_index([home / "corpus"], home / "plan", **more)
    return open_index_plan(home / "plan")


def all_built(home, plan, name="parts"):
    return build_groups(plan, plan.groups, home / name, workers=1)


@pytest.mark.parametrize("recipe", ["standard", "compact", "chars"])
def test_any_workers_make_the_index_of_one_build(home, recipe):
    whole = build(home / "corpus", home / "one", recipe, workers=2)
    plan = planned(home, recipe=recipe)
    assert len(plan.groups) == N_SHARDS
    build_groups(plan, plan.groups[1::2], home / "a", workers=2)
    build_groups(plan, plan.groups[::2], home / "b", workers=1)
    build_groups(plan, plan.groups[:2], home / "c", workers=1)
    assert merge_groups(plan, [home / "c", home / "b", home / "a"], home / "all") == whole
    assert content(home / "all") == content(home / "one")
    assert verify(home / "all").ok
    for parts in "abc":
        shutil.rmtree(home / parts)
    assert verify(home / "all").ok


def test_a_build_of_one_group_is_as_it_was(home, monkeypatch):
    monkeypatch.setattr(cut, "LEAST_BYTES", 1 << 40)
    manifest = build(home / "corpus", home / "one")
    assert len(manifest.segments) == 1
    plan = planned(home)
    all_built(home, plan)
    assert merge_groups(plan, [home / "parts"], home / "all") == manifest
    assert content(home / "all") == content(home / "one")


def test_what_was_indexed_is_kept(home):
    plan = planned(home)
    first = all_built(home, plan)
    before = content(home / "parts")
    times = {path: path.stat().st_mtime_ns for path in (home / "parts").rglob("*.parquet")}
    again = all_built(home, plan)
    assert (again.done, again.kept) == ((), first.done)
    assert content(home / "parts") == before
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_a_killed_group_is_indexed_again(home):
    """What a kill leaves: segments without a record, or with files cut short."""
    plan = planned(home)
    all_built(home, plan)
    folder = group_folder(home / "parts", 2)
    whole = content(folder)
    (folder / GROUP_FILE).unlink()
    for path in folder.rglob("*.parquet"):
        path.write_bytes(b"")
    (folder / "segments" / "stray").mkdir()
    assert all_built(home, plan).done == (2,)
    assert content(folder) == whole


def test_a_missing_group_is_named_and_nothing_is_published(home):
    plan = planned(home)
    build_groups(plan, plan.groups[:-1], home / "parts")
    with pytest.raises(OutputError, match="group 5 of 5"):
        merge_groups(plan, [home / "parts"], home / "all")
    assert not (home / "all").exists()


@pytest.mark.parametrize("spoil", ["cut", "changed", "empty", "list"])
def test_a_damaged_record_is_refused(home, spoil):
    plan = planned(home)
    all_built(home, plan)
    path = group_folder(home / "parts", 1) / GROUP_FILE
    data = path.read_bytes()
    changed = data.replace(b'"number":1', b'"number":2')
    assert changed != data
    path.write_bytes({"cut": data[:-9], "changed": changed, "empty": b"", "list": b"[]"}[spoil])
    with pytest.raises(OutputError, match=r"group\.json"):
        merge_groups(plan, [home / "parts"], home / "all")
    assert not (home / "all").exists()


@pytest.mark.parametrize("spoil", ["cut", "gone"])
def test_a_damaged_segment_is_refused(home, spoil):
    plan = planned(home)
    all_built(home, plan)
    path = next(group_folder(home / "parts", 3).rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-1]) if spoil == "cut" else path.unlink()
    with pytest.raises(OutputError, match="group-00003"):
        merge_groups(plan, [home / "parts"], home / "all")
    with pytest.raises(UsageError):
        verify(home / "all")


@pytest.mark.parametrize("name", ["documents.parquet", "postings.crc"])
def test_an_altered_segment_is_refused_before_an_index_is_replaced(home, name):
    plan = planned(home)
    all_built(home, plan)
    merge_groups(plan, [home / "parts"], home / "all")
    before = content(home / "all")
    shutil.copytree(home / "parts", home / "copied")
    path = next(group_folder(home / "copied", 3).rglob(name))
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(OutputError, match=f"group-00003.*{name}"):
        merge_groups(plan, [home / "copied"], home / "all", overwrite=True)
    assert content(home / "all") == before


def test_neither_groups_nor_an_index_go_into_the_corpus(home):
    plan = planned(home)
    with pytest.raises(UsageError, match="inside the corpus"):
        all_built(home, plan, "corpus/parts")
    all_built(home, plan)
    with pytest.raises(UsageError, match="inside the corpus"):
        merge_groups(plan, [home / "parts"], home / "corpus" / "all")
    assert {path.suffix for path in (home / "corpus").iterdir()} == {".parquet"}


def test_a_folder_without_a_group_is_named(home):
    plan = planned(home)
    with pytest.raises(OutputError, match=f"group 1 of 5 .* not in {home / 'wrong'}"):
        merge_groups(plan, [home / "wrong"], home / "all")


def test_groups_of_another_plan_are_refused(home):
    all_built(home, planned(home))
    plan_index([home / "corpus"], home / "plan", "compact", overwrite=True)
    other = open_index_plan(home / "plan")
    with pytest.raises(OutputError, match="another plan"):
        merge_groups(other, [home / "parts"], home / "all")
    with pytest.raises(OutputError, match="another plan"):
        all_built(home, other)


def test_different_answers_to_one_group_are_refused(home):
    plan = planned(home)
    all_built(home, plan)
    kept = home / "corpus" / "part-1.parquet"
    kept.rename(home / "aside")
    assert [shard.name for shard in all_built(home, plan, "more").failures] == ["part-1.parquet"]
    (home / "aside").rename(kept)
    with pytest.raises(OutputError, match="differ"):
        merge_groups(plan, [home / "parts", home / "more"], home / "all")


@pytest.mark.parametrize("change", ["gone", "rewritten", "damaged"])
def test_a_shard_that_cannot_be_read_is_a_failure_of_the_index(home, change):
    plan = planned(home)
    path = home / "corpus" / "part-1.parquet"
    whole = path.read_bytes()
    if change == "gone":
        path.unlink()
    elif change == "rewritten":
        write_shard(path, ["a text of another day"] * 7)
    else:
        path.write_bytes(whole[:50] + bytes(9) + whole[59:])
    built = all_built(home, plan)
    assert [shard.name for shard in built.failures] == ["part-1.parquet"]
    manifest = merge_groups(plan, [home / "parts"], home / "all")
    assert [shard.name for shard in manifest.shards if shard.failure] == ["part-1.parquet"]
    path.write_bytes(whole)
    again = all_built(home, plan)
    assert (again.done, again.failures) == ((2,), ())
    merged = merge_groups(plan, [home / "parts"], home / "all", overwrite=True)
    assert not any(shard.failure for shard in merged.shards)
    assert content(home / "all").keys() == content_of_build(home).keys()


def content_of_build(home):
    build(home / "corpus", home / "one")
    return content(home / "one")


def test_a_finished_index_is_replaced_only_when_asked(home):
    plan = planned(home)
    all_built(home, plan)
    merge_groups(plan, [home / "parts"], home / "all")
    before = content(home / "all")
    with pytest.raises(OutputError, match="finished index"):
        merge_groups(plan, [home / "parts"], home / "all")
    merge_groups(plan, [home / "parts"], home / "all", overwrite=True)
    assert content(home / "all") == before


def test_shards_can_be_added_to_a_merged_index(home):
    plan = planned(home)
    all_built(home, plan)
    merge_groups(plan, [home / "parts"], home / "all")
    write_shard(home / "late" / "late.parquet", ["a text that came later than all the others did"])
    add(home / "all", [home / "late"])
    assert verify(home / "all").ok


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "contam-index-plan-0"}'])
def test_what_is_no_plan_is_refused(home, text):
    planned(home)
    (home / "plan" / PLAN_FILE).write_text(text)
    with pytest.raises(OutputError, match="index-plan"):
        open_index_plan(home / "plan")


def test_a_plan_of_another_version_is_refused(home):
    planned(home)
    path = home / "plan" / PLAN_FILE
    record = json.loads(path.read_text())
    record["body"]["version"] = "0.0.1"
    path.write_text(json.dumps(record))
    with pytest.raises(OutputError):
        open_index_plan(home / "plan")


def test_groups_are_whole_shards_by_size_alone(monkeypatch):
    monkeypatch.setattr(cut, "LEAST_BYTES", 10)
    shards = [
        replace(new_record(Shard(os.devnull, f"{n}", "parquet", 0), None), size_bytes=size)
        for n, size in enumerate([4, 4, 4, 30, 1, 9, 1])
    ]
    found = [(group.number, group.first, group.end) for group in cut_groups(shards)]
    assert found == [(1, 0, 2), (2, 2, 3), (3, 3, 4), (4, 4, 6), (5, 6, 7)]
    assert cut_groups([]) == ()
