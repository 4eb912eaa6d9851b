"""`contam logs`, `annotate` and `export`: list evaluation logs, and write their clean scores."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contam.cli import options, render
from contam.cli.commands.query import Watcher
from contam.cli.options import argument, option, split_names
from contam.cli.results import write_text
from contam.cli.terminal import emit, plain, talk, visible
from contam.errors import LogError, UsageError
from contam.facts import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from contam.client.annotate import Written
    from contam.rescore.evaluator import LabelledLog
    from contam.rescore.logs.model import Log, ScoreColumn, TaskGroup
    from contam.rescore.logs.read import LogFiles


_LISTED = 20


def logs(
    paths: list[str] = argument(
        "PATH...",
        "Logs: files, folders or globs; lm-eval, Inspect, HELM, lighteval, OpenAI evals, "
        "human-eval, EvalPlus, SWE-bench, OLMES, OpenCompass, Every Eval Ever, tables of "
        "scores.",
    ),
    columns: list[str] | None = options.COLUMNS,
    as_json: bool = options.JSON,
) -> int:
    """List evaluation logs: model, benchmark, metric, items, mean, and how they will join.

    The mean is computed from the rows. If it differs from the number that the tool reports, the
    log is still listed, and the exit code is 1. Logs that are cut off, cancelled or damaged are
    listed as bad, with the reason, and the exit code is 4.

    Examples:
        contam logs runs
        contam logs scores.csv --columns id=item,score=correct
    """
    from contam.rescore.logs.model import find_groups
    from contam.rescore.logs.read import find_logs

    found = find_logs(paths, columns=options.mapping_of(columns), skip_damaged=True)
    groups = find_groups(found.logs)
    problems = [_problem(log) for log in found.logs]
    if as_json:
        render.emit_json(
            {
                "logs": [_tree(*one) for one in zip(found.logs, problems, strict=True)],
                "groups": [_group(group) for group in groups],
                "skipped": [{"path": path, "reason": reason} for path, reason in found.skipped],
                "damaged": [{"path": path, "reason": reason} for path, reason in found.damaged],
            }
        )
    else:
        render.emit_renderable(*_table(found, groups))
    for problem in filter(None, problems):
        raise problem
    if found.damaged:
        talk(
            f"{counted(len(found.damaged), 'bad log')}: "
            "`contam rescore --skip-damaged` leaves such logs out"
        )
    return 4 if found.damaged else 0


def _problem(log: Log) -> LogError | None:
    from contam.rescore.logs.model import self_check

    try:
        self_check(log)
    except LogError as error:
        return error
    return None


def _mean(log: Log, column: ScoreColumn) -> float | None:
    import numpy as np

    if column.kind == "none":
        return None
    value = column.aggregate(np.ones(len(log.items), np.bool_))
    return None if np.isnan(value) else value


def joins_by(log: Log) -> str:
    """What a log's items have to be found by, the strongest first."""
    kinds = []
    for words, has in (
        ("question, choices", lambda item: item.question and item.choices),
        ("question", lambda item: item.question and not item.choices),
        ("prompt", lambda item: item.prompt and not item.question),
        ("id only", lambda item: not item.prompt and not item.question),
    ):
        n_items = sum(map(bool, map(has, log.items)))
        if n_items:
            kinds.append(words if n_items == len(log.items) else f"{words} ({n_items})")
    return "; ".join(kinds)


def _tree(log: Log, problem: LogError | None) -> dict[str, Any]:
    import numpy as np

    return {
        "tool": log.tool,
        "tool_version": log.tool_version,
        "path": log.path,
        "sha256": log.digest,
        "model": log.model,
        "benchmark": log.benchmark,
        "split": log.split,
        "group": log.group,
        "run": log.run_id,
        "items": len(log.items),
        "errors": log.n_errors,
        "unscored": log.n_unscored,
        "joins_by": joins_by(log),
        "columns": dict(log.roles),
        "problem": problem.message if problem else None,
        "notes": list(log.notes),
        "metrics": [
            {
                "metric": column.metric,
                "kind": column.kind,
                "n": int(np.count_nonzero(column.scored)) if column.kind != "none" else 0,
                "mean": _mean(log, column),
                "reported": column.reported,
                "higher_is_better": column.higher_is_better,
                "note": column.note or None,
            }
            for column in log.columns
        ],
    }


def _group(group: TaskGroup) -> dict[str, Any]:
    return {
        "group": group.name,
        "model": group.model,
        "metric": group.metric,
        "reported": group.reported,
        "weighting": group.weighting,
        "tasks": [log.benchmark for log in group.logs],
        "note": group.note or None,
    }


def _table(found: LogFiles, groups: tuple[TaskGroup, ...]) -> list[RenderableType]:
    import numpy as np

    table = render.new_table("tool", "model", "benchmark", "metric")
    for heading in ("n", "mean", "reported"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("joins by", overflow="fold")
    notes: list[str] = []
    for log in found.logs:
        for place, column in enumerate(log.columns):
            n_scored = int(np.count_nonzero(column.scored)) if column.kind != "none" else 0
            named = f"{log.benchmark} ({log.split})" if log.tool == "helm" else log.benchmark
            head = (log.tool, log.model, named) if place == 0 else ("", "", "")
            table.add_row(
                *map(visible, head),
                visible(column.metric + " (lower is better)" * (column.higher_is_better is False)),
                f"{n_scored:,}",
                _shown(_mean(log, column)),
                _shown(column.reported),
                joins_by(log) if place == 0 else "",
            )
        notes += [plain(f"{log.path}: {note}") for note in log.notes]
    blocks: list[RenderableType] = [table]
    blocks += [
        plain(
            f"\ngroup {group.name} of {group.model}: {group.metric} {_shown(group.reported)}, "
            f"{group.weighting}" + (f" ({group.note})" if group.note else "")
        )
        for group in groups
    ]
    # Logs of one table share what is said of the file.
    notes = list(dict.fromkeys(notes))
    if notes:
        blocks += ["", *render.at_most(_LISTED, notes, "more notes: --json prints all")]
    bad = [
        f"{plain(f'bad log: {error}')}\n{plain(f'hint: {error.hint}')}" for _, error in found.damage
    ]
    if bad:
        blocks += ["", *render.at_most(_LISTED, bad, "more bad logs: see --json")]
    others = [plain(f"not a log: {reason}") for _, reason in found.skipped]
    if others:
        blocks += ["", *render.at_most(_LISTED, others, "more files that are no logs: see --json")]
    return blocks


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


@options.shared
def annotate(
    *,
    paths: list[str] = argument(
        "PATH...", "Logs of lm-eval (--log_samples) or Inspect: files or folders."
    ),
    server: str | None = option(
        "URL", "Address of the service: http://HOST:PORT. [env: CONTAM_SERVER]"
    ),
    verdicts: Path | None = option(
        "DIR", "Use the results of `contam scan` or `contam query` instead of a service."
    ),
    out: Path | None = option("DIR", "Save the service's verdicts here, for `contam show`."),
    index: list[str] | None = options.SERVED,
    policy: str | None = option("NAME", "Policy to judge by. [default: contam, or the only one]"),
    allow_missing: bool = options.ALLOW_MISSING,
    allow_unmatched: bool = options.ALLOW_UNMATCHED,
    output: options.OutputOptions,
) -> int:
    """Write clean scores beside those of lm-eval and Inspect, whose own files are not changed.

    lm-eval: `clean_results_TIME.json` beside `results_TIME.json`. Inspect: an edited copy of each
    log, under its name, in a folder `LOGS-clean` beside the folder of logs.

    Examples:
        contam annotate runs --verdicts results
        contam annotate runs --server http://127.0.0.1:8000
    """
    if verdicts is None:
        server = server or os.environ.get("CONTAM_SERVER")
    if (server is None) == (verdicts is None):
        raise UsageError("give exactly one of --server and --verdicts")
    if server is None and (index or allow_missing or out):
        raise UsageError("--index, --allow-missing and --out are for a service")
    from contam.client import Client
    from contam.client.annotate import annotate as write_scores

    with ExitStack() as opened:
        written = write_scores(
            paths,
            opened.enter_context(Client(server)) if server is not None else None,
            verdicts=verdicts or out,
            policy=policy,
            allow_unmatched=allow_unmatched,
            overwrite=output.overwrite,
            watcher=None if output.quiet else Watcher(),
            note=lambda said: None if output.quiet else talk(f"note: {plain(said)}"),
            index=split_names(index) if index else None,
            allow_missing=allow_missing,
        )
    _print(written, as_json=output.as_json)
    return 0


def _print(written: list[Written], *, as_json: bool) -> None:
    from contam.detect.labels import SHOWN
    from contam.rescore.summary import figure

    rows = [row for file in written for row in file.scores()]
    notes = list(dict.fromkeys(note for file in written for note in file.notes))
    if as_json:
        files = [str(file.out) for file in written]
        render.emit_json({"files": files, "scores": rows, "notes": notes})
        return
    labels = [label.replace("_", " ") for label in SHOWN]
    heads = ("n", *labels, "full", "clean score")
    table = render.new_table("model", "benchmark", "metric", numbers=heads)
    for row in rows:
        table.add_row(
            *(visible(row[name]) for name in ("model", "benchmark", "metric")),
            f"{row['n']:,}",
            *(f"{row['items'][label]:,}" for label in SHOWN),
            figure(row["full"]),
            figure(row["clean"]),
        )
    render.emit_renderable(table)
    # Not through the table's console, which would break a long path in two.
    emit("".join(f"{visible(note)}\n" for note in notes))
    emit("\n" + "".join(f"clean scores  {visible(str(file.out))}\n" for file in written))


def export(
    *,
    verdicts: Path = option("DIR", "Results of `contam scan` or `contam query`.", ...),
    logs: list[str] = option("PATH...", "Logs of lm-eval, with their results files.", ...),
    policy: str | None = option("NAME", "Policy to judge by. [default: the only one]"),
    out: Path | None = option("PATH", "Output file. [default: standard output]"),
    allow_unmatched: bool = options.ALLOW_UNMATCHED,
    overwrite: bool = options.OVERWRITE,
    quiet: bool = options.QUIET,
) -> None:
    """Write the clean documents of each task as lm-eval's --samples takes them.

    So lm-eval computes the clean score with its own code. Suspect and not checkable items are left
    out, like contaminated ones. Counts and the expected score are printed on standard error.

    Examples:
        contam export --verdicts results --logs runs
        contam export --verdicts results --logs runs --out clean.json
    """
    from contam.rescore.evaluator import judge, lm_eval_samples

    judged = judge(verdicts, logs, tool="lm-eval", policy=policy, allow_unmatched=allow_unmatched)
    text = json.dumps(lm_eval_samples(judged)) + "\n"
    if out is None:
        emit(text)
    else:
        write_text(out, text, overwrite=overwrite)
    if not quiet:
        for log in judged:
            for line in _summary_lines(log):
                talk(line)


def _summary_lines(log: LabelledLog) -> list[str]:
    counts = log.counts
    left_out = ", ".join(f"{n:,} {name}" for name, n in counts.items() if name != "clean")
    who = f"{log.log.benchmark}, {log.log.model}"
    lines = [plain(f"{who}: {counts['clean']:,} clean by {log.policy}; left out: {left_out}")]
    for metric, (score, n_scored) in log.scores().items():
        lines.append("  " + plain(f"{metric}: {score:.6f} on {n_scored:,} clean items"))
    return lines
