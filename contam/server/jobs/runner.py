"""Run the jobs of a service, and delete them when they expire.

Threads take queued jobs, oldest first, and do each in a process of its own with a time limit. A
process that crashes is started again, three times in all. A service that ends takes its processes
with it and leaves their jobs to the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import contam
from contam.errors import ConfigError, ContamError, UsageError
from contam.files.addresses import is_address
from contam.files.stores import real
from contam.server.auth import date_of
from contam.server.check import summary
from contam.server.indexes import block_folder, named_folders
from contam.server.jobs.store import MOST_ATTEMPTS, JobStore, StoreError
from contam.server.jobs.task import DONE, FAILED, INPUT, RESULT
from contam.server.problems import RequestError, tell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contam.config import Settings
    from contam.server.jobs.store import StoredJob

RUN: Final = "run.json"

_SECRETS: Final = ("CONTAM_ADMIN_KEY", "CONTAM_KEY")
_HOME: Final = Path(contam.__file__).resolve().parents[1]
_FAILURE: Final = "failure.json"
_LOOK_S: Final = 0.2
_SWEEP_S: Final = 30.0
_CRASHED: Final = "worker-crashed"
_SMALLER: Final = "send it in several jobs"
_KILLED: Final = f"it was started {MOST_ATTEMPTS} times, and each time the service itself ended"
_MEMORY: Final = f"{_SMALLER}; what is killed often lacks memory"


class JobProcess:
    """A process of `contam.server.jobs.task`, which waits for its order when this returns.

    progress  phase and share of the work, as the process said last
    failure   why the job failed, once the process has said so
    overtime  whether it was ended because it took too long
    """

    def __init__(self) -> None:
        """Start it. Raises OSError."""
        self.progress: dict[str, Any] = {"phase": "starting", "share": 0.0}
        self.failure: dict[str, str] | None = None
        self.overtime = False
        environ = {name: value for name, value in os.environ.items() if name not in _SECRETS}
        # With it, `-m` would not look where this very package is.
        environ.pop("PYTHONSAFEPATH", None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "contam.server.jobs.task"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A traceback may quote a text, and this stream would end in somebody's log.
            stderr=subprocess.DEVNULL,
            env=environ,
            # What `-m` finds first is then this very package, wherever the service was started.
            cwd=_HOME,
            # A signal to the service is not one to its jobs.
            start_new_session=True,
        )

    def run(self, order: Mapping[str, Any], most_s: float) -> int:
        """Give the order and hear reports until the process ends; returns its exit code.

        most_s  seconds after which it is ended
        """
        process = self._process
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
        timer = threading.Timer(most_s, self._end_overtime)
        timer.start()
        try:
            with process.stdout, contextlib.suppress(OSError):
                process.stdin.write(json.dumps(order).encode() + b"\n")
                process.stdin.flush()
                for line in process.stdout:
                    # The end of the process may have cut the last line short.
                    with contextlib.suppress(ValueError):
                        report = json.loads(line)
                        self.failure = report.pop("failed", self.failure)
                        self.progress = {**self.progress, **report}
            return process.wait()
        finally:
            timer.cancel()
            self.kill()
            process.wait()
            # Not before: the process takes the end of this pipe for the end of the service.
            with contextlib.suppress(OSError):
                process.stdin.close()

    def kill(self) -> None:
        """End it and all that it started."""
        # Not whoever has its number now.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _end_overtime(self) -> None:
        self.overtime = True
        self.kill()


class Jobs:
    """Everything a service knows of jobs. Methods may be called from any thread."""

    def __init__(self, settings: Settings) -> None:
        """Take the data folder. Raises ConfigError when it is not usable."""
        self.settings = settings
        self.home = Path(settings.data).resolve() / "jobs"
        self._claim = _own(self.home)
        try:
            self.store = JobStore(self.home.parent / "jobs.db")
            self._recover()
        except BaseException:
            os.close(self._claim)
            raise
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._processes: dict[str, JobProcess] = {}
        works = [self._sweep_on, *[self._work] * settings.job_workers]
        self._threads = [threading.Thread(target=work, name="jobs", daemon=True) for work in works]

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop working; what runs is queued again."""
        self._stopping.set()
        with self._lock:
            processes = list(self._processes.values())
        for process in processes:
            process.kill()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self.store.close()
        os.close(self._claim)

    def get(self, job_id: str, owner: str | None) -> StoredJob:
        """A job of this owner (None: of anybody). Raises RequestError, 404."""
        job = self.store.get(job_id)
        if job is None or (owner is not None and job.owner != owner):
            raise RequestError(404, "there is no such job", code="no-job")
        return job

    def show(self, job: StoredJob) -> dict[str, Any]:
        """A job as its owner sees it: see `contam.server.schemas.JobAnswer`."""
        result = self._summary(job) if job.state == "done" else {}
        process = self._process(job.id)
        expires = None if job.finished is None else job.finished + self.settings.retention_s
        return {
            "id": job.id, "kind": job.kind, "state": job.state, "ended": job.ended,
            "created": date_of(job.created), "started": date_of(job.started),
            "finished": date_of(job.finished), "expires": date_of(expires),
            "attempts": job.attempts, **job.about,
            "progress": None if process is None else process.progress,
            "coverage": result.get("coverage"), "counts": result.get("counts"),
            "error": self._failure(job) if job.state == "failed" else None,
        }  # fmt: skip

    def result(self, job: StoredJob) -> Path:
        """The folder of a finished job's result."""
        return self.home / job.id / RESULT

    def cancel(self, job: StoredJob) -> StoredJob | None:
        """Stop a job; one that has ended is deleted with all that it left (None is then given)."""
        ended = self.store.finish(job.id, "cancelled", "cancelled")
        if ended is None:
            self._delete(job)
        elif (process := self._process(job.id)) is not None:
            process.kill()
        else:
            self._clear(job.id, ended)
        return ended

    def sweep(self) -> int:
        """Delete what has outlived its retention; returns how many jobs that were."""
        outlived = self.store.outlived(self.settings.retention_s)
        for job in outlived:
            self._delete(job)
        return len(outlived)

    def _delete(self, job: StoredJob) -> None:
        folder = self.home / job.id
        shutil.rmtree(folder, ignore_errors=True)
        # What could not be deleted stays known, and is tried again.
        if not folder.exists():
            self.store.forget(job.id)

    def _sweep_on(self) -> None:
        while not self._stopping.wait(min(_SWEEP_S, max(self.settings.retention_s / 4, 0.1))):
            with contextlib.suppress(StoreError):
                self.sweep()

    def _recover(self) -> None:
        """Go on with what a killed service was at, unless that kills it; remove what it left."""
        for job in self.store.running():
            if self.result(job).is_dir():
                self.store.finish(job.id, "done")
            elif job.attempts < MOST_ATTEMPTS:
                self.store.give_back(job.id, counted=True)
            else:
                self._note_failure(job.id, _CRASHED, _KILLED, _MEMORY)
                self.store.finish(job.id, "failed", _CRASHED)
        for folder in self.home.iterdir():
            self._clear(folder.name, self.store.get(folder.name))

    def _clear(self, job_id: str, job: StoredJob | None) -> None:
        """Remove the inputs of a job that has ended, and all of one that was cancelled.

        job  None where the store does not know it, or not as running: then it was cancelled
        """
        folder = self.home / job_id
        if job is None or job.state == "cancelled":
            shutil.rmtree(folder, ignore_errors=True)
        elif job.ended:
            shutil.rmtree(folder / INPUT, ignore_errors=True)

    def _process(self, job_id: str) -> JobProcess | None:
        with self._lock:
            return self._processes.get(job_id)

    def _work(self) -> None:
        while not self._stopping.is_set():
            job = None
            with contextlib.suppress(StoreError):
                job = self.store.claim()
            if job is None:
                self._stopping.wait(_LOOK_S)
                continue
            try:
                self._run(job)
            except Exception as error:  # noqa: BLE001 - a thread that ended would leave all jobs waiting
                said = f"the service failed to look after the job ({type(error).__name__})"
                self._fail(job, "internal", said, "")

    def _run(self, job: StoredJob) -> None:
        try:
            order = self._order(job)
            process = JobProcess()
        except ContamError as error:
            self._fail(job, error.code, *tell(error))
            return
        except OSError:
            # No memory or no processes left: that passes.
            self._again(job, counted=False)
            return
        with self._lock:
            self._processes[job.id] = process
        try:
            found: StoredJob | None = job
            with contextlib.suppress(StoreError):
                found = self.store.get(job.id)
            if self._stopping.is_set() or found is None or found.ended:
                # Told to end between the claim and now.
                process.kill()
            code = process.run(order, self.settings.max_job_s)
        finally:
            with self._lock:
                del self._processes[job.id]
        if code == DONE:
            self._note(job, lambda: self.store.finish(job.id, "done"))
        elif process.overtime:
            said = f"it was not done after {self.settings.max_job_s:g} seconds"
            hint = f"{_SMALLER}; the operator may allow more with max_job_s"
            self._fail(job, "job-time", said, hint)
        elif code == FAILED and process.failure is not None:
            self._fail(job, **process.failure)
        elif self._stopping.is_set():
            self._again(job, counted=False)
        elif job.attempts < MOST_ATTEMPTS:
            self._again(job, counted=True)
        else:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            said = f"its process crashed {MOST_ATTEMPTS} times, the last with {how}"
            self._fail(job, _CRASHED, said, _MEMORY)

    def _fail(self, job: StoredJob, code: str, message: str, hint: str) -> None:
        self._note_failure(job.id, code, message, hint)
        self._note(job, lambda: self.store.finish(job.id, "failed", code))

    def _again(self, job: StoredJob, *, counted: bool) -> None:
        self._note(job, lambda: self.store.give_back(job.id, counted=counted))
        if not counted:
            self._stopping.wait(_LOOK_S)

    def _note(self, job: StoredJob, note: Callable[[], StoredJob | None]) -> None:
        """Record it in the store, which may be locked or full for a while, and clear up.

        A service that stops meanwhile leaves the job running in the store: the next one starts it
        again, and finds what is published.
        """
        while True:
            try:
                found = note()
            except StoreError:
                if self._stopping.wait(_LOOK_S):
                    return
            else:
                self._clear(job.id, found)
                return

    def _order(self, job: StoredJob) -> dict[str, Any]:
        names = job.about["index"]
        served = named_folders(self.settings.index, self.settings.home) if names else {}
        if missing := [name for name in names if name not in served]:
            raise UsageError(f"the index {missing[0]} is not served any more")
        return {
            "folder": str(self.home / job.id),
            "indexes": [str(real(served[name])) for name in names],
            "corpus": [
                path if is_address(path) else str(Path(path).resolve())
                for path in self.settings.corpus
            ],
            "blocks": [self.settings.cache_bytes, str(block_folder(self.settings))],
            "threads": self.settings.job_threads,
            "memory_bytes": self.settings.max_job_memory_bytes,
        }

    def _note_failure(self, job_id: str, code: str, message: str, hint: str) -> None:
        # With the results and not in the store, which holds nothing that a request said.
        failure = {"code": code, "message": message, "hint": hint}
        with contextlib.suppress(OSError):
            (self.home / job_id / _FAILURE).write_text(json.dumps(failure), "ascii")

    def _failure(self, job: StoredJob) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads((self.home / job.id / _FAILURE).read_bytes())
        except (OSError, ValueError):
            return {"code": job.code, "message": "the job failed", "hint": ""}
        return found

    def _summary(self, job: StoredJob) -> dict[str, Any]:
        try:
            return _read_summary(self.result(job) / RUN)
        except (OSError, ValueError):
            return {}


def _own(home: Path) -> int:
    """Make the folder of jobs this service's alone. Raises ConfigError when another has it."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        handle = os.open(home.parent / "jobs.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"cannot write the data folder {home.parent}: {error.strerror}",
            hint="give --data a folder of its own",
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise ConfigError(
            f"another service uses the data folder {home.parent}",
            hint="give each service a --data of its own",
        ) from error
    return handle


@functools.lru_cache(maxsize=256)
def _read_summary(path: Path) -> dict[str, Any]:
    """What a job shows of its result, read from run.json. Raises OSError or ValueError."""
    run = json.loads(path.read_bytes())
    coverage = run["coverage"]
    return {
        "coverage": summary(coverage) if "shards_failed" in coverage else coverage,
        "counts": run.get("counts"),
    }
