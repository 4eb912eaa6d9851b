"""Find judged items that a log has no score for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import LogError, Place, Public, Remedy
from contam.tables.schemas import column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from contam.rescore.logs.model import Log
    from contam.tables.schemas import Table

    Ints = NDArray[np.int64]

MOST_MISSING: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Items of one split of one benchmark without a score, and how many were judged."""

    benchmark: str
    split: str
    n_missing: int
    n_items: int


class ResultItems:
    """The items of a result by benchmark and split, identified by content."""

    def __init__(self, items: Table) -> None:
        sets = list(zip(column(items, "benchmark"), column(items, "split"), strict=True))
        self._sets = sorted(set(sets))
        places = {name: at for at, name in enumerate(self._sets)}
        self._set: Ints = np.array([places[name] for name in sets], np.int64)
        self._key: Ints = np.unique(
            np.array(column(items, "item_key"), np.str_), return_inverse=True
        )[1].astype(np.int64)
        pairs = np.unique(np.stack([self._key, self._set]), axis=1)
        # An item that two benchmarks hold does not tell which of them a log is of.
        self._alone = np.bincount(pairs[0])[self._key] == 1

    def missing(self, rows: Ints, met: Ints | None = None) -> Iterator[Missing]:
        """What the sets met lack besides these rows of the items table; sets that lack nothing too.

        met  the rows that tell which sets are meant, where these are only a part of them

        A set is met when an item that only it holds is among them, or, where no item tells its
        set, when any is.
        """
        met = rows if met is None else met
        own = met[self._alone[met]]
        there = np.zeros(int(self._key.max(initial=-1)) + 1, np.bool_)
        there[self._key[rows]] = True
        absent = np.bincount(self._set[~there[self._key]], minlength=len(self._sets))
        sizes = np.bincount(self._set, minlength=len(self._sets))
        for at in np.unique(self._set[own if len(own) else met]).tolist():
            benchmark, split = self._sets[at]
            yield Missing(
                benchmark=benchmark,
                split=split,
                n_missing=int(absent[at]),
                n_items=int(sizes[at]),
            )


def refuse_partial(log: Log, index: Ints, judged: ResultItems) -> None:
    """Demand a score for all but 1 % of the items, where the tool reports no number to check by.

    index  int64[n], places of the log's items in the result, -1 for none

    Raises LogError with both counts. A tool's own number that its rows give again shows that the
    rows are all it scored, so a run over a part of a benchmark is then no error.
    """
    if any(scores.reported is not None or scores.reported_n is not None for scores in log.columns):
        return
    for scores in log.columns:
        if scores.kind == "none":
            continue
        known = index >= 0
        for found in judged.missing(index[known & scores.scored], index[known]):
            if found.n_missing > MOST_MISSING * found.n_items:
                raise LogError(
                    "{}: {} has no {} for {} of the {} items of {} that were judged",
                    Place(log.path), Public(log.model), Public(scores.metric), found.n_missing,
                    found.n_items, Public(found.benchmark), remedy=Remedy.ALLOW_PARTIAL,
                )  # fmt: skip
