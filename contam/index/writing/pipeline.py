"""Process chunks on threads and return their results in order."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
R = TypeVar("R")

MOST_WAITING_BYTES = 16 << 20
"""Results of one task that may wait to be taken; one of any size is let in when none waits."""


class Stopped(Exception):  # noqa: N818 - not an error: whoever waited for the results has gone
    """The results of a task are wanted no more."""


@dataclass(frozen=True, slots=True, eq=False)
class _Failure:
    error: BaseException


class _Stream(Generic[R]):
    """Results of one task, from the thread that makes them to the one that takes them."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._unwanted = False
        self._changed = threading.Condition()
        self._waiting: deque[tuple[R | _Failure | None, int]] = deque()
        self._n_bytes = 0

    def put(self, result: R, n_bytes: int) -> None:
        with self._changed:
            while self._waiting and self._n_bytes + n_bytes > MOST_WAITING_BYTES:
                self._check_wanted()
                self._changed.wait(0.1)
            self._check_wanted()
            self._push(result, n_bytes)

    def drop(self) -> None:
        with self._changed:
            self._unwanted = True
            self._waiting.clear()
            self._changed.notify_all()

    def _check_wanted(self) -> None:
        if self._unwanted or self._stop.is_set():
            raise Stopped

    def end(self, error: BaseException | None = None) -> None:
        with self._changed:
            self._push(None if error is None else _Failure(error), 0)

    def _push(self, result: R | _Failure | None, n_bytes: int) -> None:
        self._waiting.append((result, n_bytes))
        self._n_bytes += n_bytes
        self._changed.notify_all()

    def __iter__(self) -> Iterator[R]:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                result, n_bytes = self._waiting.popleft()
                self._n_bytes -= n_bytes
                self._changed.notify_all()
            if result is None:
                return
            if isinstance(result, _Failure):
                raise result.error
            yield result


class Pipeline(Generic[T, R]):
    """Tasks that threads work on in their order; see `running`."""

    def __init__(self, tasks: Sequence[T]) -> None:
        self.stop = threading.Event()
        self._streams: deque[_Stream[R]] = deque(_Stream(self.stop) for _ in tasks)
        self._todo = iter(list(zip(tasks, self._streams, strict=True)))
        self._lock = threading.Lock()

    def results(self) -> Iterator[R]:
        """The results of the next task, in its order; raises what the task raised."""
        yield from self._streams.popleft()

    def skip(self) -> None:
        """Drop the next task: its results are not needed."""
        self._streams.popleft().drop()

    def work(self, do: Callable[[T, Callable[[R, int], None]], None]) -> None:
        """Take tasks until there are none; `do(task, put)` makes the results of one."""
        while not self.stop.is_set():
            with self._lock:
                task, stream = next(self._todo, (None, None))
            if task is None or stream is None:
                return
            try:
                do(task, stream.put)
            except Stopped:
                continue
            except BaseException as error:  # noqa: BLE001 - raised again where results are taken
                stream.end(error)
            else:
                stream.end()


@contextmanager
def running(
    tasks: Sequence[T],
    workers: int,
    make: Callable[[], Callable[[T, Callable[[R, int], None]], None]],
) -> Iterator[Pipeline[T, R]]:
    """Work on the tasks while the block runs, at most a bounded amount of results ahead of it.

    make  called once a thread, here, for the function that works there: `do(task, put)`, which
          hands results over by `put(result, n_bytes)`
    """
    pipeline: Pipeline[T, R] = Pipeline(tasks)
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="contam-index")
    try:
        for _ in range(min(workers, len(tasks))):
            pool.submit(pipeline.work, make())
        yield pipeline
    finally:
        # Also on Ctrl-C: no thread may go on reading when the caller is gone.
        pipeline.stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
