"""Start a process for each job, follow it, and record how it ended.

A process that crashes is begun again, three times in all. A service that ends takes its processes
with it and leaves their jobs to the next one.
"""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from contam.errors import ContamError
from contam.server.jobs.model import StoreError
from contam.server.jobs.work.allowance import Allowance
from contam.server.jobs.work.process import Running, begin, kill
from contam.server.jobs.work.queues import JobQueue
from contam.server.jobs.work.run import DONE, FAILED, HELD
from contam.server.problems.remedies import BY_CODE, hint_for
from contam.server.problems.telling import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contam.server.jobs.model import Kind, State, StoredJob
    from contam.server.jobs.store import JobStore
    from contam.server.jobs.work.process import JobProgress

MOST_ATTEMPTS: Final = 3
_LOOK_S: Final = 0.5
_HELD_S: Final = 0.2
_DEFECT: Final = {
    "code": "internal",
    "message": "the service failed to look after the job",
    "hint": "a defect of contam: report it with the id of the job",
}
KILLER: Final = {
    "code": "worker-crashed",
    "message": f"it was begun {MOST_ATTEMPTS} times, and the last time the service itself ended",
    "hint": "send it in several jobs; a service that is killed often lacks memory",
}
"""What a job failed of that was running whenever the service was killed."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions that the worker calls, and its limits.

    order    makes the order for the process of a job; raises ContamError when it cannot begin
    changed  a job began, has come further, or is queued again
    ended    a job is over: its inputs may go
    failed   what a job failed of: code, message, hint
    retention_s  seconds that an ended job is kept
    most_s   seconds of work that an attempt may take
    slice_s  seconds that it works while others wait
    """

    order: Callable[[StoredJob], dict[str, Any]]
    changed: Callable[[str], None]
    ended: Callable[[StoredJob], None]
    failed: Callable[[str, dict[str, str]], None]
    retention_s: float
    most_s: float
    slice_s: float


class Worker:
    """Threads that take jobs from a store, each with one job at a time.

    queues  jobs of each kind that work at once;  n_open  long ones of each kind that take turns
    """

    def __init__(
        self, store: JobStore, hooks: Hooks, *, n_slots: dict[Kind, int], n_open: int
    ) -> None:
        self._store = store
        self._hooks = hooks
        self._wake = threading.Condition()
        self._stopping = threading.Event()
        self._running: dict[str, Running] = {}
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(queue,), name=f"jobs-{kind}", daemon=True)
            for kind, number in n_slots.items()
            for queue in (JobQueue(kind, number, n_open),)
            for _ in range(queue.n_threads)
        ]

    def start(self) -> None:
        """Begin to take jobs."""
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """There may be a new job."""
        with self._wake:
            self._wake.notify_all()

    def progress(self, job_id: str) -> JobProgress | None:
        """How far a job is; None when it does not run."""
        with self._lock:
            running = self._running.get(job_id)
            return None if running is None else running.progress

    def stop_job(self, job_id: str) -> None:
        """End the process of a job whose end the store knows already."""
        with self._lock:
            running = self._running.get(job_id)
            if running is None:
                return
            running.cancelled = True
        kill(running.process)

    def close(self) -> None:
        """End all processes; their jobs are queued again."""
        self._stopping.set()
        self.wake()
        with self._lock:
            processes = [running.process for running in self._running.values()]
        for process in processes:
            kill(process)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _work(self, queue: JobQueue) -> None:
        while True:
            # One thread looks for work; the others have a job each, or wait to look.
            with queue.looking:
                job = self._next(queue)
            if job is None:
                return
            self._attempt(job, queue)
            queue.leave(job.id)
            self.wake()

    def _next(self, queue: JobQueue) -> StoredJob | None:
        """The next job that is to be begun; None when the service stops."""
        while not self._stopping.is_set():
            try:
                job = queue.claim(self._store)
            except StoreError:
                self._stopping.wait(_LOOK_S)
                continue
            if job is not None:
                return job
            with self._wake:
                if not self._stopping.is_set():
                    self._wake.wait(_LOOK_S)
        return None

    def _attempt(self, job: StoredJob, queue: JobQueue) -> None:
        """Work on a job; whatever goes wrong here, the thread and the job go on."""
        try:
            self._run(job, queue)
        except Exception:  # noqa: BLE001 - a thread that ended would leave all jobs waiting
            with self._lock:
                lost = self._running.pop(job.id, None)
            if lost is not None:
                kill(lost.process)
                lost.process.wait()
            self._stopping.wait(_LOOK_S)
            if job.attempts < MOST_ATTEMPTS:
                self._again(job, counted=True)
            else:
                self._fail(job, dict(_DEFECT))

    def _run(self, job: StoredJob, queue: JobQueue) -> None:
        self._hooks.changed(job.id)
        try:
            order = self._hooks.order(job)
            process = begin()
        except ContamError as error:
            message, hint = tell(error)
            self._fail(job, {"code": error.code, "message": message, "hint": hint})
            return
        except OSError:
            # No memory or no processes left: that passes.
            self._again(job, counted=False)
            self._stopping.wait(_LOOK_S)
            return
        allowance = Allowance(self._hooks.most_s)
        running = Running(process, allowance)
        with self._lock:
            self._running[job.id] = running
        if self._stopping.is_set() or self._is_over(job):
            # Told to end between the claim and now.
            kill(process)
        with allowance.spending(lambda: kill(process)), self._turns(job, running, queue):
            failure = self._listen(job, running, order)
            code = process.wait()
        if allowance.is_over() and code != DONE:
            failure, code = self._overtime(), FAILED
        if process.stdin is not None:
            # Not before: the process takes the end of this pipe for the end of the service.
            with contextlib.suppress(OSError):
                process.stdin.close()
        with self._lock:
            del self._running[job.id]
        self._conclude(job, running, code, failure)

    @contextlib.contextmanager
    def _turns(self, job: StoredJob, running: Running, queue: JobQueue) -> Iterator[None]:
        """Have the job of the block make way for others whenever a slice of it is over."""
        thread = threading.Thread(target=self._take_turns, args=(job, running, queue), daemon=True)
        thread.start()
        try:
            yield
        finally:
            running.end()
            thread.join()

    def _take_turns(self, job: StoredJob, running: Running, queue: JobQueue) -> None:
        running.heard.wait()
        running.at_work.set()
        while True:
            running.at_work.wait()
            if running.over.wait(self._hooks.slice_s):
                return
            if not queue.end_slice(job.id, running, self._store):
                running.put_back = True
                kill(running.process)
                return
            if not running.at_work.is_set():
                self._hooks.changed(job.id)
            self.wake()

    def _listen(
        self, job: StoredJob, running: Running, order: dict[str, Any]
    ) -> dict[str, str] | None:
        """Give the order and hear reports until the process ends; what it failed of, if it did."""
        process = running.process
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
        failure: dict[str, str] | None = None
        try:
            with contextlib.suppress(OSError):
                process.stdin.write(json.dumps(order).encode() + b"\n")
                process.stdin.flush()
            for line in process.stdout:
                running.heard.set()
                try:
                    event = json.loads(line)
                except ValueError:
                    # A line that the end of the process cut short.
                    continue
                failure = event.pop("failed", failure)
                if event:
                    running.progress = replace(running.progress, **event)
                    self._hooks.changed(job.id)
        finally:
            process.stdout.close()
        return failure

    def _conclude(
        self, job: StoredJob, running: Running, code: int, failure: dict[str, str] | None
    ) -> None:
        if running.cancelled:
            self._hooks.ended(job)
        elif code == DONE:
            self._end(job, "done", "")
        elif code == FAILED and failure is not None:
            self._fail(job, failure)
        elif self._stopping.is_set() or running.put_back:
            self._again(job, counted=False)
        elif code == HELD:
            self._again(job, counted=False)
            self._stopping.wait(_HELD_S)
        elif job.attempts < MOST_ATTEMPTS:
            self._again(job, counted=True)
        else:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            self._fail(
                job,
                {
                    "code": "worker-crashed",
                    "message": f"its process ended {MOST_ATTEMPTS} times, the last with {how}",
                    "hint": "send it in several jobs; signal 9 often means that memory ran out",
                },
            )

    def _overtime(self) -> dict[str, str]:
        return {
            "code": "job-time",
            "message": f"it was not done after {self._hooks.most_s:g} seconds of work",
            "hint": BY_CODE["job-time"],
        }

    def _fail(self, job: StoredJob, failure: dict[str, str]) -> None:
        shown = {**failure, "hint": hint_for(failure["code"], failure["hint"])}
        self._hooks.failed(job.id, shown)
        self._end(job, "failed", failure["code"])

    def _end(self, job: StoredJob, state: State, code: str) -> None:
        ended = self._insist(
            lambda: self._store.finish(
                job.id, state, code=code, retention_s=self._hooks.retention_s
            )
        )
        if ended is not None:
            self._hooks.ended(ended)

    def _again(self, job: StoredJob, *, counted: bool) -> None:
        self._insist(lambda: self._store.give_back(job.id, counted=counted))
        self._hooks.changed(job.id)

    def _insist(self, note: Callable[[], StoredJob | None]) -> StoredJob | None:
        """Note it in the store, which may be locked or full for a while.

        A service that stops meanwhile leaves the job running in the store: the next one begins it
        again, and finds what is published.
        """
        while True:
            try:
                return note()
            except StoreError:
                if self._stopping.wait(_LOOK_S):
                    return None

    def _is_over(self, job: StoredJob) -> bool:
        """Whether the job was cancelled before its process was known."""
        try:
            found = self._store.get(job.id)
        except StoreError:
            return False
        if found is not None and not found.ended:
            return False
        with self._lock:
            self._running[job.id].cancelled = True
        return True
