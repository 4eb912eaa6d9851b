"""Read Every Eval Ever: `UUID_samples.jsonl` per item, summed up in `UUID.json`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from contam.errors import LogError
from contam.rescore.logs.item_parts import real_choices
from contam.rescore.logs.json_values import (
    CUT_OR_CHANGED,
    Row,
    as_dict,
    as_list,
    number_or_none,
    put_once,
    text_or_none,
)
from contam.rescore.logs.log_files import LogReader, check_count, document, first_line, neighbour
from contam.rescore.logs.model import Log, LoggedItem, ScoreColumn, mean_column

if TYPE_CHECKING:
    from pathlib import Path

    from contam.rescore.logs.log_files import LogFile

SUFFIX: Final = "_samples.jsonl"


def is_instance(row: Row) -> bool:
    """Whether a first line is one item's result."""
    return "evaluation_id" in row and "sample_id" in row and "evaluation" in row


def is_aggregate(value: object) -> bool:
    """Whether a JSON file is the aggregate of a run."""
    found = as_dict(value)
    return "evaluation_results" in found and "schema_version" in found


def samples_of(aggregate: Path) -> list[Path]:
    """The instance file that belongs to an aggregate."""
    path = aggregate.with_name(aggregate.stem + SUFFIX)
    return [path] if path.is_file() else []


@dataclass(slots=True)
class _Run:
    """Rows of one model on one data set: items by id, scores by result and id."""

    items: dict[str, LoggedItem] = field(default_factory=dict)
    scores: dict[tuple[str, str], dict[str, float | None]] = field(default_factory=dict)
    evaluation_id: str | None = None


def read(file: LogFile) -> list[Log]:
    """Read an instance file with the aggregate beside it: a log per model and data set."""
    companion = neighbour(file.path.with_name(file.path.name.removesuffix(SUFFIX) + ".json"))
    aggregate = as_dict(companion.document) if companion else {}
    _check_whole(file, as_dict(aggregate.get("detailed_evaluation_results")))
    results = [as_dict(result) for result in as_list(aggregate.get("evaluation_results"))]
    runs: dict[tuple[str, str], _Run] = {}
    for line, row in file.lines:
        if not is_instance(row):
            raise LogError("{}:{}: no line of instances", file.path, line, hint=CUT_OR_CHANGED)
        name = str(row.get("evaluation_name"))
        key = (str(row.get("model_id")), _data_set(name, results))
        _take(file, line, row, runs.setdefault(key, _Run()))
    library = as_dict(aggregate.get("eval_library"))
    version = " ".join(str(library[key]) for key in ("name", "version") if library.get(key))
    notes = () if aggregate else ("no aggregate beside it: nothing to check the rows against",)
    return [
        Log(
            tool="every-eval-ever",
            tool_version=version or None,
            model=model,
            benchmark=data_set,
            run_id=run.evaluation_id,
            items=tuple(run.items.values()),
            columns=tuple(_columns(run, results)),
            notes=notes,
        )
        for (model, data_set), run in runs.items()
    ]


def _check_whole(file: LogFile, promised: Row) -> None:
    """Demand the number of lines that the aggregate promises, and its checksum where it has one."""
    check_count(file, len(file.lines), "lines", promised.get("total_rows"))
    if promised.get("hash_algorithm") == "sha256":
        digest = hashlib.sha256(file.data).hexdigest()
        if promised.get("checksum", digest) != digest:
            raise LogError(
                "{} is not what its aggregate's checksum says", file.path, hint=CUT_OR_CHANGED
            )


def _data_set(name: str, results: list[Row]) -> str:
    about = [result for result in results if result.get("evaluation_name") == name]
    sources = (as_dict(result.get("source_data")).get("dataset_name") for result in about)
    return next(filter(None, map(text_or_none, sources)), name.partition("/")[0])


def _take(file: LogFile, line: int, row: Row, run: _Run) -> None:
    name = str(row.get("sample_id"))
    item = _item(name, row)
    known = run.items.setdefault(name, item)
    if known.prompt != item.prompt:
        raise LogError(
            "{}:{}: sample {} has another text than before", file.path, line, name,
            hint="two data sets under one name",
        )  # fmt: skip
    scores = run.scores.setdefault(_key(row), {})
    score = number_or_none(as_dict(row.get("evaluation")).get("score"))
    put_once(scores, name, score, f"{file.path}:{line}", "sample")
    run.evaluation_id = run.evaluation_id or text_or_none(row.get("evaluation_id"))


def _item(name: str, row: Row) -> LoggedItem:
    given = as_dict(row.get("input"))
    references = [str(text) for text in as_list(given.get("reference"))]
    choices = real_choices([str(choice) for choice in as_list(given.get("choices"))])
    return LoggedItem(
        item_id=name,
        position=int(name) if name.isdecimal() else None,
        choices=choices,
        answer=text_or_none(references[0]) if references else None,
        # Converters put the whole prompt here.
        prompt=text_or_none(given.get("raw")),
    )


def _key(row: Row) -> tuple[str, str]:
    """What a result of items, and the aggregate's result of a metric, are told apart by."""
    return str(row.get("evaluation_name")), str(row.get("evaluation_result_id") or "")


def _columns(run: _Run, results: list[Row]) -> list[ScoreColumn]:
    names = [name for name, _ in run.scores]
    told = {_key(result): result for result in reversed(results)}
    columns = []
    for (name, result_id), scores in run.scores.items():
        title = name if names.count(name) == 1 else f"{name} {result_id}"
        about = told.get((name, result_id), {})
        details = as_dict(about.get("score_details"))
        counted = number_or_none(as_dict(details.get("uncertainty")).get("num_samples"))
        lower = as_dict(about.get("metric_config")).get("lower_is_better")
        columns.append(
            mean_column(
                title,
                [scores.get(item) for item in run.items],
                reported=number_or_none(details.get("score")),
                reported_n=None if counted is None else int(counted),
                higher_is_better=None if not isinstance(lower, bool) else not lower,
            )
        )
    return columns


READER: Final = LogReader(
    title="Every Eval Ever",
    fits=first_line(is_instance),
    read=read,
    is_part=document(is_aggregate),
    rows_of=samples_of,
)
