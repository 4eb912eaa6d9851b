"""Run workers on threads that stop when the caller does, or soon after a deadline."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from contam.errors import UsageError
from contam.kernels.match_rows import NO_LIMIT
from contam.memory import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence


Found = TypeVar("Found")
Task = TypeVar("Task")


#: Threads of a run.
_MOST_WORKERS = 64


def worker_count(workers: int | None) -> int:
    """Threads to use; None is one a core. Raises UsageError."""
    if workers is None:
        return max(1, min(_MOST_WORKERS, usable_cores()))
    if not 1 <= workers <= _MOST_WORKERS:
        raise UsageError(
            "workers must be 1 to {}, not {}",
            _MOST_WORKERS,
            workers,
            hint="leave it out for one per core",
        )
    return workers


def on_threads(
    work: Callable[[Iterator[Task], threading.Event], Found], tasks: Sequence[Task], workers: int
) -> Generator[Found, None, None]:
    """What each worker returns, as they end.

    work     gets the tasks that no other worker has taken, one by one, and an event that is set
             when its result is no longer wanted
    workers  threads, at most one a task

    Raises what a worker raises. Every worker has ended when the generator is closed.
    """
    stop = threading.Event()
    lock = threading.Lock()
    waiting = iter(tasks)

    def taken() -> Iterator[Task]:
        while not stop.is_set():
            with lock:
                task = next(waiting, None)
            if task is None:
                return
            yield task

    n_threads = max(1, min(workers, len(tasks)))
    pool = ThreadPoolExecutor(max_workers=n_threads, thread_name_prefix="contam")
    try:
        futures = [pool.submit(work, taken(), stop) for _ in range(n_threads)]
        for future in as_completed(futures):
            yield future.result()
    finally:
        # Also on Ctrl-C: no thread may go on reading when the caller is gone.
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


REASON: Final = "deadline"
"""Why an item is `not_checkable` whose question was not answered in time."""


MOST_STEPS: Final = 1_000_000_000
"""A second or two: what is to be answered in time and needs more for a few documents is late.

Steps and not time, so that an item which no time would do for is late wherever it is asked.
"""


class DeadlinePassed(Exception):  # noqa: N818 - no error: the question is answered with it
    """The time is over; the caller makes an answer of that."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment, in seconds of `time.monotonic`; None for never."""

    at: float | None = None

    @property
    def most_steps(self) -> int:
        """Steps that may be spent on one batch of documents without a look at the clock."""
        return NO_LIMIT if self.at is None else MOST_STEPS

    def check(self) -> None:
        """Raise DeadlinePassed when the moment is there."""
        if self.at is not None and time.monotonic() >= self.at:
            raise DeadlinePassed


NO_DEADLINE: Final = Deadline()
