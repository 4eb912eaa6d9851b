"""Read OLMES: `task-000-TASK-predictions.jsonl` with its metrics and requests files.

The predictions hold scores and the data set's own ids, the requests the texts, the metrics what the
tool reports. Without the requests items are joined by id.
"""

from __future__ import annotations

import glob
import re
from typing import TYPE_CHECKING, Final

from contam.rescore.logs.log_files import (
    LogReader,
    PartsReader,
    Record,
    document,
    fields,
    first_line,
    is_number,
    is_of_user,
    last_asked,
)
from contam.rescore.logs.model import Log, LoggedItem, mean_column, no_column, setup_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contam.rescore.logs.log_files import LogFile, Texts
    from contam.rescore.logs.model import ScoreColumn

_NAME: Final = re.compile(r"(?:task-\d+-)?(?P<task>.+)-predictions\.jsonl(?:\.\w+)?")
_NOT_SCORES: Final = re.compile(r"predicted_index.*|correct_choice|no_answer|num_.*|price|index")
"""Numbers in a row's metrics that say nothing of how good the answer is."""

_LOWER: Final = re.compile(r"bits_per_byte.*|.*ppl.*|.*perplexity.*")


def _is_predictions(row: Record) -> bool:
    """Whether a line is one document's result."""
    return "native_id" in row and "doc_id" in row and isinstance(row.get("metrics"), dict)


def _is_metrics(value: object) -> bool:
    """Whether a JSON file has the metrics of one task, or of all."""
    own, of_all = fields("task_config", "metrics", "num_instances"), fields("tasks")
    return own(value) or (of_all(value) and "all_primary_scores" in Record.of(value))


def _is_beside(row: Record) -> bool:
    """Whether a first line is a request, a recorded input or the metrics of a task."""
    asked = fields("native_id", "doc_id")(row) and ("request" in row or "requests" in row)
    return asked or _is_metrics(row)


def _predictions_of(path: Path) -> list[Path]:
    """The predictions that requests, metrics or recorded inputs belong to; of all tasks, all."""
    stem = re.sub(r"-(metrics\.json|requests\.jsonl|recorded-inputs\.jsonl).*", "", path.name)
    own = "*" if path.name.startswith("metrics") else glob.escape(stem)
    return sorted(path.parent.glob(f"{own}-predictions.jsonl*"))


def read(file: LogFile) -> Log:
    """Read the predictions of one task. Raises LogError when its files contradict each other."""
    match = _NAME.fullmatch(file.path.name)
    stem = file.path.name.partition("-predictions.jsonl")[0]
    metrics = _companion(file, f"{stem}-metrics.json")
    about = Record.of(metrics and metrics.document)
    rows: dict[str, Record] = {}
    for line, row in file.lines:
        if not _is_predictions(row):
            raise file.fault("no doc_id, native_id and metrics", line=line)
        file.put_once(rows, str(row["doc_id"]), row, "document", line=line)
    file.check_count(len(rows), "documents", about.get("num_instances"))
    requests = _companion(file, f"{stem}-requests.jsonl")
    docs: dict[str, Record] = {}
    for _, row in requests.lines if requests else ():
        docs.setdefault(str(row.get("doc_id")), row)
    if absent := [name for name in rows if docs and name not in docs]:
        raise file.fault("document {} is not among the requests beside it", absent[0])
    reader = PartsReader(rows=(asked.inside("doc") for asked in docs.values()))
    config = about.inside("task_config")
    notes = [] if metrics else ["no metrics file beside it: nothing to check the rows against"]
    notes += [] if docs else ["no requests file beside it: items have ids and no texts"]
    return Log(
        tool="olmes",
        model=about.inside("model_config").text("model") or file.path.absolute().parent.name,
        benchmark=about.text("task_name") or (match["task"] if match else stem),
        split=config.text("split"),
        run_id=about.text("current_date"),
        items=tuple(
            _item(row, asked, reader.read(asked.inside("doc")))
            for asked, row in ((docs.get(name, Record()), row) for name, row in rows.items())
        ),
        columns=tuple(_columns(list(rows.values()), about.inside("metrics"), config)),
        notes=tuple(notes),
        primary=config.text("primary_metric"),
        setup=setup_of(
            version=config.get("version"),
            examples=config.get("num_shots"),
            prompt=config.inside("context_kwargs"),
        ),
    )


def _companion(file: LogFile, name: str) -> LogFile | None:
    return file.beside(name) or file.beside(f"{name}.gz")


def _item(row: Record, asked: Record, texts: Texts) -> LoggedItem:
    doc, native = row["doc_id"], row.get("native_id")
    # The context of a request is a text, or a chat.
    context = asked.inside("request").get("context")
    prompt = last_asked(Record.of(context).get("messages", context), is_of_user)
    return LoggedItem(
        item_id=str(doc if native is None else native),
        position=doc if isinstance(doc, int) and not isinstance(doc, bool) else None,
        prompt=None if texts.question else prompt,
        **texts._replace(answer=texts.answer or row.text("label"))._asdict(),
    )


def _columns(rows: list[Record], reported: Record, config: Record) -> Iterator[ScoreColumn]:
    known = Record(reported.inside("extra_metrics") | reported)
    names = dict.fromkeys(
        name
        for row in rows
        for name, value in row["metrics"].items()
        if is_number(value) and not _NOT_SCORES.fullmatch(name)
    )
    for name in names:
        number = known.number(name)
        values = [row["metrics"].get(name) for row in rows]
        column = mean_column(
            name, values, reported=number, higher_is_better=not _LOWER.fullmatch(name)
        )
        primary = name == config.get("primary_metric")
        if column.kind == "none" or primary or number is None or column.adds_up():
            yield column
        else:
            # A task may sum a secondary metric, or take its maximum: nothing in the log says so.
            yield no_column(name, len(rows), "its reported number is not the mean of its rows")


READER: Final = LogReader(
    title="OLMES",
    fits=first_line(_is_predictions),
    read=read,
    is_part=lambda file: first_line(_is_beside)(file) or document(_is_metrics)(file),
    rows_of=_predictions_of,
)
