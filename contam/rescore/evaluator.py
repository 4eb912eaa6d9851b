"""Write what an evaluator needs to compute the clean score with its own code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.detect.labels import CLEAN, LABELS, NOT_CHECKABLE, SHOWN
from contam.detect.report import load_report
from contam.errors import LogError, Public
from contam.facts import counted
from contam.rescore.judging import join_logs, one_policy
from contam.rescore.logs.lm_eval import results_of
from contam.rescore.logs.log_files import Record
from contam.rescore.logs.model import find_groups, self_check
from contam.rescore.logs.read import read_logs
from contam.rescore.panel import labels_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.detect.report import Report
    from contam.rescore import Bools, Row
    from contam.rescore.logs.model import Log, ScoreColumn


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledLog:
    """A log and the label of each of its items under one policy.

    label      int8[n], an index into LABELS; `not_checkable` for items that were not judged
    """

    log: Log
    policy: str
    label: NDArray[np.int8]

    @property
    def counts(self) -> dict[str, int]:
        """Items by label."""
        return {name: int(np.sum(self.label == LABELS.index(name))) for name in SHOWN}

    @property
    def notes(self) -> list[str]:
        """What the scores on clean items leave out although nothing was found of it."""
        n_unknown = self.counts[LABELS[NOT_CHECKABLE]]
        said = f"{self.log.benchmark}: {counted(n_unknown, 'item')} not checkable, left out"
        return [said] if n_unknown else []

    @property
    def not_clean(self) -> dict[str, str]:
        """Item id -> label, of every item that is not clean."""
        return {
            item.item_id: LABELS[label]
            for item, label in zip(self.log.items, self.label, strict=True)
            if label != CLEAN
        }

    def scores(self) -> dict[str, tuple[float, int]]:
        """Metric -> (score on the clean items, how many of them are scored)."""
        clean = self.label == CLEAN
        return {
            column.metric: (column.aggregate(clean), int(np.sum(column.scored & clean)))
            for column in self.log.columns
            if column.kind != "none"
        }


def judge(
    verdicts: str | Path,
    logs: Sequence[str | Path],
    *,
    tool: str,
    policy: str | None = None,
    allow_unmatched: bool = False,
) -> list[LabelledLog]:
    """Label the items of logs of one tool, checked and joined as for a re-scoring.

    Raises LogError for a log of another tool and whatever `rescore` refuses, UsageError for an
    unknown policy, or none when the verdicts hold several.
    """
    report = load_report(verdicts)
    chosen = one_policy(report, policy)
    found = read_logs(logs)
    for log in found:
        if tool != log.tool:
            facts = Public(log.tool), Public(tool)
            raise log.fault("a log of {}, not of {}", *facts, hint="name other logs")
    return label_logs(report, chosen, found, allow_unmatched=allow_unmatched)


def label_logs(
    report: Report, policy: str, logs: Sequence[Log], *, allow_unmatched: bool = False
) -> list[LabelledLog]:
    """Label the items of logs that are read already; see `judge`."""
    for log in logs:
        self_check(log)
    judging = join_logs(report, logs, [policy], allow_unmatched=allow_unmatched)
    return [
        LabelledLog(log=log, policy=policy, label=labels_at(judging.flags[0], joined.index))
        for log, joined in zip(logs, judging.joined, strict=True)
    ]


def lm_eval_samples(judged: Sequence[LabelledLog]) -> dict[str, list[int]]:
    """Task -> ids of its clean documents, ascending: what lm-eval takes as `--samples`.

    Logs of several models may hold different documents of a task; all of them count.

    Raises LogError for a task without a clean document (lm-eval runs the *whole* task for an empty
    list), for two versions of a task, and for ids that lm-eval may have given wrongly.
    """
    found: dict[str, dict[int, tuple[str | None, bool]]] = {}
    for log in judged:
        own = _doc_ids(log.log)
        known = found.setdefault(log.log.benchmark, {})
        for doc, item, label in zip(own, log.log.items, log.label, strict=True):
            this = (item.doc_hash, bool(label == CLEAN))
            if known.setdefault(doc, this) != this:
                said = "document {} of {} is another one than in the logs before"
                hint = "two versions of the task: export one at a time"
                raise log.log.fault(said, doc, Public(log.log.benchmark), hint=hint)
    for task, docs in found.items():
        if not any(clean for _, clean in docs.values()):
            hint = (
                "lm-eval runs a task whole when it is given no samples of it: leave its logs out "
                "here, and the task out there"
            )
            raise LogError(f"{task}: none of its {len(docs)} items is clean", hint=hint)
    return {
        task: sorted(doc for doc, (_, clean) in docs.items() if clean)
        for task, docs in sorted(found.items())
    }


def _doc_ids(log: Log) -> list[int]:
    """The documents' places in the evaluation split; LogError when they may be wrong."""
    if all(column.reported is None for column in log.columns):
        hint = "copy the results file of the same time beside it"
        raise log.fault("no results file says which task this is", hint=hint)
    if not all(item.item_id.isdecimal() for item in log.items):
        raise log.fault("doc_ids are not numbers", hint="run the task anew")
    known = [int(item.item_id) for item in log.items]
    falls = [at for at, (before, after) in enumerate(pairwise(known), 1) if after < before]
    if falls and not _by_ranks(known, falls):
        hint = (
            "lm-eval numbers the documents of an unsorted --samples wrongly: run the task whole, "
            "or sorted"
        )
        raise log.fault("its doc_ids are not in order", hint=hint)
    return known


def _by_ranks(places: Sequence[int], falls: Sequence[int]) -> bool:
    """Whether k processes ran every k-th document each, written one after the other."""
    bounds = [0, *falls, len(places)]
    n_ranks = len(bounds) - 1
    return all(
        list(places[begin:end]) == list(range(rank, len(places), n_ranks))
        for rank, (begin, end) in enumerate(pairwise(bounds))
    )


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
        results[task] = _clean_scores(log, clean)
        full[task] = _clean_scores(log, whole)
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
    told = Record(document.inside("results") | document.inside("groups"))
    for own_rows in (results, groups):
        for name, own in own_rows.items():
            if (alias := told.inside(name).get("alias")) is not None:
                own["alias"] = alias
    return {
        "tool": "contam",
        "format": FORMAT,
        **about,
        "policy": judged[0].policy,
        "model_name": judged[0].log.model,
        "results": results,
        "groups": groups,
        "group_subtasks": document.inside("group_subtasks"),
        **{
            name: {task: own for task, own in document.inside(name).items() if task in results}
            for name in _BY_TASK
        },
        "n-samples": samples,
        "items": items,
        "full": full,
        "not_clean": labels,
        "notes": [*notes, *reasons],
    }


def _clean_scores(log: LabelledLog, mask: Bools) -> Row:
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
