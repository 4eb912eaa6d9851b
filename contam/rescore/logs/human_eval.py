"""human-eval: `*_results.jsonl`, a row per sample of a task; pass@k is made anew from the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.errors import LogError
from contam.remedies import Remedy
from contam.rescore.logs.model import Log, LoggedItem
from contam.rescore.logs.pass_at import pass_at_columns
from contam.rescore.logs.reader import LogReader, first_line

if TYPE_CHECKING:
    from contam.rescore.logs.files import LogFile, Row


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
                "{}:{}: needs task_id and passed, true or false",
                file.path,
                line,
                remedy=Remedy.RUN_FUNCTIONAL_CORRECTNESS,
            )
        passed.setdefault(name, []).append(value)
    if not passed:
        raise LogError("{}: the log is empty", file.path, remedy=Remedy.WAS_RUN_STOPPED)
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
