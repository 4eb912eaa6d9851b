"""Read runs that stand in several files: HELM, OpenCompass, OLMES and Every Eval Ever.

HELM's run folders hold `per_instance_stats.json` and `scenario_state.json`. OpenCompass keeps the
prompts in `predictions/MODEL/DATASET.json` and the scores in `results/MODEL/DATASET.json`: per item
only where the run dumped its details. OLMES writes `task-000-TASK-predictions.jsonl` with scores
and the ids of the data set, its requests hold the texts and its metrics what the tool reports;
without the requests items are joined by id. Every Eval Ever sums `UUID_samples.jsonl` up in
`UUID.json`.
"""

from __future__ import annotations

import glob
import hashlib
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from contam.errors import Public
from contam.rescore.logs.log_files import (
    CUT_OR_CHANGED,
    LogFile,
    LogReader,
    PartsReader,
    Record,
    as_list,
    digest_of,
    document,
    fields,
    first_line,
    is_number,
    is_of_user,
    last_asked,
    number_or_none,
    real_choices,
    records,
    text_or_none,
)
from contam.rescore.logs.model import Log, LoggedItem, mean_column, no_column, setup_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    Items = Mapping[tuple[str, str], LoggedItem]
    from contam.rescore.logs.log_files import Texts
    from contam.rescore.logs.model import ScoreColumn


_ROWS: Final = "per_instance_stats.json"
_STATE: Final = "scenario_state.json"
_SPEC: Final = "run_spec.json"
_STATS: Final = "stats.json"
_PARTS: Final = frozenset({_STATE, _SPEC, _STATS, "scenario.json"})
_MODEL: Final = re.compile(r",?model=[^,]*")
_PROMPT: Final = (
    *("method", "instructions", "global_prefix", "global_suffix", "instance_prefix"),
    *("input_prefix", "input_suffix", "reference_prefix", "reference_suffix"),
    *("output_prefix", "output_suffix", "chain_of_thought_prefix", "chain_of_thought_suffix"),
)
_ABOUT_THE_RUN: Final = re.compile(
    r"num_.*|finish_reason_.*|training_.*|inference_.*|batch_size|logprob|max_prob|prompt_truncated"
    r"|predicted_index|perplexity|bits_per_byte|log_prob.*"
)
"""Statistics of a request, not of how good its answer is."""


def _is_run(folder: Path) -> bool:
    """Whether a folder is the run folder of a model and scenario."""
    return (folder / _ROWS).is_file() and (folder / _SPEC).is_file()


def read_helm(file: LogFile) -> list[Log]:
    """Read a run folder, given its `per_instance_stats.json`: a log per split it was scored on."""
    folder = file.path.parent
    state = file.beside(_STATE)
    if state is None:
        raise file.fault("no {} beside it, which holds the texts", Public(_STATE))
    spec = LogFile(folder / _SPEC).record
    adapter = spec.inside("adapter_spec")
    multiple = str(adapter.get("method", "")).startswith("multiple_choice")
    texts = _texts(state.record, multiple=multiple)
    stats = file.beside(_STATS)
    means = _means(records(stats.document)) if stats else ()
    reported = {(split, metric): mean for split, metric, mean in means if mean is not None}
    logs = []
    for split, rows in _by_split(file, texts).items():
        if without := {name for key, name in texts if key == split} - set(rows):
            raise file.fault("no scores for {} instances of {}", len(without), Public(_STATE))
        columns = []
        for metric in dict.fromkeys(metric for own in rows.values() for metric in own):
            values = [own.get(metric, []) for own in rows.values()]
            score = [sum(v) / len(v) if v else None for v in values]
            number = reported.get((split, metric))
            columns.append(mean_column(metric, score, repeats=[*map(len, values)], reported=number))
        logs.append(
            Log(
                tool="helm",
                path=str(folder),
                digest=digest_of(file, state),
                model=adapter.text("model") or "",
                benchmark=_MODEL.sub("", str(spec.get("name", folder.name))).rstrip(":,"),
                split=split or None,
                run_id=folder.parent.name or None,
                items=tuple(texts[split, name] for name in rows),
                columns=tuple(columns),
                notes=() if stats else (_UNCHECKED,),
                setup=setup_of(
                    examples=adapter.get("max_train_instances"),
                    prompt={name: adapter.get(name) for name in _PROMPT},
                ),
            )
        )
    return logs


_UNCHECKED: Final = f"no {_STATS} beside it: nothing to check the rows against"


def _texts(state: Record, *, multiple: bool) -> Items:
    """Items by split and id; an item is asked several times when options are scored one by one."""
    found: dict[tuple[str, str], LoggedItem] = {}
    for request in state.records("request_states"):
        instance = request.inside("instance")
        if instance.get("perturbation"):
            continue
        name, split = str(instance.get("id")), str(instance.get("split") or "")
        references = instance.records("references")
        texts = [str(one.inside("output").get("text", "")).strip() for one in references]
        tags = [one.array("tags") for one in references]
        right = [text for text, own in zip(texts, tags, strict=True) if "correct" in own]
        item = LoggedItem(
            item_id=name,
            question=instance.inside("input").text("text"),
            choices=tuple(texts) if multiple and len(texts) > 1 else None,
            answer=right[0] if right else None,
        )
        found.setdefault((split, name), item)
    return found


def _by_split(file: LogFile, texts: Items) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Split -> instance -> metric -> a mean per trial; copies with perturbed texts are left out."""
    splits: dict[str, dict[str, dict[str, list[float]]]] = {}
    seen = set()
    for place, row in enumerate(records(file.document), 1):
        if row.get("perturbation"):
            continue
        name, trial = str(row.get("instance_id")), row.get("train_trial_index")
        for split, metric, mean in _means(row.records("stats")):
            if (split, name) not in texts:
                said = "instance {} is not in {}"
                raise file.fault(said, name, Public(_STATE), row=place)
            if (split, name, trial, metric) in seen:
                raise file.fault("instance {} stands here again", name, row=place)
            seen.add((split, name, trial, metric))
            known = splits.setdefault(split, {}).setdefault(name, {})
            if mean is not None and not _ABOUT_THE_RUN.fullmatch(metric):
                known.setdefault(metric, []).append(mean)
    return splits


def _means(stats: list[Record]) -> Iterator[tuple[str, str, float | None]]:
    """(split, metric, mean) of statistics of texts that are not perturbed.

    None for one without a value or with NaN, which HELM drops.
    """
    for entry in stats:
        title = entry.inside("name")
        if not title.get("perturbation"):
            count, total = entry.number("count"), entry.number("sum")
            mean = total / count if count and total is not None else math.nan
            known = None if math.isnan(mean) else mean
            yield str(title.get("split") or ""), str(title.get("name")), known


HELM: Final = LogReader(
    title="HELM",
    fits=lambda file: file.path.name == _ROWS and _is_run(file.path.parent),
    read=read_helm,
    is_part=lambda file: file.path.name in _PARTS and _is_run(file.path.parent),
    rows_of=lambda path: [path.parent / _ROWS],
)


_DUMP_EVAL_DETAILS: Final = "run the evaluation again with --dump-eval-details"
_CORRECT: Final = ("correct", "is_correct", "cascade_correct")
_MEANS: Final = ("accuracy", "score")
_PART: Final = re.compile(r"(?P<stem>.+)_\d+")
_PERCENT: Final = 100


def _is_opencompass(file: LogFile) -> bool:
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


def read_opencompass(file: LogFile) -> Log:
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
        items=tuple(map(_asked_item, range(len(correct)), asked or details)),
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


def _asked_item(place: int, row: Record) -> LoggedItem:
    gold = row.get("gold", row.get("references", row.get("answer")))
    return LoggedItem(
        item_id=str(place),
        answer=text_or_none((as_list(gold) or [gold])[0]),
        prompt=last_asked(row.get("origin_prompt", row.get("prompt")), is_of_user),
    )


OPEN_COMPASS: Final = LogReader(
    title="OpenCompass", fits=_is_opencompass, read=read_opencompass, first_of=_results_of
)


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


def read_olmes(file: LogFile) -> Log:
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
            _olmes_item(row, asked, reader.read(asked.inside("doc")))
            for asked, row in ((docs.get(name, Record()), row) for name, row in rows.items())
        ),
        columns=tuple(_olmes_columns(list(rows.values()), about.inside("metrics"), config)),
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


def _olmes_item(row: Record, asked: Record, texts: Texts) -> LoggedItem:
    doc, native = row["doc_id"], row.get("native_id")
    # The context of a request is a text, or a chat.
    context = asked.inside("request").get("context")
    prompt = last_asked(Record.of(context).get("messages", context), is_of_user)
    return LoggedItem(
        item_id=str(doc if native is None else native),
        prompt=None if texts.question else prompt,
        **texts._replace(answer=texts.answer or row.text("label"))._asdict(),
    )


def _olmes_columns(rows: list[Record], reported: Record, config: Record) -> Iterator[ScoreColumn]:
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


OLMES: Final = LogReader(
    title="OLMES",
    fits=first_line(_is_predictions),
    read=read_olmes,
    is_part=lambda file: first_line(_is_beside)(file) or document(_is_metrics)(file),
    rows_of=_predictions_of,
)


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


def read_every_eval(file: LogFile) -> list[Log]:
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


EVERY_EVAL: Final = LogReader(
    title="Every Eval Ever",
    fits=first_line(_is_instance),
    read=read_every_eval,
    is_part=document(fields("evaluation_results", "schema_version")),
    rows_of=_samples_of,
)
