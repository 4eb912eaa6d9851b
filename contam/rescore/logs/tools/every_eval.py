"""Read Every Eval Ever: `UUID_samples.jsonl` per item, summed up in `UUID.json`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from contam.rescore.logs.log_files import (
    CUT_OR_CHANGED,
    LogReader,
    Record,
    document,
    fields,
    first_line,
    place_in,
    real_choices,
    text_or_none,
)
from contam.rescore.logs.model import Log, LoggedItem, mean_column

if TYPE_CHECKING:
    from pathlib import Path

    from contam.rescore.logs.log_files import LogFile
    from contam.rescore.logs.model import ScoreColumn

SUFFIX: Final = "_samples.jsonl"

_is_instance: Final = fields("evaluation_id", "sample_id", "evaluation")


def _samples_of(aggregate: Path) -> list[Path]:
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
    companion = file.beside(file.path.name.removesuffix(SUFFIX) + ".json")
    aggregate = Record.of(companion and companion.document)
    _check_whole(file, aggregate.inside("detailed_evaluation_results"))
    results = aggregate.records("evaluation_results")
    runs: dict[tuple[str, str], _Run] = {}
    for line, row in file.lines:
        if not _is_instance(row):
            raise file.fault("no line of instances", line=line, hint=CUT_OR_CHANGED)
        name = str(row.get("evaluation_name"))
        key = (str(row.get("model_id")), _data_set(name, results))
        _take(file, line, row, runs.setdefault(key, _Run()))
    library = aggregate.inside("eval_library")
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


def _check_whole(file: LogFile, promised: Record) -> None:
    """Demand the number of lines that the aggregate promises, and its checksum where it has one."""
    file.check_count(len(file.lines), "lines", promised.get("total_rows"))
    if promised.get("hash_algorithm") == "sha256":
        digest = hashlib.sha256(file.data).hexdigest()
        if promised.get("checksum", digest) != digest:
            raise file.fault("not what its aggregate's checksum says", hint=CUT_OR_CHANGED)


def _data_set(name: str, results: list[Record]) -> str:
    about = (result for result in results if result.get("evaluation_name") == name)
    sources = (result.inside("source_data").get("dataset_name") for result in about)
    return next(filter(None, map(text_or_none, sources)), name.partition("/")[0])


def _take(file: LogFile, line: int, row: Record, run: _Run) -> None:
    name, given = str(row.get("sample_id")), row.inside("input")
    references = [str(text) for text in given.array("reference")]
    item = LoggedItem(
        item_id=name,
        position=place_in(name),
        choices=real_choices([str(choice) for choice in given.array("choices")]),
        answer=text_or_none(references[0]) if references else None,
        # Converters put the whole prompt here.
        prompt=given.text("raw"),
    )
    if run.items.setdefault(name, item).prompt != item.prompt:
        hint = "two data sets under one name"
        raise file.fault("sample {} has another text than before", name, line=line, hint=hint)
    score = row.inside("evaluation").number("score")
    file.put_once(run.scores.setdefault(_key(row), {}), name, score, "sample", line=line)
    run.evaluation_id = run.evaluation_id or row.text("evaluation_id")


def _key(row: Record) -> tuple[str, str]:
    """What a result of items, and the aggregate's result of a metric, are told apart by."""
    return str(row.get("evaluation_name")), str(row.get("evaluation_result_id") or "")


def _columns(run: _Run, results: list[Record]) -> list[ScoreColumn]:
    names = [name for name, _ in run.scores]
    told = {_key(result): result for result in reversed(results)}
    columns = []
    for (name, result_id), scores in run.scores.items():
        about = told.get((name, result_id), Record())
        counted = about.inside("score_details", "uncertainty").number("num_samples")
        lower = about.inside("metric_config").truth("lower_is_better")
        columns.append(
            mean_column(
                name if names.count(name) == 1 else f"{name} {result_id}",
                [scores.get(item) for item in run.items],
                reported=about.inside("score_details").number("score"),
                reported_n=None if counted is None else int(counted),
                higher_is_better=None if lower is None else not lower,
            )
        )
    return columns


READER: Final = LogReader(
    title="Every Eval Ever",
    fits=first_line(_is_instance),
    read=read,
    is_part=document(fields("evaluation_results", "schema_version")),
    rows_of=_samples_of,
)
