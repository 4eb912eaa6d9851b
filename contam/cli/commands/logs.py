"""`contam logs`: list evaluation logs and whether they can be joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contam.cli import options, render
from contam.cli.options import argument
from contam.cli.terminal import plain, talk, visible
from contam.errors import LogError
from contam.facts import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

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
