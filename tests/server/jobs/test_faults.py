"""Jobs when things go wrong: kills, full disks, locked stores, broken uploads, full queues."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from contam.config import Settings
from contam.detect.query import query
from contam.detect.report import write_report
from contam.errors import ConfigError
from contam.server.auth import KeyStore
from contam.server.jobs.runner import Jobs
from tests.server.jobs.jobbing import (
    alive,
    ended,
    fetched,
    held_still,
    parts,
    processes,
    submit,
    submitted,
)
from tests.server.running import REPOSITORY, serving
from tests.waiting import HANG_S, wait_until

CHECK = {"kind": "check", "options": {"name": "brook_math"}}
ROW = b'{"id": "a", "question": "Who counts the lamps along the quay at night?"}\n'


@pytest.fixture(scope="module")
def item_file(bench_fixtures):
    return (bench_fixtures / "items" / "brook_math.jsonl").read_bytes()


# -- kills ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_jobs_outlive_a_kill_of_the_service_and_kills_of_their_processes(
    small_index, bench_fixtures, item_file, tmp_path
):
    data = tmp_path / "data"
    patient = {"CONTAM_DRAIN_S": str(10 * HANG_S)}
    with (
        serving(small_index, data=data, environ=patient) as service,
        service.client() as client,
    ):
        first = submitted(client, CHECK, items=("x.jsonl", item_file))
        second = submitted(client, CHECK, items=("x.jsonl", ROW))
        # Held still as it begins: it must not be done before the service is killed.
        child = held_still(service.process.pid)
        service.stop(signal.SIGKILL)
        os.kill(child, signal.SIGCONT)
        # What lost its service writes nothing more.
        wait_until(lambda: not alive(child))
        assert not (data / "jobs" / first["id"] / "result").exists()
    # Not waited for until it is ready: by then the job may be done.
    with serving(small_index, data=data, ready=False) as service, service.client() as client:
        wait_until(lambda: processes(service.process.pid))
        (child,) = processes(service.process.pid)
        os.kill(child, signal.SIGKILL)
        service.wait_until_ready()
        found = ended(client, first)
        assert (found["state"], found["attempts"]) == ("done", 3)
        alone = write_report(
            query(
                small_index, bench_fixtures / "items" / "brook_math.jsonl", name="brook_math",
                keep_text=False,
            ),
            tmp_path / "alone",
        )  # fmt: skip
        folder = fetched(client, first, tmp_path / "fetched")
        for name in ("verdicts.parquet", "evidence.parquet", "items.parquet"):
            assert (folder / name).read_bytes() == (alone / name).read_bytes()
        assert ended(client, second)["state"] == "done"
        # A process that ends again and again takes its job with it, and nothing else.
        doomed = submitted(client, CHECK, items=("x.jsonl", item_file))
        killed: set[int] = set()
        for _ in range(3):
            wait_until(lambda: set(processes(service.process.pid)) - killed)
            (child,) = set(processes(service.process.pid)) - killed
            os.kill(child, signal.SIGKILL)
            killed.add(child)
        found = ended(client, doomed)
        assert (found["state"], found["error"]["code"]) == ("failed", "worker-crashed")
        assert found["attempts"] == 3
        assert client.get("/readyz").status_code == 200
        last = submitted(client, CHECK, items=("x.jsonl", item_file))
        held_still(service.process.pid)
        assert service.stop() == 0
    with sqlite3.connect(data / "jobs.db") as db:
        (row,) = db.execute("SELECT state, attempts FROM jobs WHERE id = ?", (last["id"],))
    db.close()
    assert row == ("queued", 0)


def run_job(folder, order):
    """The process of a job, without a service."""
    process = subprocess.Popen(
        [sys.executable, "-m", "contam.server.jobs.task"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    order = {
        "folder": str(folder), "indexes": [], "corpus": [], "threads": 1,
        "memory_bytes": 1 << 40, "blocks": [0, str(folder.parent / "blocks")], **order,
    }  # fmt: skip
    process.stdin.write(json.dumps(order).encode() + b"\n")
    process.stdin.flush()
    said = process.stdout.read().decode().splitlines()
    process.stdin.close()
    process.stdout.close()
    return process.wait(), [json.loads(line) for line in said]


@pytest.fixture
def job_folder(tmp_path, item_file):
    folder = tmp_path / "job"
    (folder / "input").mkdir(parents=True)
    (folder / "input" / "items.jsonl").write_bytes(item_file)
    options = {
        "mapping": None, "name": None, "split": None, "allow_missing": False, "max_evidence": 20,
        "keep_text": False,
    }  # fmt: skip
    request = {"kind": "check", "benchmarks": None, "policies": ["contam"], "options": options}
    (folder / "input" / "request.json").write_text(json.dumps(request))
    return folder


@pytest.mark.slow
def test_a_disk_that_fills_during_a_job_fails_it_and_leaves_no_part_of_a_result(
    job_folder, small_index, monkeypatch
):
    # Python would leave half of a compiled module behind, which every later process trips over.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
    try:
        code, said = run_job(job_folder, {"indexes": [str(small_index)]})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (code, said[-1]["failed"]["code"]) == (3, "output")
    assert "free some space" in said[-1]["failed"]["hint"]
    assert str(job_folder) not in json.dumps(said)
    assert not (job_folder / "result").exists()
    assert sorted(path.name for path in job_folder.iterdir()) == ["input"]


@pytest.mark.slow
def test_a_job_that_takes_too_much_memory_fails_alone(job_folder, small_index):
    row = json.dumps({"question": "a word " * 4000})
    rows = (f'{{"id": {n}, {row[1:]}\n' for n in range(4000))
    (job_folder / "input" / "items.jsonl").write_text("".join(rows))
    order = {"indexes": [str(small_index)], "memory_bytes": 300 << 20}
    code, said = run_job(job_folder, order)
    assert code != 0
    if code == 3:
        assert said[-1]["failed"]["code"] in {"memory", "internal"}
    assert not (job_folder / "result").exists()


# -- a service that queues and does nothing -------------------------------------------------------


@pytest.fixture(scope="module")
def queueing(small_index, tmp_path_factory):
    """A service that accepts jobs and works on none, with a key for each of two users."""
    data = tmp_path_factory.mktemp("queueing")
    keys = {name: KeyStore(data).add(name, ["jobs"])[1] for name in ("ann", "ben")}
    keys["boss"] = KeyStore(data).add("boss", ["admin"])[1]
    flags = ("--job-workers", "0")
    with serving(small_index, data=data, flags=flags) as running:
        yield running, {name: {"authorization": f"Bearer {key}"} for name, key in keys.items()}


@pytest.fixture
def as_user(queueing):
    """Name -> a client with that user's key; the queue is empty before and after."""
    service, headers = queueing
    clients = {name: service.client(headers=header) for name, header in headers.items()}
    yield clients
    for _ in range(2):
        for job in clients["boss"].get("/v1/jobs").json()["jobs"]:
            clients["boss"].delete(f"/v1/jobs/{job['id']}")
    for client in clients.values():
        client.close()


def folders(service):
    return sorted(path.name for path in (service.data / "jobs").iterdir())


def test_a_job_is_nobody_elses(as_user):
    job = submitted(as_user["ann"], CHECK, items=("x", ROW))
    place = f"/v1/jobs/{job['id']}"
    for path in (place, f"{place}/results", f"{place}/run", f"{place}/summary"):
        assert as_user["ben"].get(path).status_code == 404
    assert as_user["ben"].delete(place).status_code == 404
    assert as_user["ben"].get("/v1/jobs").json()["jobs"] == []
    asked = {"kind": "rescore", "job": job["id"]}
    assert submit(as_user["ben"], asked, logs=("a.csv", b"1")).json()["code"] == "no-job"
    assert [one["id"] for one in as_user["ann"].get("/v1/jobs").json()["jobs"]] == [job["id"]]
    assert as_user["boss"].get(place).json()["id"] == job["id"]


def test_one_idempotency_key_makes_one_job_however_often_it_is_sent(as_user):
    key = {"idempotency-key": "sent twice"}
    with ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(submit, as_user["ann"], CHECK, key, items=("x", ROW)) for _ in range(4)]
    replies = [one.result() for one in sent]
    assert {reply.status_code for reply in replies} == {202}
    again = submit(as_user["ann"], CHECK, key, items=("x", ROW))
    assert {one.json()["id"] for one in (again, *replies)} == {again.json()["id"]}
    other = submit(as_user["ann"], CHECK, key, items=("x", ROW + b"\n" + ROW))
    assert (other.status_code, other.json()["code"]) == (422, "idempotency-reused")
    assert submit(as_user["ben"], CHECK, key, items=("x", ROW)).json()["id"] != again.json()["id"]
    assert len(as_user["ann"].get("/v1/jobs").json()["jobs"]) == 1


def test_a_refused_request_leaves_its_idempotency_key_free(as_user):
    key = {"idempotency-key": "first in vain"}
    assert submit(as_user["ann"], CHECK, key, items=("x", b"")).status_code == 422
    assert submit(as_user["ann"], CHECK, key, items=("x", ROW)).status_code == 202


def test_what_the_service_stores_is_for_its_owner_alone(as_user, queueing):
    submitted(as_user["ann"], CHECK, items=("x", ROW))
    found = {path: path.stat().st_mode & 0o777 for path in queueing[0].data.rglob("*")}
    assert {path.name for path in found} >= {"jobs.db", "keys.json", "items.jsonl"}
    assert {path for path, mode in found.items() if mode & 0o077} == set()


def test_a_client_that_goes_away_leaves_nothing(as_user, queueing):
    service, headers = queueing
    before = folders(service)
    request = httpx.Request(
        "POST", f"{service.url}/v1/jobs", files=parts(CHECK, items=("x", ROW * 100_000)),
        headers={**headers["ann"], "idempotency-key": "gone"},
    )  # fmt: skip
    body = request.read()
    head = [b"POST /v1/jobs HTTP/1.1"]
    head += [f"{name}: {value}".encode() for name, value in request.headers.items()]
    address = ("127.0.0.1", int(service.url.rpartition(":")[2]))
    with socket.create_connection(address) as connection:
        connection.sendall(b"\r\n".join(head) + b"\r\n\r\n" + body[: len(body) // 2])
    wait_until(lambda: folders(service) == before)
    again = {"idempotency-key": "gone"}
    assert submit(as_user["ann"], CHECK, again, items=("x", ROW)).status_code == 202
    assert len(as_user["ann"].get("/v1/jobs").json()["jobs"]) == 1


def test_two_services_never_share_a_data_folder(queueing):
    with pytest.raises(ConfigError, match=str(queueing[0].data)):
        Jobs(Settings(data=str(queueing[0].data)))


# -- in this process ------------------------------------------------------------------------------


class Hand:
    """Jobs in this process, with no worker: what a test wants to happen it does by hand."""

    def __init__(self, data, **settings):
        settings = {"retention_s": 100.0, "job_workers": 0, **settings}
        self.jobs = Jobs(Settings(data=str(data), **settings))
        self.home = data / "jobs"

    def add(self, state):
        folder = self.home / f"job-{len(list(self.home.iterdir()))}"
        (folder / "result").mkdir(parents=True)
        (folder / "input").mkdir()
        self.jobs.store.add(
            id=folder.name, owner="me", kind="check", about={"index": []}, idempotency=None,
            fingerprint="", most_queued=99,
        )  # fmt: skip
        self.jobs.store.claim()
        if state != "running":
            self.jobs.store.finish(folder.name, state)
        return folder


def test_what_a_killed_service_left_is_put_in_order_by_the_next(tmp_path):
    hand = Hand(tmp_path)
    running, published, failed, cancelled = (
        hand.add(state) for state in ("running", "running", "failed", "cancelled")
    )
    (running / "result").rmdir()
    orphan = hand.home / "upload-of-which-no-job-came"
    orphan.mkdir()
    hand.jobs.close()
    hand = Hand(tmp_path)
    assert not orphan.exists()
    assert not cancelled.exists()
    assert not (failed / "input").exists()
    assert (running / "input").exists()
    assert (published / "result").exists()
    assert hand.jobs.store.states() == {"cancelled": 1, "failed": 1, "queued": 1, "done": 1}
    hand.jobs.close()


def test_a_job_that_was_running_whenever_the_service_was_killed_fails_the_third_time(tmp_path):
    hand = Hand(tmp_path)
    doomed = hand.add("running")
    (doomed / "result").rmdir()
    for _ in range(2):
        hand.jobs.close()
        hand = Hand(tmp_path)
        assert hand.jobs.store.claim().id == doomed.name
    hand.jobs.close()
    hand = Hand(tmp_path)
    shown = hand.jobs.show(hand.jobs.get(doomed.name, None))
    assert (shown["state"], shown["attempts"]) == ("failed", 3)
    assert shown["error"]["code"] == "worker-crashed"
    assert not (doomed / "input").exists()
    hand.jobs.close()


@pytest.mark.slow
def test_what_has_outlived_its_retention_is_deleted_with_its_files(tmp_path):
    hand = Hand(tmp_path, retention_s=1e-9)
    over, kept = hand.add("done"), hand.add("running")
    assert hand.jobs.sweep() == 1
    assert not over.exists()
    assert kept.exists()
    assert hand.jobs.store.states() == {"running": 1}
    hand.jobs.close()


@pytest.mark.slow
def test_a_job_past_its_time_fails_its_process_is_killed_and_the_queue_goes_on(
    small_index, job_folder, tmp_path
):
    """Importing alone takes longer than that."""
    before = set(processes(os.getpid()))
    settings = Settings(data=str(tmp_path / "data"), index=(str(small_index),), max_job_s=0.2)
    jobs = Jobs(settings)
    for name in ("first", "second"):
        shutil.copytree(job_folder, jobs.home / name)
        jobs.store.add(
            id=name, owner="me", kind="check", about={"index": ["small"]}, idempotency=None,
            fingerprint="", most_queued=9,
        )  # fmt: skip
    jobs.start()
    try:
        for name in ("first", "second"):
            wait_until(lambda name=name: jobs.get(name, None).ended)
            found = jobs.get(name, None)
            assert (found.state, found.code, found.attempts) == ("failed", "job-time", 1)
            assert not jobs.result(found).exists()
        wait_until(lambda: before >= set(processes(os.getpid())))
        wait_until(lambda: list((jobs.home / "first").glob("input")) == [])
    finally:
        jobs.close()


# -- where the code lies --------------------------------------------------------------------------


@pytest.mark.slow
def test_jobs_run_the_services_own_code_wherever_that_lies(small_index, item_file, tmp_path):
    """From a checkout that is not installed, below a folder with another contam."""
    foreign = tmp_path / "contam"
    foreign.mkdir()
    (foreign / "__init__.py").write_text("raise SystemExit('the wrong contam')")
    checkout = tmp_path / "checkout"
    shutil.copytree(REPOSITORY / "contam", checkout / "contam")
    with (
        serving(small_index, data=tmp_path / "data", folder=checkout, code=checkout) as service,
        service.client() as client,
    ):
        assert ended(client, submitted(client, CHECK, items=("x", item_file)))["state"] == "done"
