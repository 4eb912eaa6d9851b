"""Read OpenAI evals: a JSONL file of events that holds the final report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.errors import LogError
from contam.rescore.logs.item_parts import last_asked
from contam.rescore.logs.json_values import Row, as_dict, as_list, number_or_none, text_or_none
from contam.rescore.logs.log_files import LogReader, first_line
from contam.rescore.logs.model import Log, LoggedItem, mean_column

if TYPE_CHECKING:
    from contam.rescore.logs.log_files import LogFile

_MATCH: Final = "accuracy"
"""What the report calls the share of `match` events that are correct."""


def is_spec(row: Row) -> bool:
    """Whether a first line is the specification of a run."""
    return "spec" in row and "eval_name" in as_dict(row.get("spec"))


def read(file: LogFile) -> Log:
    """Read a record file; LogError when the run did not end."""
    spec: Row = {}
    report: Row | None = None
    results: dict[str, Row] = {}
    prompts: dict[str, Any] = {}
    expected: dict[str, object] = {}
    failed: set[str] = set()
    for line, row in file.lines:
        if "spec" in row:
            if spec:
                raise LogError("{}:{}: a second run begins", file.path, line, hint="split the file")
            spec = as_dict(row["spec"])
        elif "final_report" in row:
            report = as_dict(row["final_report"])
        else:
            name, data = str(row.get("sample_id")), as_dict(row.get("data"))
            kind = str(row.get("type"))
            if kind == "sampling":
                prompts.setdefault(name, data.get("prompt"))
            elif kind == "error":
                failed.add(name)
            elif kind in {"match", "metrics"}:
                values = {_MATCH: data.get("correct")} if kind == "match" else _numbers(data)
                if not all(isinstance(v, bool | int | float) for v in values.values()):
                    raise LogError("{}:{}: `correct` is neither true nor false", file.path, line)
                known = results.setdefault(name, {})
                if known.keys() & values.keys():
                    raise LogError(
                        "{}:{}: a second result for sample {}", file.path, line, name,
                        hint="two runs in one file, or an eval that scores a sample more than once",
                    )  # fmt: skip
                known.update(values)
                expected.setdefault(name, data.get("expected", data.get("ideal")))
    if report is None:
        raise LogError("{}: the run did not end (no final_report)", file.path, hint="run it again")
    if not results:
        raise LogError(
            "{}: no scores of samples", file.path, hint="events of type match or metrics are read"
        )
    names = dict.fromkeys([*results, *prompts, *sorted(failed)])
    return _log(spec, report, tuple(names), results=results, prompts=prompts, gold=expected)


def _log(
    spec: Row,
    report: Row,
    names: tuple[str, ...],
    *,
    results: dict[str, Row],
    prompts: dict[str, Any],
    gold: dict[str, object],
) -> Log:
    metrics = dict.fromkeys(metric for values in results.values() for metric in values)
    columns = [
        mean_column(
            metric,
            [results.get(name, {}).get(metric) for name in names],
            reported=number_or_none(report.get(metric)),
        )
        for metric in metrics
    ]
    n_errors = sum(name not in results for name in names)
    notes = [f"{c.metric}: the report has no such number" for c in columns if c.reported is None]
    if n_errors:
        notes.append(f"{n_errors} samples were asked and have no result")
    model = next(iter(as_list(spec.get("completion_fns"))), "")
    return Log(
        tool="openai-evals",
        model=str(model),
        benchmark=text_or_none(spec.get("eval_name")) or "",
        split=text_or_none(spec.get("split")),
        run_id=text_or_none(spec.get("run_id")),
        items=tuple(_item(name, prompts.get(name), gold.get(name)) for name in names),
        columns=tuple(columns),
        notes=tuple(notes),
        n_errors=n_errors,
    )


def _numbers(data: Row) -> Row:
    return {key: value for key, value in data.items() if isinstance(value, bool | int | float)}


def _item(name: str, prompt: object, gold: object) -> LoggedItem:
    number = name.rpartition(".")[2]
    golds = gold if isinstance(gold, list) else [gold]
    return LoggedItem(
        item_id=name,
        position=int(number) if number.isdecimal() else None,
        answer=text_or_none(golds[0].strip()) if golds and isinstance(golds[0], str) else None,
        prompt=last_asked(prompt, lambda turn: turn.get("role") != "system"),
    )


READER: Final = LogReader(title="OpenAI evals", fits=first_line(is_spec), read=read)
