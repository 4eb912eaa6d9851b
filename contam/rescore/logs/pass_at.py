"""pass@k of tasks that a model tried several times."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.rescore.logs.model import ScoreColumn, mean_column

if TYPE_CHECKING:
    from collections.abc import Sequence

KS: Final = (1, 2, 5, 10, 50, 100)


def pass_at_columns(
    tries: Sequence[Sequence[bool]], ending: str = "", reported: dict[str, float] | None = None
) -> tuple[ScoreColumn, ...]:
    """A column per k that every task was tried often enough for.

    tries  per task whether each sample passed;  ending  put behind the metric's name
    """
    fewest = min(map(len, tries), default=0)
    return tuple(
        _column(k, tries, ending, (reported or {}).get(f"pass@{k}")) for k in KS if k <= fewest
    )


def _column(
    k: int, tries: Sequence[Sequence[bool]], ending: str, reported: float | None
) -> ScoreColumn:
    """The unbiased estimate of Chen et al. (2021): 1 - C(n - c, k) / C(n, k), per task."""
    counts = [(len(values), sum(values)) for values in tries]
    score = [(comb(n, k) - comb(n - right, k)) / comb(n, k) for n, right in counts]
    return mean_column(
        f"pass@{k}{ending}",
        np.array(score, np.float64),
        repeats=np.array([n for n, _ in counts], np.int32),
        reported=reported,
        higher_is_better=True,
    )
