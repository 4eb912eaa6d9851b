"""Find how a tool averaged a group of tasks, and average the same way without items.

lm-eval does not record whether a group weighs its tasks by size or counts each once; the reported
number shows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from contam.errors import LogError, Public
from contam.rescore.logs.model import close

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contam.rescore.arrays import Bools
    from contam.rescore.logs.model import Log

Weighting = Literal["micro", "macro", "unknown"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskGroup:
    """One group number of one run.

    logs       the runs of its tasks, () when one is missing
    weighting  "micro" weighs items alike, "macro" tasks alike; "unknown" when it cannot be told
    note       why it cannot be scored again, or that both ways gave the reported number
    """

    name: str
    model: str
    metric: str
    reported: float
    logs: tuple[Log, ...]
    weighting: Weighting
    note: str = ""

    def aggregate(self, masks: Sequence[Bools]) -> float:
        """The group's number over a mask of items per log; nan when a task has no item left."""
        if self.weighting == "unknown":
            raise LogError("group {} cannot be scored again: {}", self.name, Public(self.note))
        return _average(self.logs, self.metric, masks, self.weighting)


def find_groups(logs: Iterable[Log]) -> tuple[TaskGroup, ...]:
    """All group numbers that the logs' own results files report, by model, run and group."""
    runs: dict[tuple[str, str | None], list[Log]] = {}
    for log in logs:
        if log.claims:
            runs.setdefault((log.model, log.run_id), []).append(log)
    found = []
    for (model, _), members in runs.items():
        by_task = {log.benchmark: log for log in members}
        claims = dict.fromkeys(claim for log in members for claim in log.claims)
        for claim in claims:
            missing = [task for task in claim.tasks if task not in by_task]
            chosen = tuple(by_task[task] for task in claim.tasks if task in by_task)
            weighting, note = _weighting(chosen, claim.metric, claim.reported, missing)
            found.append(
                TaskGroup(
                    name=claim.group,
                    model=model,
                    metric=claim.metric,
                    reported=claim.reported,
                    logs=() if missing else chosen,
                    weighting=weighting,
                    note=note,
                )
            )
    return tuple(found)


def _weighting(
    logs: Sequence[Log], metric: str, reported: float, missing: Sequence[str]
) -> tuple[Weighting, str]:
    if missing:
        return "unknown", f"no log of {', '.join(missing)}"
    columns = {log.benchmark: [c for c in log.columns if c.metric == metric] for log in logs}
    without = [task for task, own in columns.items() if not own or own[0].kind != "mean"]
    if without:
        return "unknown", f"no mean of {metric} in {', '.join(without)}"
    masks = [np.ones(len(log.items), np.bool_) for log in logs]
    fits: list[Weighting] = [
        way for way in ("micro", "macro") if close(_average(logs, metric, masks, way), reported)
    ]
    if not fits:
        return "unknown", f"neither way of averaging its tasks gives the reported {reported:.6g}"
    return fits[0], "" if len(fits) == 1 else "both ways of averaging give the reported number"


def _average(logs: Sequence[Log], metric: str, masks: Sequence[Bools], way: str) -> float:
    means, weights = [], []
    for log, mask in zip(logs, masks, strict=True):
        column = log.column(metric)
        means.append(column.aggregate(mask))
        weights.append(int(np.count_nonzero(mask & column.scored)) if way == "micro" else 1)
    if way == "micro":
        # A task without an item left weighs nothing.
        means = [mean if weight else 0.0 for mean, weight in zip(means, weights, strict=True)]
    total = sum(weights)
    return (
        math.fsum(m * w for m, w in zip(means, weights, strict=True)) / total if total else math.nan
    )
