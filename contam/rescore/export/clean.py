"""Write clean scores of lm-eval logs in the shape of its results file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.detect.labels import CLEAN
from contam.rescore.logs.groups import find_groups
from contam.rescore.logs.log_files import as_dict
from contam.rescore.logs.tools.lm_eval import results_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.rescore.arrays import Bools, Row
    from contam.rescore.export.evaluator import LabelledLog
    from contam.rescore.logs.model import ScoreColumn


FORMAT: Final = 1
_BY_TASK: Final = ("versions", "n-shot", "higher_is_better")
_NO_ERROR: Final = "N/A"


def clean_results(judged: Sequence[LabelledLog], about: Row) -> Row:
    """The clean scores of the tasks of one run.

    judged  every task of the run;  about  what judged them, as it is to be told

    What lm-eval has in a results file has its name and form here, so that whatever prints such a
    file (`lm_eval.utils.make_table`) prints this; `full` has the scores of the whole tasks beside
    them. A score that cannot be made again, or has no clean item, is null, its standard error
    "N/A", as lm-eval writes one that it does not have; `notes` says why.
    """
    document = results_of(judged[0].log)
    results: Row = {}
    full: Row = {}
    samples: Row = {}
    items: Row = {}
    labels: Row = {}
    notes: list[str] = []
    for log in judged:
        task = log.log.benchmark
        clean = log.label == CLEAN
        whole = np.ones(len(clean), np.bool_)
        results[task] = _scores(log, clean)
        full[task] = _scores(log, whole)
        samples[task] = {"original": len(clean), "effective": int(clean.sum())}
        items[task] = log.counts
        labels[task] = log.not_clean
        notes += [f"{task}: {c.metric}: {c.note}" for c in log.log.columns if c.note]
        notes += log.notes
        if not clean.any():
            notes.append(f"{task}: none of its {len(clean)} items is clean")
    groups, reasons = _groups(judged)
    # lm-eval has the numbers of groups in both places.
    results |= {name: dict(own) for name, own in groups.items()}
    told = as_dict(document.get("results")) | as_dict(document.get("groups"))
    for own_rows in (results, groups):
        for name, own in own_rows.items():
            if (alias := as_dict(told.get(name)).get("alias")) is not None:
                own["alias"] = alias
    return {
        "tool": "contam",
        "format": FORMAT,
        **about,
        "policy": judged[0].policy,
        "model_name": judged[0].log.model,
        "results": results,
        "groups": groups,
        "group_subtasks": as_dict(document.get("group_subtasks")),
        **{name: _known(document, name, results) for name in _BY_TASK},
        "n-samples": samples,
        "items": items,
        "full": full,
        "not_clean": labels,
        "notes": [*notes, *reasons],
    }


def _known(document: Row, name: str, tasks: Row) -> Row:
    """What a results file says of these tasks and groups under a name."""
    return {task: value for task, value in as_dict(document.get(name)).items() if task in tasks}


def _scores(log: LabelledLog, mask: Bools) -> Row:
    found: Row = {}
    for column in log.log.columns:
        metric, _, rest = column.metric.partition(",")
        value, error = (math.nan, math.nan)
        if column.kind != "none":
            value, error = column.aggregate(mask), _error(column, mask)
        found[column.metric] = _or_none(value)
        found[f"{metric}_stderr,{rest}"] = _NO_ERROR if math.isnan(error) else error
    return found


def _error(column: ScoreColumn, mask: Bools) -> float:
    """The standard error of a mean as lm-eval has it; not a number for any other metric."""
    values = column.score[mask & column.scored]
    if column.kind != "mean" or len(values) < 2:  # noqa: PLR2004 - one item has no deviation
        return math.nan
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _groups(judged: Sequence[LabelledLog]) -> tuple[Row, list[str]]:
    clean = {log.log.path: log.label == CLEAN for log in judged}
    found: Row = {}
    notes = []
    for group in find_groups([log.log for log in judged]):
        own = found.setdefault(group.name, {})
        own[group.metric] = None
        if group.weighting == "unknown":
            notes.append(f"group {group.name}: {group.metric}: {group.note}")
            continue
        own[group.metric] = _or_none(group.aggregate([clean[log.path] for log in group.logs]))
        notes += [f"group {group.name}: {group.note}"] if group.note else []
    return found, notes


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
