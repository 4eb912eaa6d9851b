"""Adjust p over a family of tests, and run independent ones at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from contam.memory import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from contam.rescore.arrays import Floats


def holm(p: Floats) -> Floats:
    """Holm's adjusted p, for "is any of these real"; entries that are not a number stay so."""
    return _of_known(p, _holm)


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's adjusted p, for screening; entries that are not a number stay so."""
    return _of_known(p, _benjamini_hochberg)


def adjust(
    rows: Sequence[dict[str, Any]],
    columns: Sequence[str],
    family: Callable[[dict[str, Any]], Hashable],
    by: Sequence[str] = ("holm", "bh"),
) -> None:
    """Put Holm's and Benjamini and Hochberg's p beside each raw one: NAME_holm and NAME_bh.

    family  what is equal for rows that are tested together; a row may lack a p
    """
    together: dict[Hashable, list[dict[str, Any]]] = {}
    for row in rows:
        together.setdefault(family(row), []).append(row)
    for own in together.values():
        for name in columns:
            p = np.array([row.get(name, np.nan) for row in own], np.float64)
            for way in by:
                adjusted = (holm if way == "holm" else benjamini_hochberg)(p)
                for row, value in zip(own, adjusted.tolist(), strict=True):
                    row[f"{name}_{way}"] = value


def _of_known(p: Floats, adjusted: Callable[[Floats], Floats]) -> Floats:
    result = np.full(len(p), np.nan)
    known = ~np.isnan(p)
    if known.any():
        result[known] = adjusted(p[known])
    return result


def _holm(p: Floats) -> Floats:
    order = np.argsort(p, kind="stable")
    # The smallest is multiplied by all tests, the next by one less; none falls below one before it.
    raised = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty(len(p))
    result[order] = np.minimum(raised, 1.0)
    return result


def _benjamini_hochberg(p: Floats) -> Floats:
    order = np.argsort(p, kind="stable")[::-1]
    # The largest stays as it is, the j-th smallest of m is multiplied by m / j; none exceeds the
    # one after it.
    raised = np.minimum.accumulate(p[order] * (len(p) / np.arange(len(p), 0, -1)))
    result = np.empty(len(p))
    result[order] = np.minimum(raised, 1.0)
    return result


T = TypeVar("T")
R = TypeVar("R")


def in_threads(work: Callable[[T], R], tasks: Iterable[T]) -> list[R]:
    """The results in the order of the tasks, the same for any number of processors.

    `work` must not draw from a generator that another task draws from.
    """
    workers = usable_cores()
    if workers == 1:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, tasks))
