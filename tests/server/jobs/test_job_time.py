"""The time that one job may take: counted over all attempts, kept by killing its process."""

from __future__ import annotations

import contextlib
import json
import os

import pytest

from contam.config import Settings
from contam.server.jobs.service import Jobs
from tests.server.jobs.jobbing import processes
from tests.waiting import wait_until


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
