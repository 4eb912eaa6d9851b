"""A long job keeps nobody waiting for more than a slice, and is done all the same."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from contam.server.jobs.lanes import Lane
from contam.server.jobs.store import JobStore
from tests.server.jobbing import processes
from tests.server.test_job_time import added, ended, jobs_at_work
from tests.waiting import wait_until

__all__ = ["added"]

SOON, NEVER = 0.05, 1e6


@pytest.fixture
def store(tmp_path):
    opened = JobStore(tmp_path / "jobs.db", busy_s=0.1)
    yield opened
    opened.close()


def put(store, *names):
    for name in names:
        store.add(name, owner="me", kind="check", about={}, most_queued=99)


def test_as_many_begin_as_there_are_workers_and_as_many_long_ones_go_on(store):
    lane = Lane("check", 2)
    put(store, *"abcdef")
    assert [lane.claim(store).id for _ in range(2)] == ["a", "b"]
    assert lane.claim(store) is None
    assert lane.outlasts("a")
    assert lane.outlasts("b")
    assert [lane.claim(store).id for _ in range(2)] == ["c", "d"]
    assert lane.claim(store) is None
    lane.leave("a")
    # Room among the long ones is not for jobs that were never begun.
    assert lane.claim(store) is None
    assert lane.outlasts("c")
    assert lane.claim(store).id == "e"


def test_a_second_long_job_is_put_back_and_begun_when_the_first_has_ended(store):
    lane = Lane("check", 1)
    put(store, *"abcd")
    assert lane.claim(store).id == "a"
    assert lane.outlasts("a")
    assert lane.claim(store).id == "b"
    assert not lane.outlasts("b")
    store.give_back("b", counted=False)
    lane.leave("b")
    assert lane.claim(store).id == "c"
    store.finish("c", "done", retention_s=1)
    lane.leave("c")
    store.finish("a", "done", retention_s=1)
    lane.leave("a")
    assert [lane.claim(store).id for _ in range(2)] == ["d", "b"]
    assert lane.is_long("b")
    assert not lane.is_long("d")
    assert store.get("b").attempts == 1


def test_a_job_that_was_put_back_and_cancelled_takes_no_room(store):
    lane = Lane("check", 1)
    put(store, *"abc")
    for name in "ab":
        assert lane.claim(store).id == name
        assert lane.outlasts(name) == (name == "a")
    store.give_back("b", counted=False)
    lane.leave("b")
    store.finish("b", "cancelled", retention_s=1)
    lane.leave("a")
    assert lane.claim(store).id == "c"
    assert lane.claim(store) is None


def test_a_job_that_ended_as_its_slice_did_takes_no_room(store):
    lane = Lane("check", 1)
    put(store, *"ab")
    assert lane.claim(store).id == "a"
    lane.leave("a")
    assert lane.outlasts("a")
    assert lane.claim(store).id == "b"
    assert lane.outlasts("b")


def test_jobs_behind_long_ones_are_done_while_those_still_run(small_index, added, tmp_path):
    def process_of(before):
        wait_until(lambda: set(processes(os.getpid())) - before)
        return next(iter(set(processes(os.getpid())) - before))

    before = set(processes(os.getpid()))
    with jobs_at_work(tmp_path, small_index, job_slice_s=SOON) as jobs:
        worker = jobs._worker
        held = added(jobs, "held")
        worker.wake()
        pid = process_of(before)
        # It would take hours, for all that anybody knows.
        os.kill(pid, signal.SIGSTOP)
        second = added(jobs, "second")
        worker.wake()
        # Long, too, and the room for long ones is taken: it is put back.
        wait_until(lambda: worker._threads and "second" in lane_of(worker)._put_back)
        worker._hooks = replace(worker._hooks, slice_s=NEVER)
        short = [added(jobs, name) for name in ("short", "other")]
        worker.wake()
        for job in short:
            assert ended(jobs, job).state == "done"
        assert jobs.get(held.id, None).state == "running"
        wait_until(lambda: jobs.get(second.id, None).state == "queued")
        os.kill(pid, signal.SIGCONT)
        for job in (held, second):
            found = ended(jobs, job)
            assert (found.state, found.attempts) == ("done", 1)
        began, last = jobs.get(second.id, None).started, jobs.get(short[1].id, None).finished
        assert began > last
        assert time.time() > began


def lane_of(worker):
    """The lane of the checks, which the threads of this name share."""
    thread = next(one for one in worker._threads if one.name == "jobs-check")
    return thread._args[0]
