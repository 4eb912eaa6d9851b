"""Many tests at once: p-values adjusted over the family they were made in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from statsmodels.stats.multitest import multipletests

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def holm(p: Floats) -> Floats:
    """Holm's adjusted p, for "is any of these real"; entries that are not a number stay so."""
    return _adjusted(p, "holm")


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's adjusted p, for screening; entries that are not a number stay so."""
    return _adjusted(p, "fdr_bh")


def benjamini_yekutieli(p: Floats) -> Floats:
    """Benjamini and Yekutieli's adjusted p, where the tests depend on one another."""
    return _adjusted(p, "fdr_by")


def adjust(
    rows: Sequence[dict[str, Any]],
    columns: Sequence[str],
    family: Callable[[dict[str, Any]], Hashable],
) -> None:
    """Put Holm's and Benjamini and Hochberg's p beside each raw one: NAME_holm and NAME_bh.

    family  what is equal for rows that are tested together
    """
    together: dict[Hashable, list[dict[str, Any]]] = {}
    for row in rows:
        together.setdefault(family(row), []).append(row)
    for own in together.values():
        for name in columns:
            p = np.array([row[name] for row in own], np.float64)
            for row, first, second in zip(own, holm(p), benjamini_hochberg(p), strict=True):
                row[f"{name}_holm"], row[f"{name}_bh"] = float(first), float(second)


def _adjusted(p: Floats, method: str) -> Floats:
    result = np.full(len(p), np.nan)
    known = ~np.isnan(p)
    if known.any():
        result[known] = multipletests(p[known], method=method)[1]
    return result
