"""What the job store promises: nothing accepted is lost, nothing runs twice, nothing ends early."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time

import pytest

from contam.server.jobs.model import (
    KeyInUseError,
    KeyReusedError,
    QueueFullError,
    StoreBusyError,
    StoreDamagedError,
    StoreFullError,
)
from contam.server.jobs.store import JobStore

RETENTION_S = 3600.0


class SetClock:
    """A clock that a test sets."""

    def __init__(self):
        self.running_s = 50.0

    def __call__(self):
        return self.running_s


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def store(tmp_path, clock):
    opened = JobStore(tmp_path / "jobs.db", clock=clock, busy_s=0.1)
    yield opened
    opened.close()


def reopened(store, tmp_path, clock):
    store.close()
    return JobStore(tmp_path / "jobs.db", clock=clock, busy_s=0.1)


def add(store, name="a", **changes):
    given = {"owner": "me", "kind": "check", "about": {"index": []}, "most_queued": 10, **changes}
    return store.add(name, **given)


def test_what_was_accepted_is_there_after_a_crash(store, tmp_path, clock):
    add(store)
    # Another connection sees what is committed; nothing was closed.
    other = JobStore(tmp_path / "jobs.db", clock=clock)
    assert other.get("a").state == "queued"
    other.close()


def test_what_ran_when_the_service_was_killed_is_queued_again_and_counts(store, tmp_path, clock):
    add(store)
    for attempt in (1, 2, 3):
        assert store.claim("check").attempts == attempt
        store = reopened(store, tmp_path, clock)
        left = store.recover(3)
        assert [job.id for job in left] == (["a"] if attempt == 3 else [])
    assert (store.get("a").state, store.get("a").attempts) == ("running", 3)
    store.close()


def test_jobs_are_taken_in_order_and_each_by_one_thread(store):
    names = [f"{n:02}" for n in range(40)]
    for name in names:
        add(store, name, most_queued=40)
    taken, lock = [], threading.Lock()

    def take():
        while True:
            try:
                job = store.claim("check")
            except StoreBusyError:
                # On a busy machine another thread's turn may outlast the wait for it.
                continue
            if job is None:
                return
            with lock:
                taken.append(job.id)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == names
    assert [job.id for job in store.listed("me", before=None, limit=99)] == names[::-1]


def test_a_full_queue_takes_no_job(store):
    for name in "abc":
        add(store, name, most_queued=3)
    with pytest.raises(QueueFullError):
        add(store, "d", most_queued=3)
    store.claim("check")
    assert add(store, "d", most_queued=3).state == "queued"


def test_one_idempotency_key_makes_one_job(store, tmp_path, clock):
    assert store.reserve("key") is None
    with pytest.raises(KeyInUseError):
        store.reserve("key")
    add(store, idempotency=("key", "print"))
    assert store.reserve("key").id == "a"
    store.check_same("key", "print")
    with pytest.raises(KeyReusedError):
        store.check_same("key", "another")
    assert store.reserve("left behind") is None
    store = reopened(store, tmp_path, clock)
    assert store.reserve("left behind") is None
    assert store.reserve("key").id == "a"
    store.close()


def test_the_first_end_of_a_job_is_its_end(store):
    add(store)
    store.claim("check")
    store.finish("a", "cancelled", retention_s=RETENTION_S)
    assert store.finish("a", "done", retention_s=RETENTION_S).state == "cancelled"
    store.give_back("a", counted=False)
    assert store.get("a").state == "cancelled"


def test_a_locked_store_says_so_and_takes_jobs_afterwards(store, tmp_path):
    add(store)
    other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError):
        add(store, "b")
    with pytest.raises(StoreBusyError):
        store.probe()
    assert store.get("a").state == "queued"
    other.execute("ROLLBACK")
    other.close()
    store.probe()
    assert add(store, "b").state == "queued"


def test_a_full_disk_refuses_a_job_and_keeps_the_others(store):
    add(store)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFullError):
        add(store, "b", about={"index": ["x" * 100_000]})
    assert store.get("b") is None
    assert store.get("a").state == "queued"
    store._db.execute("PRAGMA max_page_count = 100000")
    assert add(store, "b").state == "queued"


@pytest.mark.parametrize("harm", ["header", "page", "other file"])
def test_a_damaged_store_is_refused_and_left_as_it_is(tmp_path, clock, harm):
    path = tmp_path / "jobs.db"
    store = JobStore(path, clock=clock)
    for n in range(200):
        add(store, f"job-{n}", most_queued=500)
    store.close()
    data = bytearray(path.read_bytes())
    if harm == "header":
        data[:16] = b"not a database!!"
    elif harm == "page":
        data[4096:-4096] = b"\x55" * (len(data) - 8192)
    else:
        data = bytearray(b"something else entirely " * 500)
    path.write_bytes(data)
    with pytest.raises(StoreDamagedError):
        JobStore(path, clock=clock)
    assert path.read_bytes() == data


def test_a_store_without_the_reading_of_its_clock_is_damaged(tmp_path, clock):
    path = tmp_path / "jobs.db"
    JobStore(path, clock=clock).close()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("DELETE FROM clock")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError):
        JobStore(path, clock=clock)
    assert path.read_bytes() == before


def finished(store, name="a"):
    add(store, name)
    store.claim("check")
    return store.finish(name, "done", retention_s=RETENTION_S)


@pytest.mark.parametrize("jump_s", [-1e9, -3601.0, 3601.0, 1e9])
def test_a_jump_of_the_clock_deletes_nothing_early_and_keeps_nothing_longer(
    store, clock, jump_s, monkeypatch
):
    finished(store)
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s + jump_s)
    clock.running_s += RETENTION_S - 1
    assert store.outlived() == []
    assert store.seconds_left(store.get("a")) == pytest.approx(1.0)
    clock.running_s += 1
    assert [job.id for job in store.outlived()] == ["a"]


@pytest.mark.parametrize("at_s", [5.0, 50.0 + RETENTION_S / 2, 9e9])
def test_time_stands_while_the_service_is_down_and_goes_on_with_it(store, tmp_path, clock, at_s):
    finished(store)
    clock.running_s += RETENTION_S / 2
    assert store.outlived() == []
    store.close()
    # Nobody knows for how long it was down, nor whether the machine was started anew.
    clock.running_s = at_s
    store = JobStore(tmp_path / "jobs.db", clock=clock, busy_s=0.1)
    assert store.outlived() == []
    assert store.seconds_left(store.get("a")) == pytest.approx(RETENTION_S / 2)
    clock.running_s += RETENTION_S / 2
    assert [job.id for job in store.outlived()] == ["a"]
    store.close()


def test_a_job_that_has_not_ended_is_never_forgotten(store, clock):
    add(store)
    clock.running_s += 100 * RETENTION_S
    assert store.outlived() == []
    store.forget(["a"])
    assert store.get("a") is not None


def test_a_forgotten_job_frees_its_idempotency_key(store):
    store.reserve("key")
    add(store, idempotency=("key", "print"))
    store.claim("check")
    store.finish("a", "done", retention_s=RETENTION_S)
    store.forget(["a"])
    assert store.reserve("key") is None
