"""Read OpenCompass: `predictions/MODEL/DATASET.json` and `results/MODEL/DATASET.json`.

The predictions have the prompts, the results the scores: per item only where the run dumped its
details.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from contam.rescore.logs.log_files import (
    LogFile,
    LogReader,
    Record,
    as_list,
    digest_of,
    is_number,
    is_of_user,
    last_asked,
    number_or_none,
    records,
    text_or_none,
)
from contam.rescore.logs.model import Log, LoggedItem, mean_column

if TYPE_CHECKING:
    from pathlib import Path


_DUMP_EVAL_DETAILS: Final = "run the evaluation again with --dump-eval-details"
_CORRECT: Final = ("correct", "is_correct", "cascade_correct")
_MEANS: Final = ("accuracy", "score")
_PART: Final = re.compile(r"(?P<stem>.+)_\d+")
_PERCENT: Final = 100


def _fits(file: LogFile) -> bool:
    """Whether a JSON file is one of predictions or of results, where OpenCompass puts it."""
    if file.form != "object":
        return False
    folder, found = file.path.absolute().parent.parent.name, file.record
    if folder == "predictions":
        return "prediction" in found.inside("0")
    return folder == "results" and ("details" in found or _reported(found) is not None)


def _results_of(path: Path) -> Path:
    """The path of the results that a file of either kind belongs to."""
    if path.absolute().parent.parent.name == "results":
        return path
    folder = path.parent.parent.parent / "results" / path.parent.name
    part = _PART.fullmatch(path.stem)
    whole = folder / path.name
    return folder / f"{part['stem']}{path.suffix}" if part and not whole.is_file() else whole


def read(file: LogFile) -> Log:
    """Read the results of one data set with the predictions beside them. Raises LogError."""
    if not file.path.is_file():
        said = "not there, and predictions without their results have no scores"
        raise file.fault(said, hint=_DUMP_EVAL_DETAILS)
    document = file.record
    parts = _parts(file.path)
    asked = [row for part in parts for row in _rows(part, part.document)]
    details = _rows(file, document.get("details"))
    correct = [_correct(detail) for detail in details] or [_by_label(row) for row in asked]
    if not any(marks is not None for marks in correct):
        raise file.fault("no item says whether it was right", hint=_DUMP_EVAL_DETAILS)
    repeats = max((len(marks) for marks in correct if marks), default=1)
    if parts and len(asked) != len(correct) * repeats:
        raise file.fault("{} items, and {} predictions beside them", len(correct), len(asked))
    column = mean_column(
        "accuracy",
        [sum(marks) / len(marks) if marks else None for marks in correct],
        repeats=[len(marks or ()) for marks in correct],
        reported=_reported(document),
        higher_is_better=True,
    )
    notes = [] if parts else ["no predictions beside it: prompts as the details have them"]
    if column.reported is None:
        notes.append("the results have no accuracy: nothing to check the rows against")
    if repeats > 1:
        notes.append(f"up to {repeats} runs of an item, averaged")
    return Log(
        tool="opencompass",
        digest=digest_of(file, *parts),
        model=file.path.absolute().parent.name,
        benchmark=file.path.stem,
        run_id=file.path.absolute().parent.parent.parent.name or None,
        items=tuple(map(_item, range(len(correct)), asked or details)),
        columns=(column,),
        notes=tuple(notes),
    )


def _parts(results: Path) -> list[LogFile]:
    """The predictions of a data set: one file, or several numbered from 0."""
    folder = results.parent.parent.parent / "predictions" / results.parent.name
    whole = folder / results.name
    if whole.is_file():
        return [LogFile(whole)]
    parts: list[LogFile] = []
    while (part := folder / f"{results.stem}_{len(parts)}{results.suffix}").is_file():
        parts.append(LogFile(part))
    return parts


def _rows(file: LogFile, found: object) -> list[Record]:
    """Predictions or details in the order of their numbers, which begin at 0 in every file."""
    if isinstance(found, list):
        return records(found)
    named = {key: Record.of(row) for key, row in Record.of(found).items() if key != "type"}
    try:
        return [named[str(place)] for place in range(len(named))]
    except KeyError as error:
        raise file.fault("its rows are not numbered through") from error


def _correct(detail: Record) -> list[float] | None:
    """Whether an item was right, a number per run of it; None where the details do not say."""
    for key in _CORRECT:
        values = detail.get(key)
        values = values if isinstance(values, list) else [values]
        if values and all(map(is_number, values)):
            return [float(value) for value in values]
    return None


def _by_label(row: Record) -> list[float] | None:
    """A choice by perplexity is right when it is the label itself; generations need a judge."""
    labels = any(key.startswith("label: ") for key in row)
    if labels and "prediction" in row and row.get("gold") is not None:
        return [float(str(row["prediction"]) == str(row["gold"]))]
    return None


def _reported(document: Record) -> float | None:
    """The accuracy of the results, as a share; of several runs their mean."""
    for name in _MEANS:
        for key, value in document.items():
            number = number_or_none(value)
            if number is not None and (key == name or key.startswith(f"{name} (")):
                return number / _PERCENT
    return None


def _item(place: int, row: Record) -> LoggedItem:
    gold = row.get("gold", row.get("references", row.get("answer")))
    return LoggedItem(
        item_id=str(place),
        position=place,
        answer=text_or_none((as_list(gold) or [gold])[0]),
        prompt=last_asked(row.get("origin_prompt", row.get("prompt")), is_of_user),
    )


READER: Final = LogReader(title="OpenCompass", fits=_fits, read=read, first_of=_results_of)
