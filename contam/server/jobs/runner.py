"""Run queued jobs, oldest first, each in a process of its own with a time limit.

A process that crashes is started again, three times in all. A service that ends takes its processes
with it and leaves their jobs to the next one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import contam
from contam.errors import ContamError
from contam.server.jobs.store import MOST_ATTEMPTS, StoreError
from contam.server.jobs.task import DONE, FAILED, HELD
from contam.server.problems import tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from contam.server.jobs.store import JobStore, State, StoredJob

_LOOK_S: Final = 0.5
_SECRETS: Final = ("CONTAM_ADMIN_KEY", "CONTAM_KEY")
_HOME: Final = Path(contam.__file__).resolve().parents[1]
_MEMORY: Final = "send it in several jobs; signal 9 often means that memory ran out"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a running job is: `done` of `total` bytes of documents, when it searches."""

    phase: str = "starting"
    done: int = 0
    total: int = 0


@dataclass(slots=True, eq=False)
class _Running:
    process: subprocess.Popen[bytes]
    progress: JobProgress = JobProgress()
    overtime: bool = False


def start_process() -> subprocess.Popen[bytes]:
    """Start a process that waits for its order. Raises OSError."""
    environ = {name: value for name, value in os.environ.items() if name not in _SECRETS}
    # With it, `-m` would not look where this very package is.
    environ.pop("PYTHONSAFEPATH", None)
    return subprocess.Popen(
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


class Runner:
    """Threads that take jobs from a store, each one job at a time.

    order   makes the order for the process of a job; raises ContamError when it cannot start
    failed  records why a job failed;  ended  is called when a job is over: its inputs may go
    """

    def __init__(
        self,
        store: JobStore,
        *,
        order: Callable[[StoredJob], dict[str, Any]],
        failed: Callable[[str, dict[str, str]], None],
        ended: Callable[[StoredJob], None],
        n_workers: int,
        most_s: float,
    ) -> None:
        self._store = store
        self._order = order
        self._failed = failed
        self._ended = ended
        self._most_s = most_s
        self._stopping = threading.Event()
        self._queued = threading.Semaphore(0)
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, name="jobs", daemon=True) for _ in range(n_workers)
        ]

    def start(self) -> None:
        """Begin to take jobs."""
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """There is a new job."""
        self._queued.release()

    def progress(self, job_id: str) -> JobProgress | None:
        """How far a job is; None when it has no process."""
        with self._lock:
            running = self._running.get(job_id)
            return None if running is None else running.progress

    def stop_job(self, job_id: str) -> bool:
        """End the process of a job that the store knows to be over; False when it has none."""
        with self._lock:
            running = self._running.get(job_id)
        if running is not None:
            _kill(running.process)
        return running is not None

    def close(self) -> None:
        """End all processes; their jobs are queued again."""
        self._stopping.set()
        for _ in self._threads:
            self.wake()
        with self._lock:
            running = list(self._running.values())
        for each in running:
            _kill(each.process)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                job = self._store.claim()
            except StoreError:
                self._stopping.wait(_LOOK_S)
                continue
            if job is None:
                self._queued.acquire(timeout=_LOOK_S)
                continue
            try:
                self._run(job)
            except Exception as error:  # noqa: BLE001 - a thread that ended would leave all jobs waiting
                message = f"the service failed to look after the job ({type(error).__name__})"
                self._fail(job, {"code": "internal", "message": message, "hint": ""})

    def _run(self, job: StoredJob) -> None:
        try:
            order = self._order(job)
            running = _Running(start_process())
        except ContamError as error:
            message, hint = tell(error)
            self._fail(job, {"code": error.code, "message": message, "hint": hint})
            return
        except OSError:
            # No memory or no processes left: that passes.
            self._again(job, counted=False)
            self._stopping.wait(_LOOK_S)
            return
        with self._lock:
            self._running[job.id] = running
        timer = threading.Timer(self._most_s, self._end_overtime, (running,))
        timer.start()
        try:
            if self._stopping.is_set() or self._is_over(job):
                # Told to end between the claim and now.
                _kill(running.process)
            failure = self._listen(running, order)
            code = running.process.wait()
        finally:
            timer.cancel()
            _kill(running.process)
            running.process.wait()
            assert running.process.stdin is not None  # noqa: S101 - it is a pipe
            # Not before: the process takes the end of this pipe for the end of the service.
            with contextlib.suppress(OSError):
                running.process.stdin.close()
            with self._lock:
                del self._running[job.id]
        self._conclude(job, code, failure, overtime=running.overtime)

    def _listen(self, running: _Running, order: dict[str, Any]) -> dict[str, str] | None:
        """Give the order and hear reports until the process ends; why it failed, if it did."""
        process = running.process
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
        failure: dict[str, str] | None = None
        with process.stdout, contextlib.suppress(OSError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
            for line in process.stdout:
                # The end of the process may have cut the last line short.
                with contextlib.suppress(ValueError):
                    event = json.loads(line)
                    failure = event.pop("failed", failure)
                    running.progress = replace(running.progress, **event)
        return failure

    def _conclude(
        self, job: StoredJob, code: int, failure: dict[str, str] | None, *, overtime: bool
    ) -> None:
        if code == DONE:
            self._end(job, "done")
        elif overtime:
            message = f"it was not done after {self._most_s:g} seconds"
            hint = "send it in several jobs; the operator may allow more with max_job_s"
            self._fail(job, {"code": "job-time", "message": message, "hint": hint})
        elif code == FAILED and failure is not None:
            self._fail(job, failure)
        elif self._stopping.is_set() or code == HELD:
            self._again(job, counted=False)
            self._stopping.wait(_LOOK_S)
        elif job.attempts < MOST_ATTEMPTS:
            self._again(job, counted=True)
        else:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            message = f"its process crashed {MOST_ATTEMPTS} times, the last with {how}"
            self._fail(job, {"code": "worker-crashed", "message": message, "hint": _MEMORY})

    def _fail(self, job: StoredJob, failure: dict[str, str]) -> None:
        self._failed(job.id, failure)
        self._end(job, "failed", failure["code"])

    def _end(self, job: StoredJob, state: State, code: str = "") -> None:
        self._insist(lambda: self._store.finish(job.id, state, code))
        self._ended(job)

    def _again(self, job: StoredJob, *, counted: bool) -> None:
        self._insist(lambda: self._store.give_back(job.id, counted=counted))
        if self._is_over(job):
            self._ended(job)

    def _insist(self, note: Callable[[], object]) -> None:
        """Record it in the store, which may be locked or full for a while.

        A service that stops meanwhile leaves the job running in the store: the next one starts it
        again, and finds what is published.
        """
        while True:
            try:
                note()
            except StoreError:
                if self._stopping.wait(_LOOK_S):
                    return
            else:
                return

    def _is_over(self, job: StoredJob) -> bool:
        """Whether the job was cancelled or deleted meanwhile."""
        try:
            found = self._store.get(job.id)
        except StoreError:
            return False
        return found is None or found.ended

    @staticmethod
    def _end_overtime(running: _Running) -> None:
        running.overtime = True
        _kill(running.process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    # Not whoever has its number now.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
