"""What the job store promises: nothing accepted is lost, and nothing runs twice."""

import sqlite3
import threading

import pytest

from contam.errors import ConfigError
from contam.server.jobs.store import JobStore, StoreError
from contam.server.problems import RequestError


@pytest.fixture
def store(tmp_path):
    opened = JobStore(tmp_path / "jobs.db")
    yield opened
    opened.close()


def add(store, name="a", most_queued=10, idempotency=None):
    return store.add(
        id=name, owner="me", kind="check", about={"index": []}, idempotency=idempotency,
        fingerprint="f", most_queued=most_queued,
    )  # fmt: skip


def test_what_was_accepted_is_there_after_a_crash(store, tmp_path):
    add(store)
    # Another connection sees what is committed; nothing was closed.
    other = JobStore(tmp_path / "jobs.db")
    assert other.get("a").state == "queued"
    other.close()


def test_jobs_are_taken_in_order_and_each_by_one_thread(store):
    names = [f"{n:02}" for n in range(40)]
    for name in names:
        add(store, name, most_queued=40)
    taken = []

    def take():
        while (job := store.claim()) is not None:
            taken.append(job)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(job.id for job in taken) == names
    assert {job.attempts for job in taken} == {1}
    assert [job.id for job in store.listed("me")] == names[::-1]
    assert len(store.listed(None)) == 40
    assert store.listed("you") == []


def test_a_full_queue_takes_no_job_until_one_has_left_it(store):
    add(store, "a", most_queued=2)
    add(store, "b", most_queued=2)
    with pytest.raises(RequestError) as refused:
        add(store, "c", most_queued=2)
    assert (refused.value.status, refused.value.code) == (503, "queue-full")
    store.finish("a", "cancelled")
    assert add(store, "c", most_queued=2).state == "queued"


def test_the_first_end_of_a_job_is_its_end(store):
    add(store)
    store.claim()
    assert store.finish("a", "cancelled").state == "cancelled"
    assert store.finish("a", "done") is None
    store.give_back("a", counted=False)
    assert (store.get("a").state, store.get("a").attempts) == ("cancelled", 1)


def test_a_full_disk_refuses_a_job_and_keeps_the_others(store):
    add(store)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError):
        add(store, "x" * 100_000)
    assert store.states() == {"queued": 1}
    store._db.execute("PRAGMA max_page_count = 100000")
    assert add(store, "b").state == "queued"


def of_another_version(path):
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 1")
    other.close()


@pytest.mark.parametrize(
    "harm", [of_another_version, lambda path: path.write_bytes(b"something else entirely " * 500)]
)
def test_a_file_that_is_no_store_of_ours_is_refused_and_left_as_it_is(tmp_path, harm):
    path = tmp_path / "jobs.db"
    JobStore(path).close()
    harm(path)
    before = path.read_bytes()
    with pytest.raises(ConfigError):
        JobStore(path)
    assert path.read_bytes() == before
