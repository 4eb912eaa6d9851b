"""The time that one job may take: counted over all attempts, kept by killing its process."""

from __future__ import annotations

import contextlib
import json
import os
import threading

import pytest

from contam.config import Settings
from contam.server.jobs.service import Jobs
from contam.server.jobs.work.allowance import STRETCH_S, Allowance
from tests.server.jobs.jobbing import processes
from tests.waiting import HANG_S, wait_until


@contextlib.contextmanager
def jobs_at_work(data, index, **settings):
    jobs = Jobs(Settings(data=str(data), **settings), lambda _: [index])
    jobs.start()
    try:
        yield jobs
    finally:
        jobs.close()


@pytest.fixture
def added(bench_fixtures):
    """(Jobs, name) -> a check job of that name, which waits."""
    items = (bench_fixtures / "items" / "brook_math.jsonl").read_bytes()
    options = {
        "mapping": None, "name": None, "split": None, "allow_missing": False, "max_evidence": 20,
        "keep_text": False,
    }  # fmt: skip
    request = {"kind": "check", "policies": ["contam"], "options": options}

    def add(jobs, name):
        folder = jobs._home / name
        folder.mkdir()
        (folder / "items.jsonl").write_bytes(items)
        (folder / "request.json").write_text(json.dumps(request))
        about = {"index": []}
        return jobs._store.add(name, owner="me", kind="check", about=about, most_queued=9)

    return add


def ended(jobs, job):
    wait_until(lambda: jobs.get(job.id, None).ended)
    return jobs.get(job.id, None)


def test_a_job_past_its_time_fails_its_process_is_killed_and_the_queue_goes_on(
    small_index, added, tmp_path
):
    before = set(processes(os.getpid()))
    # Importing alone takes longer than that.
    with jobs_at_work(tmp_path, small_index, max_job_s=0.2) as jobs:
        first, second = added(jobs, "first"), added(jobs, "second")
        jobs._worker.wake()
        for job in (first, second):
            found = ended(jobs, job)
            assert (found.state, found.code, found.attempts) == ("failed", "job-time", 1)
            failure = jobs.failure(found)
            assert "0.2 seconds" in failure["message"]
            assert "max_job_s" in failure["hint"]
            assert not (jobs.result(found)).exists()
        wait_until(lambda: before >= set(processes(os.getpid())))
        assert [path.name for path in (tmp_path / "jobs" / "first").glob("items*")] == []


def test_a_job_that_had_its_time_is_not_begun_again_by_the_next_service(
    small_index, added, tmp_path
):
    with jobs_at_work(tmp_path, small_index, job_workers=0) as jobs:
        spent, fresh = added(jobs, "spent"), added(jobs, "fresh")
    # As a service leaves it that is killed while it works on the job.
    (tmp_path / "jobs" / "spent" / "spent").write_text("600.000")
    with jobs_at_work(tmp_path, small_index, max_job_s=600.0) as jobs:
        found = ended(jobs, spent)
        assert (found.state, found.code) == ("failed", "job-time")
        assert ended(jobs, fresh).state == "done"


def test_time_is_noted_before_it_is_spent_and_given_back_at_the_end(tmp_path):
    begun, go_on = threading.Event(), threading.Event()
    told = []

    def work():
        with Allowance(tmp_path, 100.0).spending(lambda: told.append("over")):
            begun.set()
            go_on.wait(HANG_S)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(HANG_S)
    noted = tmp_path / "spent"
    wait_until(noted.exists)
    # What a service finds that comes after one which was killed now.
    assert float(noted.read_text()) == STRETCH_S
    assert Allowance(tmp_path, STRETCH_S).is_over()
    go_on.set()
    thread.join()
    assert 0 <= float(noted.read_text()) < STRETCH_S
    assert told == []
