"""Do the tasks of a job with the processes of a Ray cluster; only this module imports Ray.

Of Ray only plain actors are used. Each is a process that does one task at a time, a lease of a scan
or a group of an index, with threads of its own, and returns what it gave as bytes, which are
written here. A lost process is replaced, and its task goes to another.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import secrets
import signal
import socket
import textwrap
import threading
import time
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import ray
from ray.exceptions import RayError, RayTaskError

from contam.detect.leases.seats import Seat, Try
from contam.errors import (
    AccessError,
    ContamError,
    IncompleteError,
    Plain,
    Public,
    UsageError,
)
from contam.files.uploads import place
from contam.memory import tune_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.detect.leases.cut import Lease
    from contam.detect.leases.jobs import Job, Outcome, Task, TaskWorker
    from contam.detect.leases.plan_folder import OpenPlan
    from contam.detect.leases.work import Work
    from contam.detect.scan import ScanProgress

_START_CLUSTER: Final = "start one with `ray start`, or check its address"


#: How often a task is given to a process.
ATTEMPTS: Final = 3
#: How often in a row a process may be lost before it has opened the plan.
_STARTS: Final = 3
#: Until a lost process is replaced: doubled with every loss in a row, up to the second, in seconds.
_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
#: Ray says much of a lost process.
_MOST_CHARACTERS: Final = 250
#: After which a cluster that has not started a process is spoken of, in seconds.
_PATIENCE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a process returns.

    node     id of the node it runs on;  host: what people call that
    refused  why it cannot do any task, "" where it can
    outcome  what a task gave
    """

    node: str
    host: str
    refused: str = ""
    outcome: Outcome | None = None

    @property
    def failures(self) -> tuple[tuple[int, str, str], ...]:
        """Shards that the task could not read."""
        return self.outcome.failures if self.outcome else ()


class _Worker:
    """What runs on the nodes. Nothing heavy is imported before memory is set up."""

    def __init__(self, threads: int) -> None:
        tune_command()
        self._threads = threads
        self._worker: TaskWorker | None = None

    def where(self) -> _Answer:
        """The node it was started on."""
        return self._answer()

    def open(self, name: str, job: str, files: Mapping[str, bytes]) -> _Answer:
        """Get ready for the tasks of a job, and have the kernels compiled.

        name   of the folder that the processes of a node share
        job    the place of the class of its workers, `module:name`
        files  what the job gives every node
        """
        from contam.detect.leases.node_folder import node_folder, write_files

        module, _, kind = job.partition(":")
        refused = ""
        try:
            # Arrays straight from Ray are read-only, for which the kernels would be compiled anew.
            with node_folder(name, lambda folder: write_files(folder, files)) as folder:
                self._worker = getattr(import_module(module), kind)(folder, self._threads)
        except (ContamError, OSError) as error:
            refused = str(error)
        return self._answer(refused=refused)

    def do(self, number: int) -> _Answer:
        """Do the task with this number."""
        try:
            return self._answer(outcome=self._ready().do(number))
        except AccessError as error:
            return self._answer(refused=str(error))

    def piece(self, name: str, begin: int) -> bytes:
        """Some bytes of a file of the last task, from a position on."""
        return self._ready().piece(name, begin)

    def _ready(self) -> TaskWorker:
        if self._worker is None:
            raise RuntimeError("the plan is not open")
        return self._worker

    def _answer(self, **found: Any) -> _Answer:  # noqa: ANN401 - the fields of an answer
        node = ray.get_runtime_context().get_node_id()
        return _Answer(node=node, host=platform.node(), **found)


def work_on_ray(
    opened: OpenPlan,
    leases: Sequence[Lease],
    parts: str | Path,
    *,
    address: str = "auto",
    workers: int | None = None,
    progress: ScanProgress | None = None,
) -> Work:
    """Write the parts of these leases, as `contam.detect.leases.work.work_on` does.

    A lease that three processes were lost with gets a part in which its shards were not read.

    address  of the cluster as `ray.init` takes it
    workers  threads of a process, as many processes as fit; None for 4, or what a node has

    Raises UsageError when no cluster answers, IncompleteError when none of its processes can work
    on the plan, OutputError as `work_on`.
    """
    from contam.detect.leases.jobs import ScanJob, Task
    from contam.detect.leases.parts_folder import claim_leases
    from contam.detect.leases.work import Work

    folder = place(parts)
    kept, waiting, replaced = claim_leases(opened, leases, folder)
    job = ScanJob(opened, folder, replaced)
    tasks = [Task(lease.number, lease.n_bytes) for lease in waiting]
    done = do_tasks(job, tasks, address, workers, progress)
    return Work(
        done=done,
        kept=tuple(lease.number for lease in kept),
        not_whole=job.not_whole,
        failures=job.failures,
    )


def do_tasks(
    job: Job,
    tasks: Sequence[Task],
    address: str,
    workers: int | None,
    progress: ScanProgress | None,
) -> tuple[int, ...]:
    """Do all tasks of a job; returns their numbers. The rest is as for `work_on_ray`."""
    run = _Run(job, tasks, progress)
    if progress is not None:
        progress.start(sum(task.n_bytes for task in tasks))
    if tasks:
        with _cluster(address):
            run.work(_seats(address, workers), job.files())
    if progress is not None:
        progress.finish()
    return tuple(sorted(run.done))


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[None]:
    """Be connected to a cluster; what was started there ends with the block."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address.startswith("ray://"):
        raise UsageError(
            "{}: only programs on a node of the cluster can be its drivers", Public(address),
            hint="run it on a node, for example with `ray job submit`",
        )  # fmt: skip
    in_main = threading.current_thread() is threading.main_thread()
    terminate = signal.getsignal(signal.SIGTERM)
    try:
        _answers(address)
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(
            "no Ray cluster at {}: {}", Public(address), Plain(_last_line(error)),
            hint=_START_CLUSTER,
        ) from error  # fmt: skip
    try:
        if in_main:
            # Ray has put its own in its place, which would leave drafts behind.
            signal.signal(signal.SIGTERM, terminate)
        # A thread of Ray's prints there what it knows of lost processes.
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        ray.shutdown()


def _answers(address: str) -> None:
    """Raise OSError when nobody listens at HOST:PORT: Ray would try it again and again."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        with socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S):
            pass


def _seats(address: str, workers: int | None) -> list[Seat]:
    """Room for processes on the nodes that there are."""
    cpus = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    from contam.detect.leases.local import THREADS

    most = workers or THREADS
    sizes = [min(most, n) for n in cpus if n for _ in range(max(1, n // most))]
    # The larger first: a small one fits beside them, but they not beside it.
    seats = [Seat(threads=size) for size in sorted(sizes, reverse=True)]
    if not seats:
        raise UsageError(
            "no node of the Ray cluster at {} has a CPU", Public(address),
            hint=_START_CLUSTER,
        )  # fmt: skip
    return seats


class _Run:
    """The tasks that are waiting, those that processes work on, and those that are done."""

    def __init__(self, job: Job, tasks: Sequence[Task], progress: ScanProgress | None) -> None:
        self.done: list[int] = []
        self._job = job
        self._waiting = [Try(task) for task in tasks]
        self._progress = progress
        self._seats: list[Seat] = []
        self._calls: dict[Any, Seat] = {}
        self._name = f"contam-plan-{secrets.token_hex(8)}"
        self._patience = 0.0
        self._unfit = ""

    def work(self, seats: list[Seat], files: Mapping[str, bytes]) -> None:
        """Do all tasks."""
        self._seats = seats
        self._patience = time.monotonic() + _PATIENCE_S
        try:
            plan = ray.put(files)
            del files
            while self._waiting or any(seat.task for seat in self._seats):
                if not self._seats:
                    raise IncompleteError(
                        "no process of the Ray cluster can work on the plan: {}",
                        Plain(self._unfit),
                        hint="every node needs contam, its packages and a folder to clean into",
                    )
                self._start()
                self._give_out()
                self._wait(plan)
        except RayError as error:
            raise IncompleteError(
                "the Ray cluster was lost: {}", Plain(_why(error)), hint=_START_CLUSTER
            ) from error
        finally:
            for seat in self._seats:
                self._end(seat)

    def _start(self) -> None:
        """Start a process on every seat that has none, once it is time."""
        for seat in self._seats:
            if seat.actor is None and seat.wake <= time.monotonic():
                # One that is lost is replaced here, not restarted by Ray: while Ray restarts one,
                # every call to it fails.
                remote = ray.remote(num_cpus=seat.threads, max_restarts=0, max_task_retries=0)
                seat.actor = remote(_Worker).remote(seat.threads)
                self._calls[seat.actor.where.remote()] = seat

    def _give_out(self) -> None:
        """Give tasks to all that are free, and end those that no other node can try."""
        nodes = {seat.node for seat in self._seats if seat.node}
        is_late = time.monotonic() > self._patience
        if is_late or all(seat.node for seat in self._seats):
            kept = [task for task in self._waiting if task.best is not None]
            for task in [task for task in kept if nodes <= task.nodes]:
                self._waiting.remove(task)
                self._finish(task)
        for seat in self._seats:
            if not seat.is_open or seat.task is not None:
                continue
            for task in self._waiting:
                if seat.node not in task.nodes or (nodes <= task.nodes and task.best is None):
                    self._waiting.remove(task)
                    task.attempts += 1
                    seat.task = task
                    self._calls[seat.actor.do.remote(task.task.number)] = seat
                    break

    def _wait(self, plan: Any) -> None:  # noqa: ANN401 - Ray has no types
        """Wait for an answer, or until it is time to start a process."""
        now = time.monotonic()
        wakes = [seat.wake for seat in self._seats if seat.actor is None]
        pause = max(0.0, min(wakes, default=now + _PATIENCE_S) - now)
        if not self._calls:
            time.sleep(pause)
            return
        ready, _ = ray.wait(list(self._calls), timeout=min(pause, _PATIENCE_S))
        for call in ready:
            seat = self._calls.pop(call)
            try:
                self._take(seat, ray.get(call), plan)
            except RayError as error:
                self._lose(seat, _why(error))
        if not ready and now > self._patience and not any(seat.node for seat in self._seats):
            self._patience = now + _PATIENCE_S
            self._note("no node of the Ray cluster has had CPUs free yet: waiting")

    def _take(self, seat: Seat, answer: _Answer, plan: Any) -> None:  # noqa: ANN401 - as above
        """Note what a process has answered."""
        if not seat.node:
            seat.node = answer.node
            kind = self._job.worker
            self._calls[
                seat.actor.open.remote(self._name, f"{kind.__module__}:{kind.__name__}", plan)
            ] = seat
            return
        task = seat.task
        if task is None:
            seat.is_open = True
            if answer.refused:
                self._dismiss(seat, f"{answer.host}: {answer.refused}")
            return
        outcome = answer.outcome
        if outcome is None:  # without access to the store, no task can be done there
            task.attempts -= 1
            seat.lost, seat.task = 0, None
            self._waiting.insert(0, task)
            self._dismiss(seat, f"{answer.host}: {answer.refused}")
            return
        first, n_failed = task.best is None, len(answer.failures)
        if task.best is None or n_failed <= task.best:
            self._job.finish(
                task.task.number,
                outcome,
                lambda name, begin: bytes(ray.get(seat.actor.piece.remote(name, begin))),
            )
            task.best = n_failed
        seat.lost, seat.task = 0, None
        if n_failed and first:
            # Perhaps another node has the files.
            _, shard, reason = answer.failures[0]
            self._note(f"{answer.host} cannot read {shard}, another node tries: {reason}")
            task.nodes.add(answer.node)
            self._waiting.append(task)
        else:
            self._finish(task)

    def _lose(self, seat: Seat, reason: str) -> None:
        """Put the task of a lost process back; the seat gets another process later."""
        node = seat.node
        self._end(seat)
        seat.lost += 1
        pause = min(_LONGEST_PAUSE_S, _PAUSE_S * 2.0 ** (seat.lost - 1))
        seat.wake = time.monotonic() + pause
        task, seat.task = seat.task, None
        if task is None:
            if seat.lost >= _STARTS:
                self._dismiss(seat, reason)
            return
        task.reason = reason
        task.nodes.add(node)
        if task.attempts < ATTEMPTS:
            name = f"{self._job.noun} {task.task.number}"
            self._note(f"{name}: a process was lost, another does it: {reason}")
            self._waiting.insert(0, task)
        else:
            self._finish(task)

    def _finish(self, task: Try) -> None:
        """Count a task; one that gave no answer was not done."""
        number = task.task.number
        if task.best is None:
            reason = f"{self._job.noun} {number} was lost {task.attempts} times: {task.reason}"
            self._job.give_up(number, reason)
        self.done.append(number)
        if self._progress is not None:
            self._progress.advance(task.task.n_bytes)

    def _dismiss(self, seat: Seat, reason: str) -> None:
        """Do without a seat on which no process can work."""
        self._end(seat)
        self._seats.remove(seat)
        self._unfit = reason
        self._note(f"a process of the Ray cluster is left out: {reason}")

    @staticmethod
    def _end(seat: Seat) -> None:
        """End the process of a seat."""
        if seat.actor is not None:
            with contextlib.suppress(RayError):
                ray.kill(seat.actor)
        seat.actor, seat.node, seat.is_open = None, "", False

    def _note(self, message: str) -> None:
        if self._progress is not None:
            self._progress.note(message)


def _why(error: BaseException) -> str:
    """What an error of Ray says, in a line."""
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        return f"{type(error.cause).__name__}: {_last_line(error.cause)}"
    return _last_line(error)


def _last_line(error: BaseException) -> str:
    """What an error of Ray says in the end: the lines before are where it came from."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = lines[-1] if lines else type(error).__name__
    return textwrap.shorten(line, _MOST_CHARACTERS, placeholder=" ...")
