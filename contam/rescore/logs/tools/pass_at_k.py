"""Read human-eval's and EvalPlus' samples, of which pass@k is computed anew.

human-eval writes a row per sample into `*_results.jsonl`, EvalPlus the status of every sample under
its base and extra tests into `eval_results.json`.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Final

from contam.errors import LogError
from contam.rescore.logs.json_values import as_dict, as_list, number_or_none, text_or_none
from contam.rescore.logs.log_files import LogReader, document, first_line
from contam.rescore.logs.model import Log, LoggedItem, ScoreColumn, mean_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.rescore.logs.json_values import Row
    from contam.rescore.logs.log_files import LogFile

_SUFFIX: Final = "eval_results.json"
_PASSED: Final = frozenset({"pass", "success"})
_FAILED: Final = frozenset({"fail", "failed", "timeout", "timed out", "thread exception", None})
"""Statuses of all versions; the tool counts everything but its own word for a pass as a failure."""
_KS: Final = (1, 2, 5, 10, 50, 100)


def _is_samples(row: Row) -> bool:
    """Whether a first line is a checked sample."""
    return "task_id" in row and "passed" in row and "completion" in row


def read_samples(file: LogFile) -> Log:
    """Read a results file. It names neither model nor benchmark: both come from names."""
    passed: dict[str, list[bool]] = {}
    for line, row in file.lines:
        name, value = row.get("task_id"), row.get("passed")
        if not isinstance(name, str) or not isinstance(value, bool):
            raise LogError(
                "{}:{}: needs task_id and passed, true or false", file.path, line,
                hint="evaluate_functional_correctness writes such rows",
            )  # fmt: skip
        passed.setdefault(name, []).append(value)
    benchmark, notes = _about_tasks(passed)
    notes = ["the tool writes no report: nothing to check the scores against", *notes]
    return Log(
        tool="human-eval",
        model=_model(file.path.name),
        benchmark=benchmark,
        items=tuple(LoggedItem(item_id=name) for name in passed),
        columns=_pass_at_columns(list(passed.values())),
        notes=tuple(notes),
    )


def _about_tasks(tries: Mapping[str, Sequence[bool]]) -> tuple[str, list[str]]:
    """(benchmark that all tasks begin with, notes), given whether a task's samples passed."""
    heads = {name.rpartition("/")[0] for name in tries}
    counts = {len(values) for values in tries.values()}
    uneven = f"{min(counts)} to {max(counts)} samples a task: is the file whole?"
    return heads.pop() if len(heads) == 1 else "", [uneven] if len(counts) > 1 else []


def _model(name: str) -> str:
    stem = name.removesuffix(".gz").removesuffix(".jsonl").removesuffix("_results")
    return stem.removesuffix(".jsonl").removeprefix("samples_")


def _is_plus(value: object) -> bool:
    """Whether a JSON file holds the results of a run."""
    found = as_dict(value)
    tasks = as_dict(found.get("eval"))
    first = next(iter(tasks.values()), None)
    row = first[0] if isinstance(first, list) and first else first
    return bool(tasks) and ("base_status" in as_dict(row) or "base" in as_dict(row))


def read_plus(file: LogFile) -> Log:
    """Read a results file; model and benchmark follow from names. Raises LogError."""
    document = as_dict(file.document)
    base: dict[str, list[bool]] = {}
    plus: dict[str, list[bool]] = {}
    for name, found in as_dict(document.get("eval")).items():
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
    reported = as_dict(document.get("pass_at_k"))
    notes = [] if reported else ["the file has no means: nothing to check the scores against"]
    benchmark, uneven = _about_tasks(base)
    columns = _pass_at_columns(list(base.values()), ",base", _numbers(reported.get("base")))
    if plus:
        columns += _pass_at_columns(list(plus.values()), ",plus", _numbers(reported.get("plus")))
    return Log(
        tool="evalplus",
        model=_model_of_plus(file),
        benchmark=benchmark,
        run_id=text_or_none(document.get("date")),
        items=tuple(LoggedItem(item_id=name) for name in base),
        columns=columns,
        notes=(*notes, *uneven),
    )


def _statuses(file: LogFile, name: str, found: object) -> list[tuple[object, object]]:
    """(base, plus) of every sample of a task, in the form of 0.2 and later or the one before."""
    if isinstance(found, list):
        rows = [as_dict(row) for row in found]
        statuses = [(row.get("base_status"), row.get("plus_status")) for row in rows]
        whole = all("base_status" in row for row in rows)
    else:
        base, plus = (
            [as_list(sample)[:1] for sample in as_list(as_dict(found).get(key))]
            for key in ("base", "plus")
        )
        whole = all(base) and all(plus) and len(plus) in {0, len(base)}
        extra = [sample[0] for sample in plus if sample] or [None] * len(base)
        statuses = list(zip((sample[0] for sample in base if sample), extra, strict=False))
    if not (whole and statuses):
        raise LogError(
            "{}: task {} has no status for each of its samples", file.path, name,
            hint="the file is not complete: run the evaluation again",
        )  # fmt: skip
    return statuses


def _passed(file: LogFile, name: str, status: object) -> bool:
    if status in _PASSED:
        return True
    if status not in _FAILED:
        raise LogError(
            "{}: task {} has the status {!r}", file.path, name, str(status)[:40],
            hint="known are pass, fail and timeout, success and failed",
        )  # fmt: skip
    return False


def _numbers(found: object) -> dict[str, float]:
    numbers = {name: number_or_none(value) for name, value in as_dict(found).items()}
    return {name: number for name, number in numbers.items() if number is not None}


def _model_of_plus(file: LogFile) -> str:
    """The samples' own name: that of their file, or of their folder."""
    stem = file.path.name.removesuffix(_SUFFIX).rstrip("_-.")
    return stem or file.path.absolute().parent.name


def _pass_at_columns(
    tries: Sequence[Sequence[bool]], ending: str = "", reported: dict[str, float] | None = None
) -> tuple[ScoreColumn, ...]:
    """A column per k that every task was tried often enough for.

    tries  per task whether each sample passed;  ending  put behind the metric's name
    """
    fewest = min(map(len, tries), default=0)
    return tuple(
        _column(k, tries, ending, (reported or {}).get(f"pass@{k}")) for k in _KS if k <= fewest
    )


def _column(
    k: int, tries: Sequence[Sequence[bool]], ending: str, reported: float | None
) -> ScoreColumn:
    """The unbiased estimate of Chen et al. (2021): 1 - C(n - c, k) / C(n, k), per task."""
    counts = [(len(values), sum(values)) for values in tries]
    score = [(comb(n, k) - comb(n - right, k)) / comb(n, k) for n, right in counts]
    return mean_column(
        f"pass@{k}{ending}",
        score,
        repeats=[n for n, _ in counts],
        reported=reported,
        higher_is_better=True,
    )


HUMAN_EVAL: Final = LogReader(
    title="human-eval results", fits=first_line(_is_samples), read=read_samples
)
EVAL_PLUS: Final = LogReader(title="EvalPlus", fits=document(_is_plus), read=read_plus)
