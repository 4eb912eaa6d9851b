"""Read SWE-bench: a run's report (`MODEL.RUN.json`) or each instance's `report.json`.

The tool counts an instance whose patch is empty, or whose run failed, as not resolved; so do we.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contam.facts import counted
from contam.rescore.logs.log_files import (
    LogFile,
    LogReader,
    document,
    fields,
)
from contam.rescore.logs.model import Log, LoggedItem, mean_column

if TYPE_CHECKING:
    from pathlib import Path

_MAKE_REPORT_AGAIN: Final = "the report is not whole, or was edited: make it again"
_LISTS: Final = {
    "resolved_ids": 1.0,
    "unresolved_ids": 0.0,
    "empty_patch_ids": 0.0,
    "error_ids": 0.0,
    "incomplete_ids": float("nan"),
}
"""List of the report -> score of its instances; an incomplete one was never answered."""

_REPORT: Final = "report.json"


def _fits_instance(file: LogFile) -> bool:
    """Whether a JSON file is the report of the instance its folder is named after."""
    if file.form != "object" or file.path.name != _REPORT or len(file.record) != 1:
        return False
    return "resolved" in file.record.inside(file.path.absolute().parent.name)


def _first_of_run(path: Path) -> Path:
    """The first `report.json` of the run that an instance's report belongs to."""
    return min(path.parent.parent.glob(f"*/{_REPORT}"))


def read(file: LogFile) -> Log:
    """Read the report of a run."""
    report = file.record
    lists = {name: [str(instance) for instance in report.array(name)] for name in _LISTS}
    scores: dict[str, float] = {}
    for name, ids in lists.items():
        stated = report.get(name.removesuffix("_ids") + "_instances")
        file.check_count(len(ids), name, stated, _MAKE_REPORT_AGAIN)
        for instance in ids:
            file.put_once(scores, instance, _LISTS[name], "instance")
    total = report.get("total_instances")
    file.check_count(len(scores), "instances", total, _MAKE_REPORT_AGAIN)
    model, _, run = file.path.name.removesuffix(".json").rpartition(".")
    notes = [
        f"{counted(len(lists[name]), 'instance')} {words}"
        for name, words in (
            ("empty_patch_ids", "with an empty patch, not resolved"),
            ("error_ids", "ended in an error, not resolved"),
            ("incomplete_ids", "without an answer, not scored"),
        )
        if lists[name]
    ]
    n_scored = len(scores) - len(lists["incomplete_ids"])
    # Not the length of the list that the scores come from: the count is the tool's own.
    resolved = report.number("resolved_instances")
    reported = resolved / n_scored if resolved is not None and n_scored else None
    return _log(scores, notes, (model or run, run if model else None), reported)


def read_instances(file: LogFile) -> Log:
    """Read all instances of a run, given the first: `.../RUN/MODEL/INSTANCE/report.json`."""
    run = file.path.absolute().parent.parent
    # Submissions keep the reports under MODEL/logs, the tool itself under RUN/MODEL.
    names = (run.parent.name, None) if run.name == "logs" else (run.name, run.parent.name or None)
    scores: dict[str, float] = {}
    digest = hashlib.sha256()
    for folder in sorted(path for path in run.iterdir() if path.is_dir()):
        own = LogFile(folder / _REPORT)
        if not own.path.is_file():
            scores[folder.name] = float("nan")
            continue
        resolved = own.record.inside(folder.name).get("resolved")
        if not isinstance(resolved, bool):
            raise own.fault("`resolved` is neither true nor false", hint=_MAKE_REPORT_AGAIN)
        scores[folder.name] = float(resolved)
        digest.update(own.digest.encode())
    absent = sum(math.isnan(score) for score in scores.values())
    notes = ["reports of instances alone: nothing to check their number against"]
    if absent:
        notes.append(f"{counted(absent, 'instance')} without a {_REPORT}, not scored")
    log = _log(scores, notes, names, None)
    return replace(log, path=str(file.path.parent.parent), digest=digest.hexdigest())


def _log(
    scores: dict[str, float],
    notes: list[str],
    names: tuple[str, str | None],
    reported: float | None,
) -> Log:
    values = [scores[name] for name in sorted(scores)]
    model, run = names
    return Log(
        tool="swe-bench",
        model=model.replace("__", "/"),
        # The report does not say which of its data sets it is about.
        benchmark="",
        run_id=run,
        items=tuple(LoggedItem(item_id=name) for name in sorted(scores)),
        columns=(mean_column("resolved", values, reported=reported, higher_is_better=True),),
        notes=tuple(notes),
    )


READER: Final = LogReader(
    title="SWE-bench reports",
    fits=document(fields("resolved_ids", "total_instances")),
    read=read,
)
INSTANCES: Final = LogReader(fits=_fits_instance, read=read_instances, first_of=_first_of_run)
