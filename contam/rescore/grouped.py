"""Score groups of tasks as one series, weighted as the tool weights them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import LogError, Public, Remedy
from contam.rescore.logs.groups import find_groups
from contam.rescore.logs.setup import combined
from contam.rescore.panel import Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.rescore.logs.groups import TaskGroup
    from contam.rescore.logs.model import Log

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

GROUP: Final = "group"
"""What a row of a group's scores is a subset by; the subset is the weighting."""


def group_series(
    logs: Sequence[Log], indices: Mapping[int, Ints], model_of: Callable[[Log], str]
) -> Iterator[tuple[str, Series]]:
    """The weighting of each reported group number, and its series; "unknown" has no item.

    indices  id of a log -> int64[n], places of its items in the result
    """
    taken = {log.benchmark for log in logs}
    for group in find_groups(logs):
        name = f"{group.name} (group)" if group.name in taken else group.name
        model = model_of(group.logs[0]) if group.logs else group.model
        if group.weighting == "unknown":
            nothing = np.empty(0, np.int64)
            series = Series.unscored(model, name, group.metric, nothing, group.note)
            yield group.weighting, series
            continue
        masks = [log.column(group.metric).scored for log in group.logs]
        pairs = list(zip(group.logs, masks, strict=True))
        notes = (_weighed(group), *((group.note,) if group.note else ()))
        yield (
            group.weighting,
            Series(
                model=model,
                benchmark=name,
                metric=group.metric,
                score=np.concatenate([log.column(group.metric).score[m] for log, m in pairs]),
                item=np.concatenate([indices[id(log)][m] for log, m in pairs]),
                aggregate=_aggregate_of(group, masks),
                additive=group.weighting == "micro",
                notes=notes,
                strata=np.repeat(np.arange(len(masks)), [int(mask.sum()) for mask in masks]),
                higher_is_better=_higher(group),
                setup=combined([log.setup for log in group.logs]),
            ),
        )


def _higher(group: TaskGroup) -> bool:
    """Which way a group's metric counts: that of its tasks, which must agree."""
    found = {log.column(group.metric).higher_is_better is not False for log in group.logs}
    if len(found) > 1:
        raise LogError(
            "the tasks of {} do not agree whether a higher {} is better", group.name,
            Public(group.metric), remedy=Remedy.SAY_DIRECTION(metric=Public(group.metric)),
        )  # fmt: skip
    return found.pop()


def _weighed(group: TaskGroup) -> str:
    how = "every item alike" if group.weighting == "micro" else "every task alike"
    return f"{len(group.logs)} tasks, {how}"


def _aggregate_of(group: TaskGroup, masks: Sequence[Bools]) -> Callable[[Bools], float]:
    """The group's number over a mask of its scored items, the tasks one after the other."""
    cuts = np.cumsum([int(mask.sum()) for mask in masks])[:-1]

    def aggregate(chosen: Bools) -> float:
        whole = []
        for mask, part in zip(masks, np.split(chosen, cuts), strict=True):
            kept = np.zeros(len(mask), np.bool_)
            kept[np.flatnonzero(mask)[part]] = True
            whole.append(kept)
        return group.aggregate(whole)

    return aggregate
