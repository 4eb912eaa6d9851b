"""A store of jobs that is damaged under a running service: 503, and no job that nobody finds again."""

from __future__ import annotations

import os
import shutil
import sqlite3

import pytest

from contam.server.jobs.model import StoreDamagedError
from contam.server.jobs.store import JobStore
from tests.server.jobs.jobbing import submit, submitted
from tests.server.running import serving
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

CHECK = {"kind": "check", "options": {"name": "brook_math"}}
ROW = b'{"id": "a", "question": "Who counts the lamps along the quay at night?"}\n'


def overwritten(path):
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(os.urandom(size))


def its_end_overwritten(path):
    settled(path)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))


def cut_short(path):
    os.truncate(path, 0)


def removed(path):
    path.unlink()


def replaced_by_nothing(path):
    path.unlink()
    path.touch()


def replaced_by_garbage(path):
    path.with_name("other").write_bytes(b"not a database at all " * 1000)
    path.with_name("other").replace(path)


def replaced_by_another_store(path):
    other = JobStore(path.with_name("other.db"))
    other.close()
    path.with_name("other.db").replace(path)


def overwritten_by_an_older_copy(path):
    """As `cp` does it: the same file with other content."""
    other = JobStore(path.with_name("older.db"))
    other.close()
    settled(path)
    shutil.copyfile(path.with_name("older.db"), path)


def without_its_last_changes(path):
    path.with_name("jobs.db-wal").unlink()


def its_last_changes_overwritten(path):
    overwritten(path.with_name("jobs.db-wal"))


def settled(path):
    """Have SQLite move the last changes into the file itself, and begin them anew."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()


DAMAGES = [
    overwritten, its_end_overwritten, cut_short, removed, replaced_by_nothing, replaced_by_garbage,
    replaced_by_another_store, overwritten_by_an_older_copy, without_its_last_changes,
    its_last_changes_overwritten,
]  # fmt: skip


@pytest.mark.parametrize("damage", [overwritten, cut_short, removed, overwritten_by_an_older_copy])
def test_a_damaged_store_is_told_and_takes_no_job(small_index, tmp_path, damage):
    with (
        serving(small_index, data=tmp_path, flags=("--job-workers", "0")) as service,
        service.client() as client,
    ):
        submitted(client, CHECK, items=("x", ROW))
        submitted(client, CHECK, items=("y", ROW))
        assert client.get("/readyz").status_code == 200
        damage(service.data / "jobs.db")
        refused = submit(client, CHECK, items=("z", ROW))
        assert refused.status_code == 503, refused.text
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["code"] in {"store-damaged", "store"}
        wait_until(lambda: client.get("/readyz").status_code == 503)
        assert client.get("/readyz").json()["code"] == "no-jobs"
        assert client.get("/livez").status_code == 200
        for _ in range(3):
            assert submit(client, CHECK, items=("z", ROW)).status_code == 503
        assert client.get("/v1/jobs").status_code == 503


@pytest.mark.parametrize("damage", DAMAGES)
def test_whoever_is_told_of_a_job_finds_it_after_a_restart(tmp_path, damage):
    path = tmp_path / "jobs.db"
    store = JobStore(path, busy_s=0.1)
    told = []
    try:
        for name in "abcdef":
            if name == "d":
                damage(path)
            store.refuse(10)
            told.append(store.add(name, owner="me", kind="check", about={}, most_queued=10).id)
    except StoreDamagedError:
        pass
    assert told == ["a", "b", "c"]
    with pytest.raises(StoreDamagedError):
        store.probe()
    with pytest.raises(StoreDamagedError):
        store.get("a")
    store.close()
