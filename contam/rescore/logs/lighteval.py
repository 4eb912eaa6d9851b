"""Read lighteval: `details_TASK_TIME.parquet` and the results file of the same time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from contam.rescore.logs.log_files import (
    LogFile,
    LogReader,
    PartsReader,
    Record,
    Texts,
    document,
    fields,
    real_choices,
    text_or_none,
)
from contam.rescore.logs.model import Log, LoggedItem, mean_column, no_column, setup_of
from contam.tables.input_tables import column_names, read_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.rescore.logs.model import ScoreColumn

_NAME: Final = re.compile(
    r"details_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.parquet"
)
_NEW: Final = frozenset({"doc", "metric"})
_OLD: Final = frozenset({"metrics", "full_prompt", "gold", "example"})


def _is_details(file: LogFile) -> bool:
    """Whether a file holds details, of any version."""
    names = set(column_names(file.path)) if file.form == "parquet" else set()
    return names >= _NEW or ("metrics" in names and bool(names & (_OLD - {"metrics"})))


def read(file: LogFile) -> Log:
    """Read one details file, of 0.9 and later or the flat one of before."""
    match = _NAME.fullmatch(file.path.name)
    task, time = match.group("task", "time") if match else (file.path.stem, None)
    results = _results(file.path, time)
    names = column_names(file.path)
    wanted = [name for name in names if name in _NEW | _OLD | {"choices", "gold_index"}]
    columns = read_columns(file.path, wanted)
    is_new = "doc" in columns
    items = [*map(_item, columns["doc"], range(len(columns["doc"])))] if is_new else _old(columns)
    _check_ids(file, items)
    config = results.inside("config_tasks", task)
    metrics = [*map(Record.of, columns["metric" if is_new else "metrics"])]
    notes = []
    if not results:
        notes.append("no results file of the same time: nothing to check the rows against")
    if not is_new:
        notes.append("details of a version before 0.9: rows have no id")
    general = results.inside("config_general")
    name = general.text("model_name")
    splits = [str(split) for split in config.array("evaluation_splits")]
    return Log(
        tool="lighteval",
        model=name or general.inside("model_config").text("model_name") or _model(file.path),
        benchmark=task,
        split=splits[0] if len(splits) == 1 else None,
        run_id=time,
        items=tuple(items),
        columns=tuple(_columns(metrics, results.inside("results", task), config)),
        notes=tuple(notes),
        setup=setup_of(
            version=config.get("version"),
            examples=config.get("num_fewshots", config.get("num_fewshot")),
            prompt={"function": config.get("prompt_function")} if config else None,
        ),
    )


def _results(path: Path, time: str | None) -> Record:
    """`results/ORG/MODEL/results_TIME.json` for `details/ORG/MODEL/TIME/details_*.parquet`."""
    for folder in path.absolute().parents if time else ():
        if folder.name == "details":
            below = path.absolute().parent.relative_to(folder)
            model = below.parent if below.name == time else below
            wanted = folder.parent / "results" / model / f"results_{time}.json"
            if wanted.is_file():
                return LogFile(wanted).record
    return Record()


def _model(path: Path) -> str:
    parts = path.absolute().parent.parts
    if "details" in parts:
        below = parts[len(parts) - parts[::-1].index("details") :]
        return "/".join(below[:-1] or below)
    return path.parent.name


def _item(cell: object, place: int) -> LoggedItem:
    doc = Record.of(cell)
    choices = [str(choice) for choice in doc.array("choices")]
    gold = doc.get("gold_index")
    places = [g for g in (gold if isinstance(gold, list) else [gold]) if isinstance(g, int)]
    answers = [choices[at] for at in places if 0 <= at < len(choices)]
    real = real_choices(choices)
    letters = len(choices) > 1 and real is None
    specific = {k: v for k, v in doc.inside("specific").items() if v is not None}
    texts = PartsReader().read(specific) if specific else Texts()
    name = str(doc.get("id")) if doc.get("id") is not None else str(place)
    return LoggedItem(
        item_id=name,
        question=texts.question,
        passage=texts.passage,
        choices=texts.choices or real,
        answer=None if letters else text_or_none("\n".join(answers).strip()),
        # What is asked stands inside the query, between words of the prompt.
        prompt=doc.text("query"),
    )


def _old(columns: dict[str, list[Any]]) -> list[LoggedItem]:
    """The items of a version before 0.9."""
    whole = columns.get("full_prompt")
    queries = columns.get("example") or whole or [None] * len(columns["metrics"])
    return [
        LoggedItem(item_id=str(row), prompt=text_or_none(query) or text_or_none(prompt))
        for row, (query, prompt) in enumerate(zip(queries, whole or queries, strict=True))
    ]


def _check_ids(file: LogFile, items: Sequence[LoggedItem]) -> None:
    """Two splits in one task count from 0 each: then ids say nothing, but texts still do."""
    seen: dict[str, LoggedItem] = {}
    for row, item in enumerate(items, 1):
        known = seen.setdefault(item.item_id, item)
        if known is not item and known.prompt == item.prompt and known.question == item.question:
            hint = "the file was put together from two"
            raise file.fault("item {} stands here again", item.item_id, row=row, hint=hint)


def _columns(metrics: list[Record], own: Record, config: Record) -> Iterator[ScoreColumn]:
    described = {str(about.get("metric_name")): about for about in config.records("metrics")}
    for metric in dict.fromkeys(name for row in metrics for name in row):
        about = described.get(metric, Record())
        function = about.text("corpus_level_fn") or "mean"
        if function not in {"mean", "nanmean"}:
            yield no_column(metric, len(metrics), f"its aggregation is {function[:40]}")
            continue
        yield mean_column(
            metric,
            [row.get(metric) for row in metrics],
            reported=own.number(metric),
            higher_is_better=about.truth("higher_is_better"),
        )


READER: Final = LogReader(
    title="lighteval details",
    fits=_is_details,
    read=read,
    is_part=document(fields("results", "config_general")),
    elsewhere=True,
)
