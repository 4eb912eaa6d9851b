"""Read lighteval: `details_TASK_TIME.parquet` and the results file of the same time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from contam.errors import LogError
from contam.rescore.logs.item_parts import PartsReader, Texts, real_choices
from contam.rescore.logs.json_values import Row, as_dict, as_list, number_or_none, text_or_none
from contam.rescore.logs.log_files import LogFile, LogReader, document
from contam.rescore.logs.model import Log, LoggedItem, ScoreColumn, mean_column, no_column, setup_of
from contam.tables.input_tables import column_names, read_columns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NAME: Final = re.compile(
    r"details_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.parquet"
)
_NEW: Final = frozenset({"doc", "metric"})
_OLD: Final = frozenset({"metrics", "full_prompt", "gold", "example"})


def is_details(file: LogFile) -> bool:
    """Whether a Parquet file holds details, of any version."""
    names = set(column_names(file.path))
    return names >= _NEW or ("metrics" in names and bool(names & (_OLD - {"metrics"})))


def is_results(value: object) -> bool:
    """Whether a JSON file is the results file of a run."""
    found = as_dict(value)
    return "results" in found and "config_general" in found


def read(file: LogFile) -> Log:
    """Read one details file, of 0.9 and later or the flat one of before."""
    match = _NAME.fullmatch(file.path.name)
    task = match["task"] if match else file.path.stem
    time = match["time"] if match else None
    results = _results(file.path, time)
    names = column_names(file.path)
    wanted = [name for name in names if name in _NEW | _OLD | {"choices", "gold_index"}]
    columns = read_columns(file.path, wanted)
    if "doc" in columns:
        items = [_item(as_dict(doc), place) for place, doc in enumerate(columns["doc"])]
    else:
        items = _old_items(columns)
    metrics = [*map(as_dict, columns["metric" if "doc" in columns else "metrics"])]
    _check_ids(file, items)
    own = as_dict(as_dict(results.get("results")).get(task))
    config = as_dict(as_dict(results.get("config_tasks")).get(task))
    scores = _columns(metrics, own, config)
    notes = []
    if not results:
        notes.append("no results file of the same time: nothing to check the rows against")
    if "doc" not in columns:
        notes.append("details of a version before 0.9: rows have no id")
    general = as_dict(results.get("config_general"))
    name = text_or_none(general.get("model_name"))
    config_model = as_dict(general.get("model_config"))
    splits = [str(split) for split in as_list(config.get("evaluation_splits"))]
    return Log(
        tool="lighteval",
        model=name or text_or_none(config_model.get("model_name")) or _model(file.path),
        benchmark=task,
        split=splits[0] if len(splits) == 1 else None,
        run_id=time,
        items=tuple(items),
        columns=tuple(scores),
        notes=tuple(notes),
        setup=setup_of(
            version=config.get("version"),
            examples=config.get("num_fewshots", config.get("num_fewshot")),
            prompt={"function": config.get("prompt_function")} if config else None,
        ),
    )


def _results(path: Path, time: str | None) -> Row:
    """`results/ORG/MODEL/results_TIME.json` for `details/ORG/MODEL/TIME/details_*.parquet`."""
    if time is None:
        return {}
    for folder in path.absolute().parents:
        if folder.name == "details":
            below = path.absolute().parent.relative_to(folder)
            model = below.parent if below.name == time else below
            wanted = folder.parent / "results" / model / f"results_{time}.json"
            if wanted.is_file():
                return as_dict(LogFile(wanted).document)
    return {}


def _model(path: Path) -> str:
    parts = path.absolute().parent.parts
    if "details" in parts:
        below = parts[len(parts) - parts[::-1].index("details") :]
        return "/".join(below[:-1] or below)
    return path.parent.name


def _item(doc: Row, place: int) -> LoggedItem:
    choices = [str(choice) for choice in as_list(doc.get("choices"))]
    gold = doc.get("gold_index")
    places = [g for g in (gold if isinstance(gold, list) else [gold]) if isinstance(g, int)]
    answers = [choices[at] for at in places if 0 <= at < len(choices)]
    real = real_choices(choices)
    letters = len(choices) > 1 and real is None
    specific = {k: v for k, v in as_dict(doc.get("specific")).items() if v is not None}
    texts = PartsReader().read(specific) if specific else Texts()
    query = text_or_none(doc.get("query"))
    name = str(doc.get("id")) if doc.get("id") is not None else str(place)
    return LoggedItem(
        item_id=name,
        position=int(name) if name.isdecimal() else None,
        question=texts.question,
        passage=texts.passage,
        choices=texts.choices or real,
        answer=None if letters else text_or_none("\n".join(answers).strip()),
        # What is asked stands inside the query, between words of the prompt.
        prompt=query,
    )


def _old_items(columns: dict[str, list[Any]]) -> list[LoggedItem]:
    queries = (
        columns.get("example") or columns.get("full_prompt") or [None] * len(columns["metrics"])
    )
    prompts = columns.get("full_prompt") or queries
    return [
        LoggedItem(item_id=str(row), prompt=text_or_none(query) or text_or_none(prompt))
        for row, (query, prompt) in enumerate(zip(queries, prompts, strict=True))
    ]


def _check_ids(file: LogFile, items: Sequence[LoggedItem]) -> None:
    """Two splits in one task count from 0 each: then ids say nothing, but texts still do."""
    seen: dict[str, LoggedItem] = {}
    for row, item in enumerate(items, 1):
        known = seen.setdefault(item.item_id, item)
        if known is not item and known.prompt == item.prompt and known.question == item.question:
            raise LogError(
                "{}, row {}: item {} stands here again", file.path, row, item.item_id,
                hint="the file was put together from two",
            )  # fmt: skip


def _columns(metrics: list[Row], own: Row, config: Row) -> list[ScoreColumn]:
    columns = []
    described = {
        str(metric.get("metric_name")): metric
        for metric in map(as_dict, as_list(config.get("metrics")))
    }
    for metric in dict.fromkeys(name for row in metrics for name in row):
        values = [row.get(metric) for row in metrics]
        about = described.get(metric, {})
        function = text_or_none(about.get("corpus_level_fn")) or "mean"
        better = about.get("higher_is_better")
        if function not in {"mean", "nanmean"}:
            columns.append(no_column(metric, len(metrics), f"its aggregation is {function[:40]}"))
        else:
            columns.append(
                mean_column(
                    metric,
                    values,
                    reported=number_or_none(own.get(metric)),
                    higher_is_better=better if isinstance(better, bool) else None,
                )
            )
    return columns


def _fits(file: LogFile) -> bool:
    return file.form == "parquet" and is_details(file)


READER: Final = LogReader(
    title="lighteval details", fits=_fits, read=read, is_part=document(is_results), elsewhere=True
)
