"""Flip metrics of which less is better, and flip their figures back.

All statistics then read one way only: a higher score is better. A share s becomes 1 - s, so that it
stays a share; any other score becomes -s. What tables show is in the metric's own units again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from contam.errors import InternalError
from contam.rescore.stats.gain import plain_relative_difference, relative_difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from contam.rescore.panel import Series

    Row = dict[str, Any]
    Bools = NDArray[np.bool_]

LEVELS: Final = frozenset({"full", "clean", "flagged", "clean_with_unchecked", "bound"})
"""Figures that are scores; with `_lo` and `_hi`, or `_low` and `_high`, their limits."""

SIGNED: Final = frozenset(
    {
        *("epg", "epg_z", "epg_z_nested", "difference_full", "difference_clean"),
        *("raw", "adjusted", "gain"),
        *("llama2_z_clean", "llama2_z_not_clean", "llama2_z_not_dirty", "llama2_z_dirty"),
    }
)
"""Differences of scores and their statistics; with `_lo` and `_hi` their limits."""

_RELATIVE: Final[dict[str, Callable[[float, float], float]]] = {
    "relative_difference": relative_difference,
    "plain_relative_difference": plain_relative_difference,
}
_ENDS: Final = (("_lo", "_hi"), ("_low", "_high"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """Series of which a higher score is better, all of them.

    offsets  (benchmark, metric) of those that were turned -> what their scores were taken from
    """

    series: tuple[Series, ...]
    offsets: Mapping[tuple[str, str], float]

    def back(self, rows: Iterable[Row]) -> list[Row]:
        """Rows of a table in the units of their metrics, with `higher_is_better`."""
        found = []
        for row in rows:
            offset = self.offsets.get((row["benchmark"], row["metric"]))
            own = row if offset is None else _back(row, offset)
            found.append({**own, "higher_is_better": offset is None})
        return found


def turned(series: Sequence[Series]) -> Turned:
    """Turn what counts downwards; one offset for all models of a benchmark and metric."""
    shares: dict[tuple[str, str], bool] = {}
    for run in series:
        if not run.higher_is_better:
            key = (run.benchmark, run.metric)
            shares[key] = shares.get(key, True) and run.is_share
    offsets = {key: 1.0 if share else 0.0 for key, share in shares.items()}
    found = []
    for run in series:
        key = (run.benchmark, run.metric)
        if run.higher_is_better and key in offsets:
            raise InternalError(f"{run.metric} of {run.benchmark} counts both ways")
        found.append(run if run.higher_is_better else _turned(run, offsets[key]))
    return Turned(series=tuple(found), offsets=offsets)


def _turned(series: Series, offset: float) -> Series:
    def aggregate(mask: Bools) -> float:
        return offset - series.aggregate(mask)

    return replace(series, score=offset - series.score, aggregate=aggregate, higher_is_better=True)


def _back(row: Row, offset: float) -> Row:
    found = dict(row)
    for name, value in row.items():
        base, other = _limit(name)
        if base in LEVELS:
            found[other] = _minus(offset, value)
        elif base in SIGNED:
            found[other] = _minus(0.0, value)
    for name, relative in _RELATIVE.items():
        if name in row:
            found[name] = relative(found["full"], found["clean"])
    return found


def _limit(name: str) -> tuple[str, str]:
    """What a column is a limit of, and the column that its turned value belongs in."""
    for low, high in _ENDS:
        for end, other in ((low, high), (high, low)):
            base = name.removesuffix(end)
            if base != name:
                return base, base + other
    return name, name


def _minus(offset: float, value: float | None) -> float | None:
    if value is None or math.isnan(value):
        return value
    # Not -0.0, which reads as if something were lost.
    return offset - value + 0.0
