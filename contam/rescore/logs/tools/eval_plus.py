"""Read EvalPlus: `eval_results.json`, the status of every sample under base and extra tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.errors import LogError, Remedy
from contam.rescore.logs.log_files import Row, as_dict, as_list, number_or_none, text_or_none
from contam.rescore.logs.log_reader import LogReader, document
from contam.rescore.logs.model import Log, LoggedItem
from contam.rescore.logs.tools.human_eval import pass_at_columns

if TYPE_CHECKING:
    from contam.rescore.logs.log_files import LogFile

_SUFFIX: Final = "eval_results.json"
_PASSED: Final = frozenset({"pass", "success"})
_FAILED: Final = frozenset({"fail", "failed", "timeout", "timed out", "thread exception", None})
"""Statuses of all versions; the tool counts everything but its own word for a pass as a failure."""


def is_results(value: object) -> bool:
    """Whether a JSON file holds the results of a run."""
    found = as_dict(value)
    tasks = as_dict(found.get("eval"))
    first = next(iter(tasks.values()), None)
    row = first[0] if isinstance(first, list) and first else first
    return bool(tasks) and ("base_status" in as_dict(row) or "base" in as_dict(row))


def read(file: LogFile) -> Log:
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
    counts = {len(values) for values in base.values()}
    reported = as_dict(document.get("pass_at_k"))
    notes = [] if reported else ["the file has no means: nothing to check the scores against"]
    if len(counts) > 1:
        notes.append(f"{min(counts)} to {max(counts)} samples a task: is the file whole?")
    heads = {name.rpartition("/")[0] for name in base}
    columns = pass_at_columns(list(base.values()), ",base", _numbers(reported.get("base")))
    if plus:
        columns += pass_at_columns(list(plus.values()), ",plus", _numbers(reported.get("plus")))
    return Log(
        tool="evalplus",
        path=str(file.path),
        digest=file.digest,
        model=_model(file),
        benchmark=next(iter(heads)) if len(heads) == 1 else "",
        run_id=text_or_none(document.get("date")),
        items=tuple(LoggedItem(item_id=name) for name in base),
        columns=columns,
        notes=tuple(notes),
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
            remedy=Remedy.RUN_EVALUATION_AGAIN,
        )  # fmt: skip
    return statuses


def _passed(file: LogFile, name: str, status: object) -> bool:
    if status in _PASSED:
        return True
    if status not in _FAILED:
        raise LogError(
            "{}: task {} has the status {!r}", file.path, name, str(status)[:40],
            remedy=Remedy.USE_KNOWN_STATUS,
        )  # fmt: skip
    return False


def _numbers(found: object) -> dict[str, float]:
    named: Row = as_dict(found)
    return {
        k: number for k, value in named.items() if (number := number_or_none(value)) is not None
    }


def _model(file: LogFile) -> str:
    """The samples' own name: that of their file, or of their folder."""
    stem = file.path.name.removesuffix(_SUFFIX).rstrip("_-.")
    return stem or file.path.absolute().parent.name


READER: Final = LogReader(title="EvalPlus", fits=document(is_results), read=read)
