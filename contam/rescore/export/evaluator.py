"""Write what an evaluator needs to compute the clean score with its own code."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.detect.labels import CLEAN, LABELS
from contam.detect.report import load_report
from contam.errors import LogError, Place, Public, Remedy, UsageError
from contam.rescore.direction import directed
from contam.rescore.export.every_eval_write import every_eval_files
from contam.rescore.join import Joiner
from contam.rescore.logs.log_files import LogFile, as_dict, as_list
from contam.rescore.logs.model import self_check
from contam.rescore.logs.read import read_logs
from contam.rescore.logs.tools.inspect_ai import document_of
from contam.rescore.panel import flags_in, labels_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.detect.report import Report
    from contam.rescore.logs.log_files import Row
    from contam.rescore.logs.model import Log
    from contam.rescore.panel import Flags


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledLog:
    """A log and the label of each of its items under one policy.

    label  int8[n], an index into LABELS; `not_checkable` for items that were not judged
    """

    log: Log
    policy: str
    label: NDArray[np.int8]

    @property
    def counts(self) -> dict[str, int]:
        """Items by label."""
        return {name: int(np.sum(self.label == at)) for at, name in enumerate(LABELS)}

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
    tool: str | None = None,
    policy: str | None = None,
    columns: Mapping[str, str] | None = None,
    allow_unmatched: bool = False,
) -> list[LabelledLog]:
    """Label the items of logs of one tool, or of any, checked and joined as for a re-scoring.

    columns  names of the columns of plain tables, where they are ambiguous

    Raises LogError for a log of another tool and whatever `rescore` refuses, UsageError for an
    unknown policy, or none when the verdicts hold several.
    """
    report = load_report(verdicts)
    flags = flags_by(report, policy)
    found = read_logs(logs, columns=columns)
    for log in found:
        if tool not in {None, log.tool}:
            raise LogError(
                "{} is a log of {}, not of {}", Place(log.path), Public(log.tool), Public(tool),
                remedy=Remedy.NAME_OTHER_LOGS,
            )  # fmt: skip
    return label_logs(report, flags, found, allow_unmatched=allow_unmatched)


def label_logs(
    report: Report, flags: Flags, logs: Iterable[Log], *, allow_unmatched: bool = False
) -> list[LabelledLog]:
    """Label the items of logs that are read already; see `judge`."""
    joiner = Joiner(report.items)
    judged = []
    for log in logs:
        self_check(log)
        index = joiner.join(log, allow_unmatched=allow_unmatched).index
        judged.append(LabelledLog(log=log, policy=flags.policy, label=labels_at(flags, index)))
    return judged


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
                raise LogError(
                    "{}: document {} of {} is another one than in the logs before",
                    Place(log.log.path), doc, Public(log.log.benchmark),
                    remedy=Remedy.EXPORT_ONE_VERSION,
                )  # fmt: skip
    for task, docs in found.items():
        if not any(clean for _, clean in docs.values()):
            raise LogError(
                f"{task}: none of its {len(docs)} items is clean",
                remedy=Remedy.LEAVE_TASK_OUT,
            )
    return {
        task: sorted(doc for doc, (_, clean) in docs.items() if clean)
        for task, docs in sorted(found.items())
    }


def inspect_log(log: LabelledLog) -> Row:
    """An Inspect log, as JSON, whose items that are not clean are unscored by an edit.

    The edits are what Inspect's `edit_score` makes of a NaN: the old score in the history, the
    label as the reason, provenance, an event. The aggregates no longer hold and are left out:
    Inspect's `recompute_metrics` makes them anew.
    """
    document = document_of(LogFile(Path(log.log.path)))
    labels = {
        item.item_id: LABELS[label]
        for item, label in zip(log.log.items, log.label, strict=True)
        if label != CLEAN
    }
    if len(labels) == len(log.log.items):
        raise LogError("{}: none of its {} items is clean", Place(log.log.path), len(labels))
    now = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    for sample in as_list(document.get("samples")):
        label = labels.get(str(sample.get("id")))
        if label is not None:
            _edit(sample, label, log.policy, now)
    results = as_dict(document.get("results"))
    document["results"] = {key: results[key] for key in results if key != "headline"}
    document["results"]["scores"] = []
    document.pop("reductions", None)
    return document


def every_eval_logs(
    judged: Sequence[LabelledLog],
    *,
    lower_is_better: Sequence[str] = (),
    higher_is_better: Sequence[str] = (),
) -> dict[str, bytes]:
    """File name -> bytes of the logs in the form of Every Eval Ever, the last one an aggregate.

    Every item has its label in its metadata, every metric its direction, as a re-scoring takes it,
    and the score on the clean items as a further result. Raises LogError for a log without a score
    per item, and what `directed` raises.
    """
    logs = directed([log.log for log in judged], lower=lower_is_better, higher=higher_is_better)
    files: dict[str, bytes] = {}
    for labelled_log, log in zip(judged, logs, strict=True):
        labels = [LABELS[label] for label in labelled_log.label]
        files.update(
            every_eval_files(
                log, labels=labels, clean=labelled_log.label == CLEAN, policy=labelled_log.policy
            )
        )
    return files


def _edit(sample: Row, label: str, policy: str, now: str) -> None:
    for name, score in as_dict(sample.get("scores")).items():
        edit = {
            "value": _unscored(score.get("value")),
            "answer": "UNCHANGED",
            "explanation": "UNCHANGED",
            "reason": label,
            "metadata": "UNCHANGED",
            "provenance": {
                "timestamp": now,
                "author": "contam",
                "reason": f"{label} by policy {policy}",
                "metadata": {},
            },
        }
        history = as_list(score.get("history")) or [
            {
                **{key: score.get(key) for key in ("value", "answer", "explanation", "reason")},
                "metadata": score.get("metadata") or {},
                "provenance": None,
            }
        ]
        score.update(value=edit["value"], reason=label, history=[*history, edit])
        metadata = score.get("metadata")
        if isinstance(metadata, dict):
            # The older place of a reason: Inspect would read it back from there.
            score["metadata"] = {k: v for k, v in metadata.items() if k != "unscored_reason"}
        _annotate_sample(sample, name, edit, now)


def _unscored(value: object) -> object:
    """NaN in the shape of the score: one for each part of a score with several."""
    if isinstance(value, dict):
        return dict.fromkeys(value, float("nan"))
    if isinstance(value, list):
        return [float("nan")] * len(value)
    return float("nan")


def _annotate_sample(sample: Row, name: str, edit: Mapping[str, Any], now: str) -> None:
    """Put the event of an edit at the end of the last span of scorers."""
    events = sample.setdefault("events", [])
    span = None
    for event in events:
        if event.get("event") == "span_begin" and event.get("type") == "scorers":
            span = event.get("id")
    ends = [
        at
        for at, event in enumerate(events)
        if span and event.get("event") == "span_end" and event.get("id") == span
    ]
    metadata = {
        "uuid": uuid.uuid4().hex,
        "span_id": span,
        "timestamp": now,
        "working_start": 0.0,
        "event": "score_edit",
        "score_name": name,
        "edit": edit,
    }
    events.insert(ends[-1] if ends else len(events), metadata)


def _doc_ids(log: Log) -> list[int]:
    """The documents' places in the evaluation split; LogError when they may be wrong."""
    if all(column.reported is None for column in log.columns):
        raise LogError(
            "{}: no results file says which task this is", Place(log.path),
            remedy=Remedy.COPY_RESULTS_FILE,
        )  # fmt: skip
    places = [item.position for item in log.items]
    known = [place for place in places if place is not None]
    if len(known) < len(places):
        raise LogError("{}: doc_ids are not numbers", Place(log.path), remedy=Remedy.RUN_TASK_AGAIN)
    falls = [at for at, (before, after) in enumerate(pairwise(known), 1) if after < before]
    if falls and not _by_ranks(known, falls):
        raise LogError(
            "{}: its doc_ids are not in order", Place(log.path),
            remedy=Remedy.RUN_TASK_WHOLE_OR_SORTED,
        )  # fmt: skip
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
    known = flags_in(report)
    if policy is None and len(known) == 1:
        return next(iter(known.values()))
    held = ", ".join(known)
    if policy is None:
        raise UsageError(
            "the verdicts hold several policies",
            remedy=Remedy.NAME_ONE_POLICY_OF_VERDICTS(known=held),
        )
    if policy not in known:
        raise UsageError(
            "the verdicts hold no policy {}", policy,
            remedy=Remedy.CHOOSE_POLICY_OF_VERDICTS(known=held),
        )  # fmt: skip
    return known[policy]
