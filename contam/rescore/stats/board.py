"""Measure a board of many tasks: diversity, sensitivity with its witnesses, weak-model effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.rescore.stats.diversity import Diversity, diversity
from contam.rescore.stats.ranking import win_shares
from contam.rescore.stats.sensitivity import (
    Change,
    Witness,
    in_field,
    search_field,
    search_weights,
    top_fifth,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_TWO: Final = 2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Board:
    """What a table of scores, float64[models, tasks], says of itself.

    whole      int64[], the models with a score on every task: diversity and cardinal are of these
    diversity, cardinal  None where fewer than two of them are left
    top        int64[], the fifth that wins most often, best first
    ordinal    which field moves the order of the top most; weak_models  what the whole field does
               to it. Both None where a fifth of the models is no two
    """

    whole: Ints
    diversity: Diversity | None
    cardinal: Witness | None
    top: Ints
    ordinal: Witness | None
    weak_models: Change | None


def measured(table: Floats, *, seed: int = 0, cardinal: bool = True) -> Board:
    """Measure a table of two tasks or more, nan for a gap; a higher score is better.

    cardinal  whether a mean over tasks means anything, and weights of them are searched for
    """
    whole = np.flatnonzero(~np.isnan(table).any(axis=1)).astype(np.int64)
    enough = len(whole) >= _TWO
    top = top_fifth(table)
    ranked = len(top) >= _TWO
    return Board(
        whole=whole,
        diversity=diversity(table[whole]) if enough else None,
        cardinal=search_weights(table[whole]) if enough and cardinal else None,
        top=top,
        ordinal=search_field(table, top, seed=seed) if ranked else None,
        weak_models=(in_field(win_shares(table), top, np.arange(len(table))) if ranked else None),
    )
