"""Groups of an index go from the folder of whoever made them to the folder of parts, piece by piece."""

from __future__ import annotations

import fcntl
import os
import tempfile

import pytest

from contam.detect.leases import index_job
from contam.detect.leases.index_job import GroupWorker, IndexJob
from contam.errors import OutputError
from contam.index import cut
from contam.index.build import build
from contam.index.shared_build import (
    GROUP_FILE,
    build_groups,
    claim_groups,
    group_folder,
    merge_groups,
    plan_index,
)
from tests.index.test_shared_build import content
from tests.property.worlds import write_shard

N_SHARDS = 3


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Shards that are a group each, and a folder for temporary files."""
    monkeypatch.setattr(cut, "LEAST_BYTES", 1)
    monkeypatch.setattr(index_job, "_PIECE_BYTES", 1000)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    for number in range(N_SHARDS):
        texts = [f"lantern {number * 9 + n} of the old harbour burns green" for n in range(7)]
        write_shard(tmp_path / "corpus" / f"part-{number}.parquet", texts)
    return tmp_path


def test_what_a_worker_made_is_fetched_whole(home):
    whole = build(home / "corpus", home / "one", workers=1)
    plan = plan_index([home / "corpus"], home / "plan")
    job = IndexJob(plan, home / "parts")
    (home / "node").mkdir()
    for name, data in job.files().items():
        (home / "node" / name).write_bytes(data)
    worker = GroupWorker(home / "node", 1)
    for group in plan.groups:
        outcome = worker.do(group.number)
        assert any(size > index_job._PIECE_BYTES for _, size in outcome.files)
        assert len(list(worker._home.iterdir())) == 1
        job.finish(group.number, outcome, worker.piece)
    assert job.failures == ()
    assert merge_groups(plan, [home / "parts"], home / "all") == whole
    assert content(home / "all") == content(home / "one")


def test_a_group_that_broke_off_while_it_was_fetched_is_not_there(home):
    plan = plan_index([home / "corpus"], home / "plan")
    build_groups(plan, plan.groups, home / "parts", workers=1)
    worker = GroupWorker(home / "plan", 1)
    outcome = worker.do(2)

    def lost(name, begin):
        if name == GROUP_FILE:
            raise ConnectionError
        return worker.piece(name, begin)

    with pytest.raises(OutputError):
        IndexJob(plan, home / "parts").finish(2, outcome, lost)
    _, waiting = claim_groups(plan, plan.groups, home / "parts")
    assert [group.number for group in waiting] == [2]


def test_a_group_nobody_could_do_has_its_shards_not_read_by_name(home):
    plan = plan_index([home / "corpus"], home / "plan")
    build_groups(plan, plan.groups[:2], home / "parts", workers=1)
    job = IndexJob(plan, home / "parts")
    job.give_up(3, "group 3 was lost 3 times")
    assert [shard.failure for shard in job.failures] == ["part-2.parquet: group 3 was lost 3 times"]
    manifest = merge_groups(plan, [home / "parts"], home / "all")
    assert [bool(shard.failure) for shard in manifest.shards] == [False, False, True]
    done = build_groups(plan, plan.groups, home / "parts", workers=1)
    assert (done.done, done.kept) == ((3,), (1, 2))
    assert group_folder(home / "parts", 3).exists()


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(home):
    plan_index([home / "corpus"], home / "plan")
    dead, living = (home / "tmp" / f"{index_job._PREFIX}{name}" for name in ("dead", "living"))
    for folder in (dead, living):
        (folder / "group-00001").mkdir(parents=True)
    lock = os.open(living, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    own = GroupWorker(home / "plan", 1)._home
    os.close(lock)
    assert sorted((home / "tmp").iterdir()) == sorted([living, own])
