"""Run workers on threads that stop when the caller does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Generator

Found = TypeVar("Found")


def on_threads(
    work: Callable[[], Found], n: int, stop: threading.Event
) -> Generator[Found, None, None]:
    """What each of n workers returns, as they end; `stop` is set when no more is wanted.

    Raises what a worker raises. Every worker has ended when the generator is closed.
    """
    pool = ThreadPoolExecutor(max_workers=n, thread_name_prefix="contam")
    try:
        for future in as_completed([pool.submit(work) for _ in range(n)]):
            yield future.result()
    finally:
        # Also on Ctrl-C: no thread may go on reading when the caller is gone.
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
