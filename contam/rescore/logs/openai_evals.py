"""Read OpenAI evals: a JSONL file of events that holds the final report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from contam.rescore.logs.log_files import (
    LogReader,
    Record,
    first_line,
    is_number,
    last_asked,
    text_or_none,
)
from contam.rescore.logs.model import Log, LoggedItem, mean_column

if TYPE_CHECKING:
    from contam.rescore.logs.log_files import LogFile

_MATCH: Final = "accuracy"
"""What the report calls the share of `match` events that are correct."""

_TWO_RUNS: Final = "two runs in one file, or an eval that scores a sample more than once"


@dataclass(slots=True)
class _Samples:
    """What the events of a run say of its samples, by their names."""

    results: dict[str, Record] = field(default_factory=dict)
    prompts: dict[str, Any] = field(default_factory=dict)
    expected: dict[str, object] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def take(self, file: LogFile, line: int, event: Record) -> None:
        """Take up one event. Raises LogError for a second result of a sample."""
        name, data, kind = str(event.get("sample_id")), event.inside("data"), event.get("type")
        if kind == "sampling":
            self.prompts.setdefault(name, data.get("prompt"))
        elif kind == "error":
            self.failed.add(name)
        elif kind in {"match", "metrics"}:
            values = {key: value for key, value in data.items() if is_number(value)}
            if kind == "match":
                values = {_MATCH: data.get("correct")}
            if not all(map(is_number, values.values())):
                raise file.fault("`correct` is neither true nor false", line=line)
            known = self.results.setdefault(name, Record())
            if known.keys() & values.keys():
                said = "a second result for sample {}"
                raise file.fault(said, name, line=line, hint=_TWO_RUNS)
            known.update(values)
            self.expected.setdefault(name, data.get("expected", data.get("ideal")))


def read(file: LogFile) -> Log:
    """Read a record file; LogError when the run did not end."""
    spec = Record()
    report: Record | None = None
    samples = _Samples()
    for line, row in file.lines:
        if "spec" in row:
            if spec:
                raise file.fault("a second run begins", line=line, hint="split the file")
            spec = Record.of(row["spec"])
        elif "final_report" in row:
            report = Record.of(row["final_report"])
        else:
            samples.take(file, line, row)
    if report is None:
        raise file.fault("the run did not end (no final_report)", hint="run it again")
    results, prompts = samples.results, samples.prompts
    if not results:
        hint = "events of type match or metrics are read"
        raise file.fault("no scores of samples", hint=hint)
    names = [*dict.fromkeys([*results, *prompts, *sorted(samples.failed)])]
    columns = [
        mean_column(
            metric,
            [results.get(name, Record()).get(metric) for name in names],
            reported=report.number(metric),
        )
        for metric in dict.fromkeys(metric for values in results.values() for metric in values)
    ]
    n_errors = sum(name not in results for name in names)
    notes = [f"{c.metric}: the report has no such number" for c in columns if c.reported is None]
    if n_errors:
        notes.append(f"{n_errors} samples were asked and have no result")
    return Log(
        tool="openai-evals",
        model=str(next(iter(spec.array("completion_fns")), "")),
        benchmark=spec.text("eval_name") or "",
        split=spec.text("split"),
        run_id=spec.text("run_id"),
        items=tuple(_item(name, prompts.get(name), samples.expected.get(name)) for name in names),
        columns=tuple(columns),
        notes=tuple(notes),
        n_errors=n_errors,
    )


def _item(name: str, prompt: object, gold: object) -> LoggedItem:
    golds = gold if isinstance(gold, list) else [gold]
    return LoggedItem(
        item_id=name,
        answer=text_or_none(golds[0].strip()) if golds and isinstance(golds[0], str) else None,
        prompt=last_asked(prompt, lambda turn: turn.get("role") != "system"),
    )


READER: Final = LogReader(
    title="OpenAI evals",
    fits=first_line(lambda row: "eval_name" in row.inside("spec")),
    read=read,
)
