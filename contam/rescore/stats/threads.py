"""Run independent parts of a re-scoring in threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
R = TypeVar("R")


def in_threads(work: Callable[[T], R], tasks: Iterable[T]) -> list[R]:
    """The results in the order of the tasks, the same for any number of processors.

    `work` must not draw from a generator that another task draws from.
    """
    workers = len(os.sched_getaffinity(0))
    if workers == 1:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, tasks))
