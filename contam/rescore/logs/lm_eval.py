"""Read lm-evaluation-harness: `samples_TASK_TIME.jsonl` and its results file.

A row stands for an item under one filter. Which metrics are means and which have a function of
their own stands in the results file; without one nothing can be checked, and the notes say so.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.rescore.logs.log_files import (
    LogFile,
    LogReader,
    PartsReader,
    Record,
    as_list,
    document,
    field_of_template,
    first_line,
    number_or_none,
    records,
    text_or_none,
)
from contam.rescore.logs.model import (
    CORPUS,
    ELSEWHERE,
    GroupClaim,
    Log,
    LoggedItem,
    ScoreColumn,
    are_numbers,
    mean_column,
    no_column,
    setup_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


_NAME = re.compile(
    r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.jsonl?(?:\.\w+)?"
)
_FIXED: Final = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"}
    | {"doc_hash", "prompt_hash", "target_hash"}
)
_TIMELESS: Final = "results.json"
_MEANS: Final = frozenset({"mean", "nanmean"})
_OF_NUMBERS: Final = frozenset({"perplexity", "median"})
_MODEL_KEYS: Final = ("peft", "delta", "pretrained", "model", "path", "engine")
_PROMPT: Final = (
    *("description", "doc_to_text", "doc_to_target", "doc_to_choice", "gen_prefix"),
    *("target_delimiter", "fewshot_delimiter"),
)


def _is_samples(row: Record) -> bool:
    """Whether a first line is one of `--log_samples`."""
    return "doc_id" in row and "doc" in row and ("resps" in row or "filtered_resps" in row)


def is_results(value: object) -> bool:
    """Whether a JSON file is the results file of a run."""
    found = Record.of(value)
    return "results" in found and ("lm_eval_version" in found or "configs" in found)


def _fits(file: LogFile) -> bool:
    """Whether a file holds the rows of a task, or is a results file that holds them."""
    if file.form not in {"list", "object"}:
        return first_line(_is_samples)(file)
    value = file.document
    if isinstance(value, list):
        return _is_samples(Record.of(next(iter(value), None)))
    return is_results(value) and bool(file.record.inside("samples"))


def _samples_of(results: Path) -> list[Path]:
    """The sample files that belong to a results file: those of the same time."""
    if results.name == _TIMELESS:
        return sorted(results.parent.glob("*_*.jsonl"))
    time = results.stem.rpartition("_")[2]
    return sorted(
        path
        for path in results.parent.glob("samples_*.json*")
        if (match := _NAME.fullmatch(path.name)) and match["time"] == time
    )


def read(file: LogFile) -> list[Log]:
    """Read one sample file and the results file beside it, or a results file with samples."""
    if file.form == "object":
        results = file.record
        return [
            _read(file, task, results, list(enumerate(records(rows), 1)))
            for task, rows in results.inside("samples").items()
        ]
    match = _NAME.fullmatch(file.path.name)
    task, time = match.group("task", "time") if match else ("", None)
    results = _results(file.path, time)
    if not match:
        # Until 0.4.2 a file was named after the model and the task.
        stem = file.path.stem.removeprefix("samples_")
        tasks = [name for name in results.inside("results") if stem.endswith(f"_{name}")]
        task = max(tasks, key=len, default=stem)
    rows = file.lines if file.form == "lines" else list(enumerate(records(file.document), 1))
    notes = () if results else (_UNCHECKED,)
    return [replace(_read(file, task, results, rows), run_id=time, notes=notes)]


_UNCHECKED: Final = "no results file of the same time beside it: nothing to check the rows against"


def _read(file: LogFile, task: str, results: Record, lines: list[tuple[int, Record]]) -> Log:
    """One task of a run."""
    own, config = results.inside("results", task), results.inside("configs", task)
    docs, filters = _by_filter(file, own, lines)
    reader = PartsReader(
        field_of_template(config.get("doc_to_decontamination_query")),
        rows=(row.inside("doc") for row in docs.values()),
    )
    items = tuple(_item(doc, row, reader) for doc, row in docs.items())
    if lost := sorted(set(_filters(own)) - set(filters)):
        raise file.fault("its results file reports filter {}, of which it has no row", lost[0])
    n_effective = results.inside("n-samples", task).get("effective")
    file.check_count(len(items), "documents", own.get("sample_len", n_effective))
    better = results.inside("higher_is_better", task)
    # The first entry of a metric counts.
    entries = reversed(config.records("metric_list"))
    aggregations = {entry.text("metric"): entry.text("aggregation") for entry in entries}
    columns = [
        _column(metric, f"{metric},{name}", rows, own, better, aggregations.get(metric))
        for name, by_doc in filters.items()
        for rows in [[by_doc.get(doc, Record()) for doc in docs]]
        for metric in dict.fromkeys(metric for row in by_doc.values() for metric in _metrics(row))
    ]
    shots = results.inside("n-shot").get(task)
    version = config.inside("metadata").get("version")
    return Log(
        tool="lm-eval",
        tool_version=results.text("lm_eval_version"),
        model=_model(results, file.path),
        benchmark=task,
        split=config.text("test_split") or config.text("validation_split"),
        items=items,
        columns=tuple(columns),
        group=_parent(results, task),
        claims=tuple(_claims(results, task)),
        # A model's own chat template is not a set-up.
        setup=setup_of(
            version=results.inside("versions").get(task, version),
            examples=config.get("num_fewshot") if shots is None else shots,
            prompt={name: config.get(name) for name in _PROMPT} if config else None,
            system=results.get("system_instruction_sha") or results.get("system_instruction"),
        ),
    )


def _results(path: Path, time: str | None) -> Record:
    """The results file of the same run, {} where there is none."""
    others = sorted(path.parent.glob(f"*_{time}.json" if time else f"*{_TIMELESS}"))
    found = (LogFile(other).document for other in others if other != path)
    return Record.of(next(filter(is_results, found), None))


def results_of(log: Log) -> Record:
    """The results file that a log was checked against, {} where there is none."""
    return _results(Path(log.path), log.run_id)


def _model(results: Record, path: Path) -> str:
    given = results.inside("config").get("model_args")
    if isinstance(given, str):
        given = dict(piece.partition("=")[::2] for piece in given.split(","))
    arguments = Record.of(given)
    name = results.text("model_name")
    for key in _MODEL_KEYS:
        name = name or arguments.text(key)
    # Without a name lm-eval writes into a folder of its own making, which names the model.
    return name or path.absolute().parent.name.replace("__", "/")


def _item(doc: str, row: Record, reader: PartsReader) -> LoggedItem:
    texts = reader.read(row.inside("doc"))
    if texts.answer is None:
        texts = texts._replace(answer=row.text("target"))
    prompt = None
    if texts.question is None:
        arguments = row.get("arguments")
        first = next(iter(Record.of(arguments).values()), None) or next(
            iter(as_list(arguments)), None
        )
        prompt = Record.of(first).get("arg_0") or next(iter(as_list(first)), None)
    return LoggedItem(
        item_id=doc,
        prompt=text_or_none(prompt),
        doc_hash=row.text("doc_hash"),
        **texts._asdict(),
    )


def _filters(own: Record) -> list[str]:
    """The filters a task's numbers are reported for, in their order."""
    keys = (key for key in own if "," in key and "_stderr," not in key)
    return list(dict.fromkeys(key.partition(",")[2] for key in keys))


def _by_filter(
    file: LogFile, own: Record, lines: list[tuple[int, Record]]
) -> tuple[dict[str, Record], dict[str, dict[str, Record]]]:
    """The first row of each document, and the rows by filter and document, in the order met.

    Rows of before 0.4.7 do not name their filter, but come in its order.
    """
    docs: dict[str, Record] = {}
    filters: dict[str, dict[str, Record]] = {}
    reported = _filters(own)
    seen: dict[str, int] = {}
    for line, row in lines:
        if "doc_id" not in row:
            raise file.fault("no doc_id", line=line, hint="a row of another file?")
        doc = str(row["doc_id"])
        turn = seen[doc] = seen.get(doc, -1) + 1
        name = row.get("filter")
        if name is None:
            name = reported[turn] if turn < len(reported) else "none"
        file.put_once(filters.setdefault(str(name), {}), doc, row, "document", line=line)
        if docs.setdefault(doc, row).get("doc_hash") != row.get("doc_hash"):
            raise file.fault("document {} has another text than before", doc, line=line)
    return docs, filters


def _metrics(row: Record) -> list[str]:
    """Metrics of a row; old versions do not list them: they are what is not there in all rows."""
    listed = row.get("metrics")
    return listed if isinstance(listed, list) else [key for key in row if key not in _FIXED]


def _column(
    metric: str, title: str, rows: list[Record], own: Record, better: Record,
    aggregation: str | None,
) -> ScoreColumn:  # fmt: skip
    """One metric under one filter, of a row for each document; {} for one without.

    own, better  what the task reports, and which way its metrics count;  aggregation  of the
    metric, None where the results file does not say
    """
    if metric == "bypass":
        return no_column(title, len(rows), "the run only predicted and scored nothing")
    values = [row.get(metric) for row in rows]
    reported = own.number(title)
    if reported is not None and math.isnan(reported):
        return no_column(title, len(rows), "the tool's own number is NaN, as a row of it is")
    higher = better.truth(metric)
    # Tasks written in Python do not name aggregations; then plain numbers are averaged, and the
    # check against the reported number shows whether that is what the task does.
    plain = aggregation is None and metric not in _OF_NUMBERS and are_numbers(values)
    function = CORPUS.get(aggregation or metric)
    if plain or aggregation in _MEANS:
        return mean_column(
            title,
            values,
            repeats=[*map(_repeats, rows)],
            reported=reported,
            higher_is_better=higher,
        )
    known = aggregation or metric
    if function is None:
        why = "needs the package that defines it" if known in ELSEWHERE else "is not known here"
        return no_column(title, len(rows), f"its aggregation {known[:40]!r} {why}")
    try:
        function([value for value in values if value is not None])
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        return no_column(title, len(rows), f"{known}: {error}")
    return ScoreColumn(
        metric=title,
        score=np.full(len(values), np.nan),
        repeats=np.array([value is not None for value in values], np.int32),
        kind="corpus",
        raw=tuple(values),
        function=function,
        reported=reported,
        higher_is_better=higher,
    )


def _repeats(row: Record) -> int:
    """Answers of the model to one request; the requests of one item are its choices."""
    if not row:
        return 0
    answers = row.array("resps")
    return max(1, len(as_list(answers[0]))) if len(answers) == 1 else 1


def _claims(results: Record, task: str) -> Iterator[GroupClaim]:
    """Numbers reported for the groups of tasks that hold this one."""
    for group in results.inside("groups"):
        tasks = _leaves(results, group)
        for key, value in results.inside("groups", group).items() if task in tasks else ():
            number = number_or_none(value)
            if "," in key and "_stderr," not in key and number is not None:
                yield GroupClaim(group=group, metric=key, reported=number, tasks=tasks)


def _leaves(results: Record, group: str) -> tuple[str, ...]:
    below = results.inside("group_subtasks")
    names = [group]
    for name in names:  # which grows meanwhile
        names += [task for task in map(str, below.array(name)) if task not in names]
    return tuple(name for name in names if not below.array(name))


def _parent(results: Record, task: str) -> str | None:
    groups = results.inside("group_subtasks").items()
    return next((str(group) for group, tasks in groups if task in as_list(tasks)), None)


READER: Final = LogReader(
    title="lm-eval samples",
    fits=_fits,
    read=read,
    is_part=document(is_results),
    rows_of=_samples_of,
)
