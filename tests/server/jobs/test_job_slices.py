"""Jobs take turns: each waits at most one slice for each other job, and all are done."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.server.jobs.model import StoreBusyError
from contam.server.jobs.store import JobStore
from contam.server.jobs.work.allowance import Allowance
from contam.server.jobs.work.queues import JobQueue
from tests.server.jobs.jobbing import alive, processes
from tests.server.jobs.test_job_time import added, ended, jobs_at_work
from tests.server.running import serving
from tests.waiting import wait_until

__all__ = ["added"]

SOON = 0.05
WAITING = "waiting for its turn"


class Paper:
    """A process on paper."""

    def __init__(self):
        self.works = True

    def pause(self):
        assert self.works
        self.works = False

    def go_on(self):
        assert not self.works
        self.works = True


@pytest.fixture
def store(tmp_path):
    opened = JobStore(tmp_path / "jobs.db", busy_s=0.1)
    yield opened
    opened.close()


def put(store, *names):
    for name in names:
        store.add(name, owner="me", kind="check", about={}, most_queued=999)


def claimed(queue, store):
    job = queue.claim(store)
    return None if job is None else job.id


def test_a_job_that_nobody_waits_for_is_never_paused(store):
    queue = JobQueue("check", 1, 4)
    put(store, "a")
    assert claimed(queue, store) == "a"
    process = Paper()
    assert queue.end_slice("a", process, store)
    assert process.works
    put(store, "b")
    assert queue.end_slice("a", process, store)
    assert not process.works


def test_a_paused_job_goes_on_after_those_that_waited_and_before_those_that_came_later(store):
    queue = JobQueue("check", 1, 4)
    put(store, "a", "b")
    process = Paper()
    assert claimed(queue, store) == "a"
    assert queue.end_slice("a", process, store)
    put(store, "c")
    assert claimed(queue, store) == "b"
    queue.leave("b")
    assert claimed(queue, store) is None
    assert process.works
    assert queue.end_slice("a", process, store)
    assert claimed(queue, store) == "c"


def test_as_many_work_at_once_as_there_are_workers(store):
    queue = JobQueue("check", 2, 4)
    put(store, *"abcd")
    a, b = Paper(), Paper()
    assert [claimed(queue, store) for _ in range(3)] == ["a", "b", None]
    assert queue.end_slice("a", a, store)
    assert queue.end_slice("b", b, store)
    assert [claimed(queue, store) for _ in range(3)] == ["c", "d", None]
    assert not a.works
    queue.leave("c")
    assert claimed(queue, store) is None
    assert (a.works, b.works) == (True, False)


def test_a_long_job_without_room_is_put_back_and_begun_when_another_has_ended(store):
    queue = JobQueue("check", 1, 1)
    put(store, *"abc")
    a = Paper()
    assert claimed(queue, store) == "a"
    assert queue.end_slice("a", a, store)
    assert claimed(queue, store) == "b"
    assert not queue.end_slice("b", Paper(), store)
    store.give_back("b", counted=False)
    queue.leave("b")
    # What was never begun is begun; what was put back has no room.
    assert claimed(queue, store) == "c"
    queue.leave("c")
    assert claimed(queue, store) is None
    assert a.works
    # Only the job waits that may not be begun: nobody has to make way for it.
    assert queue.end_slice("a", a, store)
    assert a.works
    queue.leave("a")
    assert claimed(queue, store) == "b"
    put(store, "d")
    # It lost its work once, and never does again.
    assert queue.end_slice("b", Paper(), store)
    assert store.get("b").attempts == 1


def test_a_paused_job_goes_on_though_the_store_cannot_be_asked(store, monkeypatch):
    queue = JobQueue("check", 1, 4)
    put(store, "a", "b")
    a = Paper()
    assert claimed(queue, store) == "a"
    assert queue.end_slice("a", a, store)

    def busy(*_, **__):
        raise StoreBusyError("busy")

    monkeypatch.setattr(store, "claim", busy)
    monkeypatch.setattr(store, "newest", busy)
    with pytest.raises(StoreBusyError):
        queue.claim(store)
    assert a.works
    assert queue.end_slice("a", a, store)
    assert a.works


def test_jobs_that_ended_or_were_cancelled_take_no_room(store):
    queue = JobQueue("check", 1, 1)
    put(store, *"abc")
    a = Paper()
    assert claimed(queue, store) == "a"
    assert queue.end_slice("a", a, store)
    # It is killed while it waits.
    store.finish("a", "cancelled", retention_s=1)
    queue.leave("a")
    assert queue.end_slice("a", a, store)
    assert claimed(queue, store) == "b"
    assert queue.end_slice("b", Paper(), store)
    assert claimed(queue, store) == "c"


def after_turns_are_taken(queue, store, begun, paper):
    """The jobs that work when whoever can has begun or gone on."""
    working = None
    while True:
        job = claimed(queue, store)
        if job is not None:
            begun.add(job)
        found = {name for name in begun if paper[name].works}
        if found == working:
            return found
        working = found


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=9),
    arrivals=st.lists(st.integers(0, 25), min_size=9, max_size=9),
    n_workers=st.integers(1, 3),
)
def test_between_two_slices_of_a_job_no_other_has_more_than_one(
    tmp_path_factory, lengths, arrivals, n_workers
):
    """Every job in slices of work, accepted at a slice; turns change at each slice's end."""
    store = JobStore(tmp_path_factory.mktemp("store") / "jobs.db", busy_s=0.1)
    queue = JobQueue("check", n_workers, len(lengths))
    left = {f"j{at}": length for at, length in enumerate(lengths)}
    comes = sorted(zip(arrivals, left, strict=False))
    paper = {name: Paper() for name in left}
    begun: set[str] = set()
    waited: dict[str, list[str]] = {}
    now = 0
    while left:
        for at, name in comes:
            if at == now:
                put(store, name)
                waited[name] = []
        working = after_turns_are_taken(queue, store, begun, paper)
        assert len(working) == min(n_workers, len(waited))
        for name, slices in waited.items():
            if name in working:
                slices.clear()
            else:
                slices.extend(sorted(working))
            # Jobs before this one, each once: the bound that the guide states.
            assert len(slices) == len(set(slices)), (name, slices)
        for name in sorted(working):
            left[name] -= 1
            if left[name] == 0:
                store.finish(name, "done", retention_s=1)
                queue.leave(name)
                begun.discard(name)
                del left[name], waited[name]
            else:
                assert queue.end_slice(name, paper[name], store)
        now += 1
    store.close()


def test_time_that_a_job_waits_for_its_turn_is_not_counted_as_work():
    over = threading.Event()
    allowance = Allowance(SOON)
    allowance.pause()
    with allowance.spending(over.set):
        # Far longer than the job may work.
        assert not over.wait(10 * SOON)
        allowance.go_on()
        wait_until(over.is_set)
    assert allowance.is_over()


def hold(jobs, job):
    """Have the process of a job wait until somebody writes its request into a pipe."""
    place = jobs._home / job.id / "request.json"
    request = place.read_bytes()
    place.unlink()
    os.mkfifo(place)

    def release():
        place.write_bytes(request)

    return threading.Thread(target=release, daemon=True).start


def is_stopped(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


@pytest.mark.slow
def test_jobs_behind_long_ones_are_done_while_those_wait_for_their_turn(
    small_index, added, tmp_path
):
    with jobs_at_work(tmp_path, small_index, job_slice_s=SOON, job_workers=0) as jobs:
        long = [added(jobs, name) for name in ("first", "second")]
        releases = [hold(jobs, job) for job in long]
    before = set(processes(os.getpid()))
    with jobs_at_work(tmp_path, small_index, job_slice_s=SOON) as jobs:
        short = [added(jobs, name) for name in ("short", "other")]
        jobs._worker.wake()
        for job in short:
            assert ended(jobs, job).state == "done"
        mine = set(processes(os.getpid())) - before
        assert len(mine) == 2
        # Both are begun, and one of them waits, each in its turn.
        for pid in mine:
            wait_until(lambda pid=pid: is_stopped(pid))
        for job in long:
            wait_until(lambda job=job: jobs._worker.progress(job.id).phase == WAITING)
        for release in releases:
            release()
        for job in long:
            found = ended(jobs, job)
            assert (found.state, found.attempts) == ("done", 1)
            assert json.loads((jobs.result(found) / "run.json").read_bytes())["tool"] == "contam"


def test_a_job_that_waits_for_its_turn_can_be_cancelled(small_index, added, tmp_path):
    before = set(processes(os.getpid()))
    with jobs_at_work(tmp_path, small_index, job_slice_s=SOON, job_workers=0) as jobs:
        long = [added(jobs, name) for name in ("first", "second")]
        releases = [hold(jobs, job) for job in long]
    with jobs_at_work(tmp_path, small_index, job_slice_s=SOON) as jobs:
        wait_until(lambda: len(set(processes(os.getpid())) - before) == 2)
        for pid in set(processes(os.getpid())) - before:
            wait_until(lambda pid=pid: is_stopped(pid))
        jobs.cancel(jobs.get(long[0].id, None))
        assert ended(jobs, long[0]).state == "cancelled"
        wait_until(lambda: len(set(processes(os.getpid())) - before) == 1)
        releases[1]()
        assert ended(jobs, long[1]).state == "done"


def test_a_job_that_waits_for_its_turn_ends_with_a_service_that_is_killed(
    small_index, added, tmp_path
):
    with jobs_at_work(tmp_path, small_index, job_workers=0) as jobs:
        for name in ("first", "second"):
            hold(jobs, added(jobs, name))
    environ = {"CONTAM_JOB_SLICE_S": str(SOON)}
    with serving(small_index, data=tmp_path, environ=environ) as service:
        wait_until(lambda: len(processes(service.process.pid)) == 2)
        mine = processes(service.process.pid)
        wait_until(lambda: any(is_stopped(pid) for pid in mine))
        service.stop(signal.SIGKILL)
        for pid in mine:
            wait_until(lambda pid=pid: not alive(pid))
