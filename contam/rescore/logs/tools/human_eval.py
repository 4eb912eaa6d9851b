"""Read human-eval: `*_results.jsonl`, a row per sample; pass@k is recomputed."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import LogError, Remedy
from contam.rescore.logs.log_reader import LogReader, first_line
from contam.rescore.logs.model import Log, LoggedItem, ScoreColumn, mean_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.rescore.logs.log_files import LogFile, Row


def is_results(row: Row) -> bool:
    """Whether a first line is a checked sample."""
    return "task_id" in row and "passed" in row and "completion" in row


def read(file: LogFile) -> Log:
    """Read a results file. It names neither model nor benchmark: both come from names."""
    passed: dict[str, list[bool]] = {}
    for line, row in file.lines:
        name, value = row.get("task_id"), row.get("passed")
        if not isinstance(name, str) or not isinstance(value, bool):
            raise LogError(
                "{}:{}: needs task_id and passed, true or false", file.path, line,
                remedy=Remedy.RUN_FUNCTIONAL_CORRECTNESS,
            )  # fmt: skip
        passed.setdefault(name, []).append(value)
    counts = {len(values) for values in passed.values()}
    notes = ["the tool writes no report: nothing to check the scores against"]
    if len(counts) > 1:
        notes.append(f"{min(counts)} to {max(counts)} samples a task: is the file whole?")
    heads = {name.rpartition("/")[0] for name in passed}
    return Log(
        tool="human-eval",
        path=str(file.path),
        digest=file.digest,
        model=_model(file.path.name),
        benchmark=next(iter(heads)) if len(heads) == 1 else "",
        items=tuple(LoggedItem(item_id=name) for name in passed),
        columns=pass_at_columns(list(passed.values())),
        notes=tuple(notes),
    )


def _model(name: str) -> str:
    stem = name.removesuffix(".gz").removesuffix(".jsonl").removesuffix("_results")
    return stem.removesuffix(".jsonl").removeprefix("samples_")


READER: Final = LogReader(title="human-eval results", fits=first_line(is_results), read=read)


KS: Final = (1, 2, 5, 10, 50, 100)


def pass_at_columns(
    tries: Sequence[Sequence[bool]], ending: str = "", reported: dict[str, float] | None = None
) -> tuple[ScoreColumn, ...]:
    """A column per k that every task was tried often enough for.

    tries  per task whether each sample passed;  ending  put behind the metric's name
    """
    fewest = min(map(len, tries), default=0)
    return tuple(
        _column(k, tries, ending, (reported or {}).get(f"pass@{k}")) for k in KS if k <= fewest
    )


def _column(
    k: int, tries: Sequence[Sequence[bool]], ending: str, reported: float | None
) -> ScoreColumn:
    """The unbiased estimate of Chen et al. (2021): 1 - C(n - c, k) / C(n, k), per task."""
    counts = [(len(values), sum(values)) for values in tries]
    score = [(comb(n, k) - comb(n - right, k)) / comb(n, k) for n, right in counts]
    return mean_column(
        f"pass@{k}{ending}",
        np.array(score, np.float64),
        repeats=np.array([n for n, _ in counts], np.int32),
        reported=reported,
        higher_is_better=True,
    )
