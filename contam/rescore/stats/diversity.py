"""Measure how differently tasks rank the models: Kendall's W, exact and as published.

Tables are float64[models, tasks], a higher score is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.rescore.stats.average_ranks import average_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_HAIR: Final = 1e-8
_TWO: Final = 2
_NAN: Final = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """One minus Kendall's W of T tasks that rank m models: 0 when all agree, 1 when none do.

    exact          of average ranks; tie_corrected  what ties take from the largest W given back
    published      with the ranks cut to whole numbers first, as BenchBench's code has it
    mean_change    mean over pairs of tasks of the largest change of rank over m - 1, which
                   BenchBench calls max_MRC; max_change  the largest over pairs
    """

    exact: float
    tie_corrected: float
    published: float
    mean_change: float
    max_change: float


def near_ranks(scores: Floats) -> Floats:
    """Average ranks, 1 for the highest; neighbours closer than 1e-8 tie, whatever rounding did."""
    order = np.argsort(-scores, kind="stable")
    fresh = np.append(True, np.diff(-scores[order]) > _HAIR)
    group = np.empty(len(scores), np.int64)
    group[order] = np.cumsum(fresh)
    return average_ranks(group)


def diversity(table: Floats) -> Diversity:
    """Of a table without gaps; nan for fewer than two models or two tasks.

    tie_corrected is nan where every task ties all models.
    """
    m, n_tasks = table.shape
    if m < _TWO or n_tasks < _TWO:
        return Diversity(
            exact=_NAN, tie_corrected=_NAN, published=_NAN, mean_change=_NAN, max_change=_NAN
        )
    ranks = np.array([near_ranks(task) for task in table.T])
    ties = 0.0
    for own in ranks:
        sizes = np.unique(own, return_counts=True)[1].astype(np.float64)
        ties += float((sizes**3 - sizes).sum())
    most = n_tasks**2 * (m**3 - m)
    left = most - n_tasks * ties
    spread = _spread(ranks)
    changes = [
        float(np.abs(ranks[a] - ranks[b]).max()) / (m - 1) for a in range(n_tasks) for b in range(a)
    ]
    return Diversity(
        exact=1 - spread / most,
        tie_corrected=1 - spread / left if left > 0 else _NAN,
        published=1 - _spread(np.floor(ranks)) / most,
        mean_change=float(np.mean(changes)),
        max_change=max(changes),
    )


def _spread(ranks: Floats) -> float:
    """12 S, S the squared deviations of the models' rank sums from their mean."""
    sums = ranks.sum(axis=0)
    return 12 * float(((sums - sums.mean()) ** 2).sum())
