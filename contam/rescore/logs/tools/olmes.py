"""Read OLMES: `task-000-TASK-predictions.jsonl` with its metrics and requests files.

The predictions hold scores and the data set's own ids, the requests the texts, the metrics what the
tool reports. Without the requests items are joined by id.
"""

from __future__ import annotations

import glob
import re
from typing import TYPE_CHECKING, Final

from contam.errors import LogError
from contam.rescore.logs.item_parts import PartsReader, is_of_user, last_asked
from contam.rescore.logs.json_values import Row, as_dict, number_or_none, put_once, text_or_none
from contam.rescore.logs.log_files import (
    OTHER_RUN,
    LogFile,
    LogReader,
    check_count,
    document,
    first_line,
    neighbour,
)
from contam.rescore.logs.model import Log, LoggedItem, ScoreColumn, mean_column, no_column, setup_of

if TYPE_CHECKING:
    from pathlib import Path

_NAME: Final = re.compile(r"(?:task-\d+-)?(?P<task>.+)-predictions\.jsonl(?:\.\w+)?")
_NOT_SCORES: Final = re.compile(r"predicted_index.*|correct_choice|no_answer|num_.*|price|index")
"""Numbers in a row's metrics that say nothing of how good the answer is."""

_LOWER: Final = re.compile(r"bits_per_byte.*|.*ppl.*|.*perplexity.*")


def is_predictions(row: Row) -> bool:
    """Whether a first line is one document's result."""
    return "native_id" in row and "doc_id" in row and isinstance(row.get("metrics"), dict)


def is_beside(row: Row) -> bool:
    """Whether a first line is a request, a recorded input or the metrics of a task."""
    asked = "native_id" in row and "doc_id" in row and ("request" in row or "requests" in row)
    return asked or is_metrics(row)


def is_metrics(value: object) -> bool:
    """Whether a JSON file has the metrics of one task, or of all."""
    found = as_dict(value)
    is_task = "task_config" in found and "metrics" in found and "num_instances" in found
    return is_task or ("all_primary_scores" in found and "tasks" in found)


def predictions_of(path: Path) -> list[Path]:
    """The predictions that requests, metrics or recorded inputs belong to; of all tasks, all."""
    stem = re.sub(r"-(metrics\.json|requests\.jsonl|recorded-inputs\.jsonl).*", "", path.name)
    own = sorted(path.parent.glob(f"{glob.escape(stem)}-predictions.jsonl*"))
    together = path.name.startswith("metrics")
    return sorted(path.parent.glob("*-predictions.jsonl*")) if together else own


def read(file: LogFile) -> Log:
    """Read the predictions of one task. Raises LogError when its files contradict each other."""
    match = _NAME.fullmatch(file.path.name)
    stem = file.path.name.partition("-predictions.jsonl")[0]
    metrics = _companion(file, f"{stem}-metrics.json")
    about = as_dict(metrics.document) if metrics else {}
    requests = _companion(file, f"{stem}-requests.jsonl")
    rows = _rows(file)
    check_count(file, len(rows), "documents", about.get("num_instances"))
    docs = _docs(requests) if requests else {}
    absent = [name for name in rows if docs and name not in docs]
    if absent:
        raise LogError(
            "{}: document {} is not among the requests beside it", file.path, absent[0],
            hint=OTHER_RUN,
        )  # fmt: skip
    reader = PartsReader(rows=(as_dict(asked.get("doc")) for asked in docs.values()))
    config = as_dict(about.get("task_config"))
    columns = _columns(list(rows.values()), as_dict(about.get("metrics")), config)
    notes = [] if metrics else ["no metrics file beside it: nothing to check the rows against"]
    notes += [] if docs else ["no requests file beside it: items have ids and no texts"]
    model = as_dict(about.get("model_config"))
    return Log(
        tool="olmes",
        model=text_or_none(model.get("model")) or file.path.absolute().parent.name,
        benchmark=text_or_none(about.get("task_name")) or (match["task"] if match else stem),
        split=text_or_none(config.get("split")),
        run_id=text_or_none(about.get("current_date")),
        items=tuple(_item(row, docs.get(name, {}), reader) for name, row in rows.items()),
        columns=tuple(columns),
        notes=tuple(notes),
        primary=text_or_none(config.get("primary_metric")),
        setup=setup_of(
            version=config.get("version"),
            examples=config.get("num_shots"),
            prompt=as_dict(config.get("context_kwargs")),
        ),
    )


def _companion(file: LogFile, name: str) -> LogFile | None:
    return neighbour(file.path.with_name(name)) or neighbour(file.path.with_name(f"{name}.gz"))


def _rows(file: LogFile) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for line, row in file.lines:
        if not is_predictions(row):
            raise LogError(
                "{}:{}: no doc_id, native_id and metrics", file.path, line, hint=OTHER_RUN
            )
        put_once(rows, str(row["doc_id"]), row, f"{file.path}:{line}", "document")
    return rows


def _docs(file: LogFile) -> dict[str, Row]:
    """The first request of every document."""
    docs: dict[str, Row] = {}
    for _, row in file.lines:
        docs.setdefault(str(row.get("doc_id")), row)
    return docs


def _item(row: Row, asked: Row, reader: PartsReader) -> LoggedItem:
    doc, native = row["doc_id"], row.get("native_id")
    texts = reader.read(as_dict(asked.get("doc")))
    return LoggedItem(
        item_id=str(doc if native is None else native),
        position=doc if isinstance(doc, int) and not isinstance(doc, bool) else None,
        prompt=None if texts.question else _prompt(as_dict(asked.get("request"))),
        **texts._replace(answer=texts.answer or text_or_none(row.get("label")))._asdict(),
    )


def _prompt(request: Row) -> str | None:
    """The context of a request: a text, or a chat."""
    context = request.get("context")
    return last_asked(as_dict(context).get("messages", context), is_of_user)


def _columns(rows: list[Row], reported: Row, config: Row) -> list[ScoreColumn]:
    known = {**as_dict(reported.get("extra_metrics")), **reported}
    primary = text_or_none(config.get("primary_metric"))
    names = dict.fromkeys(
        name
        for row in rows
        for name, value in row["metrics"].items()
        if isinstance(value, bool | int | float) and not _NOT_SCORES.fullmatch(name)
    )
    return [_column(name, rows, number_or_none(known.get(name)), name == primary) for name in names]


def _column(
    name: str,
    rows: list[Row],
    reported: float | None,
    primary: bool,  # noqa: FBT001 - a fact
) -> ScoreColumn:
    values = [row["metrics"].get(name) for row in rows]
    column = mean_column(
        name, values, reported=reported, higher_is_better=not _LOWER.fullmatch(name)
    )
    if column.kind == "none" or primary or reported is None or column.adds_up():
        return column
    # A task may sum a secondary metric, or take its maximum: nothing in the log says so.
    return no_column(name, len(rows), "its reported number is not the mean of its rows")


def _is_part(file: LogFile) -> bool:
    return first_line(is_beside)(file) or document(is_metrics)(file)


READER: Final = LogReader(
    title="OLMES",
    fits=first_line(is_predictions),
    read=read,
    is_part=_is_part,
    rows_of=predictions_of,
)
