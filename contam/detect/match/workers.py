"""Run workers on threads that stop when the caller does."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, TypeVar

from contam.errors import UsageError
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
