"""Write what an evaluator needs to compute the clean score with its own code."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.benchmark.items import ItemName
from contam.detect.indexed.guarantee import MAY_BE_MISSED
from contam.detect.labels import CLEAN, LABELS, NOT_CHECKABLE, SHOWN
from contam.detect.report import load_report
from contam.errors import LogError, Public
from contam.rescore.join import Joiner, sources_of
from contam.rescore.judging import one_policy
from contam.rescore.logs.model import self_check
from contam.rescore.logs.read import read_logs
from contam.rescore.panel import flags_in, labels_at
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.detect.report import Report
    from contam.rescore.logs.model import Log
    from contam.rescore.panel import Flags


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledLog:
    """A log and the label of each of its items under one policy.

    label      int8[n], an index into LABELS; `not_checkable` for items that were not judged
    by_index   how many are that for an index alone, which a scan could decide
    guarantee  tokens from which on that index finds every run
    """

    log: Log
    policy: str
    label: NDArray[np.int8]
    by_index: int = 0
    guarantee: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Items by label."""
        return {name: int(np.sum(self.label == LABELS.index(name))) for name in SHOWN}

    @property
    def notes(self) -> list[str]:
        """What the scores on clean items leave out although nothing was found of it."""
        n_unknown = self.counts[LABELS[NOT_CHECKABLE]]
        if not n_unknown:
            return []
        note = f"{self.log.benchmark}: {n_unknown:,} items could not be checked and are left out"
        if self.by_index:
            note += (
                f", {self.by_index:,} of them only because the index finds every run from "
                f"{self.guarantee} tokens on; a scan of the corpus decides them"
            )
        return [note]

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
    flags = flags_by(report, policy)
    found = read_logs(logs)
    for log in found:
        if tool != log.tool:
            facts = Public(log.tool), Public(tool)
            raise log.fault("a log of {}, not of {}", *facts, hint="name other logs")
    return label_logs(report, flags, found, allow_unmatched=allow_unmatched)


def label_logs(
    report: Report, flags: Flags, logs: Iterable[Log], *, allow_unmatched: bool = False
) -> list[LabelledLog]:
    """Label the items of logs that are read already; see `judge`."""
    joiner = Joiner(report.items, sources_of(report.run))
    unsure = _left_open(report, flags.policy)
    guarantee = report.run.get("index", {}).get("guarantee_tokens", 0)
    judged = []
    for log in logs:
        self_check(log)
        index = joiner.join(log, allow_unmatched=allow_unmatched).index
        judged.append(
            LabelledLog(
                log=log,
                policy=flags.policy,
                label=labels_at(flags, index),
                by_index=int(np.isin(index, unsure).sum()),
                guarantee=guarantee,
            )
        )
    return judged


def _left_open(report: Report, policy: str) -> list[int]:
    """Places of the items that an index could not call clean, and a scan may."""
    places = {name: at for at, name in enumerate(_columns(report.items, *ItemName._fields))}
    rows = _columns(report.verdicts, *ItemName._fields, "policy", "label", "reason")
    return [
        places[name[0], name[1], name[2]]
        for *name, judge, label, reason in rows
        if (judge, label) == (policy, LABELS[NOT_CHECKABLE]) and reason.startswith(MAY_BE_MISSED)
    ]


def _columns(table: schemas.Table, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(schemas.column(table, name) for name in names), strict=True)


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
            raise LogError(
                f"{task}: none of its {len(docs)} items is clean",
                hint=(
                    "lm-eval runs a task whole when it is given no samples of it: leave its logs "
                    "out here, and the task out there"
                ),
            )
    return {
        task: sorted(doc for doc, (_, clean) in docs.items() if clean)
        for task, docs in sorted(found.items())
    }


def _doc_ids(log: Log) -> list[int]:
    """The documents' places in the evaluation split; LogError when they may be wrong."""
    if all(column.reported is None for column in log.columns):
        hint = "copy the results file of the same time beside it"
        raise log.fault("no results file says which task this is", hint=hint)
    places = [item.position for item in log.items]
    known = [place for place in places if place is not None]
    if len(known) < len(places):
        raise log.fault("doc_ids are not numbers", hint="run the task anew")
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


def flags_by(report: Report, policy: str | None) -> Flags:
    """What one policy says, or the only one; UsageError when there is no such, or a choice."""
    return flags_in(report)[one_policy(report, policy)]
