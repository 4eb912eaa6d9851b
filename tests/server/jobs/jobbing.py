"""What tests of jobs do again and again: send one, wait for it, find its process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import pyarrow.parquet as pq

from tests.waiting import wait_until

PARQUET = "application/vnd.apache.parquet"


def parts(asked, **files):
    """The parts of an upload: the request, and files as role -> (name, bytes) or a list of them."""
    found = [("job", (None, json.dumps(asked).encode(), "application/json"))]
    for role, given in files.items():
        found += [(role, one) for one in (given if isinstance(given, list) else [given])]
    return found


def submit(client, asked, headers=None, **files):
    return client.post("/v1/jobs", files=parts(asked, **files), headers=headers or {})


def submitted(client, asked, **files):
    """A job that was accepted, as it was shown then."""
    reply = submit(client, asked, **files)
    assert reply.status_code == 202, reply.text
    assert reply.headers["location"] == f"/v1/jobs/{reply.json()['id']}"
    return reply.json()


def shown(client, job):
    return client.get(f"/v1/jobs/{job['id']}").json()


def wait_for_job(client, job, fits, pause_s=0.05):
    """The job as soon as it is as `fits` says."""
    found = {}

    def so() -> bool:
        found.update(shown(client, job))
        fitting = fits(found)
        assert fitting or not found["ended"], found
        return fitting

    wait_until(so, pause_s=pause_s, said=found)
    return found


def ended(client, job):
    return wait_for_job(client, job, lambda found: found["ended"])


def processes(parent):
    """Ids of the child processes of a process."""
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        # A thread may end while it is looked at.
        with contextlib.suppress(FileNotFoundError):
            found += [int(one) for one in (task / "children").read_text().split()]
    return found


def held_still(parent):
    """The id of the one child process of a service, stopped as it begins to do its job."""
    found = []

    def begins() -> bool:
        found[:] = processes(parent)
        # Whoever starts a process waits until that runs a program of its own.
        return bool(found) and b"contam.server.jobs.task" in cmdline(found[0])

    wait_until(begins)
    (child,) = found
    os.kill(child, signal.SIGSTOP)
    return child


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def fetched(client, job, folder):
    """The result folder of a job, as a client would put it together again."""
    folder.mkdir()
    for table in ("verdicts", "evidence", "items"):
        reply = client.get(
            f"/v1/jobs/{job['id']}/results", params={"table": table}, headers={"accept": PARQUET}
        )
        assert reply.status_code == 200, reply.text
        (folder / f"{table}.parquet").write_bytes(reply.content)
    (folder / "run.json").write_bytes(client.get(f"/v1/jobs/{job['id']}/run").content)
    return folder


def rows(path):
    return pq.read_table(path).to_pylist()
