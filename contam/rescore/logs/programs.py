"""Read results of programs that were run: human-eval, EvalPlus and SWE-bench.

human-eval writes a row per sample into `*_results.jsonl`, EvalPlus the status of every sample under
its base and extra tests into `eval_results.json`; pass@k is computed anew. SWE-bench writes a run's
report (`MODEL.RUN.json`) or each instance's `report.json`; the tool counts an instance whose patch
is empty, or whose run failed, as not resolved, and so do we.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from math import comb
from typing import TYPE_CHECKING, Final

from contam.facts import counted
from contam.rescore.logs.log_files import (
    LogFile,
    LogReader,
    Record,
    as_list,
    document,
    fields,
    first_line,
    number_or_none,
)
from contam.rescore.logs.model import Log, LoggedItem, mean_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contam.rescore.logs.model import ScoreColumn

    Tries = Mapping[str, Sequence[bool]]


_SUFFIX: Final = "eval_results.json"
_PASSED: Final = frozenset({"pass", "success"})
_FAILED: Final = frozenset({"fail", "failed", "timeout", "timed out", "thread exception", None})
"""Statuses of all versions; the tool counts everything but its own word for a pass as a failure."""
_KS: Final = (1, 2, 5, 10, 50, 100)


def read_samples(file: LogFile) -> Log:
    """Read a results file. It names neither model nor benchmark: both come from names."""
    passed: dict[str, list[bool]] = {}
    for line, row in file.lines:
        name, value = row.get("task_id"), row.get("passed")
        if not isinstance(name, str) or not isinstance(value, bool):
            hint = "evaluate_functional_correctness writes such rows"
            raise file.fault("needs task_id and passed, true or false", line=line, hint=hint)
        passed.setdefault(name, []).append(value)
    stem = file.path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix("_results")
    note = "the tool writes no report: nothing to check the scores against"
    return _log(
        "human-eval",
        stem.removesuffix(".jsonl").removeprefix("samples_"),
        passed,
        _columns(passed),
        [note],
    )


def _log(
    tool: str, model: str, tries: Tries, columns: Iterator[ScoreColumn], notes: list[str],
    run_id: str | None = None,
) -> Log:  # fmt: skip
    """A log of tasks, given whether their samples passed; they begin with their benchmark."""
    heads = {name.rpartition("/")[0] for name in tries}
    counts = {len(values) for values in tries.values()}
    uneven = f"{min(counts, default=0)} to {max(counts, default=0)} samples a task: "
    return Log(
        tool=tool,
        model=model,
        benchmark=heads.pop() if len(heads) == 1 else "",
        run_id=run_id,
        items=tuple(LoggedItem(item_id=name) for name in tries),
        columns=tuple(columns),
        notes=(*notes, *([f"{uneven}is the file whole?"] if len(counts) > 1 else ())),
    )


def _is_plus(value: object) -> bool:
    """Whether a JSON file holds the results of a run."""
    first = next(iter(Record.of(value).inside("eval").values()), None)
    row = Record.of(first[0] if isinstance(first, list) and first else first)
    return "base_status" in row or "base" in row


def read_plus(file: LogFile) -> Log:
    """Read a results file; model and benchmark follow from names. Raises LogError."""
    document = file.record
    base: dict[str, list[bool]] = {}
    plus: dict[str, list[bool]] = {}
    for name, found in document.inside("eval").items():
        statuses = _statuses(file, name, found)
        base[name] = [_passed(file, name, status) for status, _ in statuses]
        extra = [other for _, other in statuses]
        # With --base-only no sample has a status under the extra tests.
        if any(other is not None for other in extra):
            plus[name] = [
                passed and _passed(file, name, other)
                for passed, other in zip(base[name], extra, strict=True)
            ]
    if plus and len(plus) < len(base):
        # A task of which no sample ran to its end has no status under the extra tests.
        plus = {name: plus.get(name, [False] * len(base[name])) for name in base}
    reported = document.inside("pass_at_k")
    tries = {"base": base, "plus": plus}
    columns = (
        column
        for kind, own in tries.items()
        for column in _columns(own, f",{kind}", reported.inside(kind))
    )
    notes = [] if reported else ["the file has no means: nothing to check the scores against"]
    # The samples' own name: that of their file, or of their folder.
    stem = file.path.name.removesuffix(_SUFFIX).rstrip("_-.")
    model, date = stem or file.path.absolute().parent.name, document.text("date")
    return _log("evalplus", model, base, columns, notes, date)


def _statuses(file: LogFile, name: str, found: object) -> list[tuple[object, object]]:
    """(base, plus) of every sample of a task, in the form of 0.2 and later or the one before."""
    if isinstance(found, list):
        rows = [Record.of(row) for row in found]
        statuses = [(row.get("base_status"), row.get("plus_status")) for row in rows]
        whole = all("base_status" in row for row in rows)
    else:
        base, plus = (
            [as_list(sample)[:1] for sample in as_list(Record.of(found).get(key))]
            for key in ("base", "plus")
        )
        whole = all(base) and all(plus) and len(plus) in {0, len(base)}
        extra = [sample[0] for sample in plus if sample] or [None] * len(base)
        statuses = list(zip((sample[0] for sample in base if sample), extra, strict=False))
    if not (whole and statuses):
        hint = "the file is not complete: run the evaluation again"
        raise file.fault("task {} has no status for each of its samples", name, hint=hint)
    return statuses


def _passed(file: LogFile, name: str, status: object) -> bool:
    if status not in _PASSED | _FAILED:
        hint = "known are pass, fail and timeout, success and failed"
        raise file.fault("task {} has the status {!r}", name, str(status)[:40], hint=hint)
    return status in _PASSED


def _columns(
    tries: Tries, ending: str = "", reported: Record | None = None
) -> Iterator[ScoreColumn]:
    """A column per k that every task was tried often enough for.

    tries  per task whether each sample passed;  ending  put behind the metric's name

    The unbiased estimate of Chen et al. (2021): 1 - C(n - c, k) / C(n, k), per task.
    """
    counts = [(len(values), sum(values)) for values in tries.values()]
    fewest = min((n for n, _ in counts), default=0)
    for k in (k for k in _KS if k <= fewest):
        yield mean_column(
            f"pass@{k}{ending}",
            [(comb(n, k) - comb(n - right, k)) / comb(n, k) for n, right in counts],
            repeats=[n for n, _ in counts],
            reported=number_or_none((reported or Record()).get(f"pass@{k}")),
            higher_is_better=True,
        )


HUMAN_EVAL: Final = LogReader(
    title="human-eval results",
    fits=first_line(fields("task_id", "passed", "completion")),
    read=read_samples,
)
EVAL_PLUS: Final = LogReader(title="EvalPlus", fits=document(_is_plus), read=read_plus)


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


def read_report(file: LogFile) -> Log:
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
    return _resolved_log(scores, notes, (model or run, run if model else None), reported)


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
    log = _resolved_log(scores, notes, names, None)
    return replace(log, path=str(file.path.parent.parent), digest=digest.hexdigest())


def _resolved_log(
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


SWE_BENCH: Final = LogReader(
    title="SWE-bench reports",
    fits=document(fields("resolved_ids", "total_instances")),
    read=read_report,
)
SWE_INSTANCES: Final = LogReader(
    fits=_fits_instance,
    read=read_instances,
    first_of=lambda path: min(path.parent.parent.glob(f"*/{_REPORT}")),
)
