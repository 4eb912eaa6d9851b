"""`contam study board`: a board of many tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import options, studies
from contam.errors import UsageError

SPREAD_OPTIONS = ("--columns", "--task", "--lower-is-better")


def board(
    *,
    out: options.OutFolder,
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Scores of models on tasks: a row for each model and a column for each task, or"
            " columns model, task and score (CSV, JSON lines, Parquet).",
        ),
    ] = None,
    clean: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The same scores on clean items."),
    ] = None,
    rescored: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Results of `contam rescore`, all and clean, instead of --scores and --clean.",
        ),
    ] = None,
    policy: studies.Policy = None,
    task: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME...", help="Tasks to use. [default: all columns but the model]"),
    ] = None,
    lower_is_better: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK...", help="Tasks on which a lower score is better."),
    ] = None,
    columns: studies.Columns = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the searches.")] = 0,
    overwrite: options.Overwrite = False,
    as_json: studies.Json = False,
    quiet: studies.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Ask how a board ranks its models, and how easily that order moves.

    Aggregates, diversity, sensitivity to weights and to weak models, and what flags change.
    """
    from contam.benchmark.mapping import parse_mapping
    from contam.study.boards import board as study_board

    if (scores is None) == (rescored is None):
        raise UsageError("give either --scores or --rescored")
    study = study_board(
        scores,
        clean=clean,
        rescored=rescored,
        policy=policy or "",
        tasks=task or (),
        lower_is_better=lower_is_better or (),
        columns=parse_mapping(columns) if columns else None,
        seed=seed,
    )
    return studies.finish(study, out, overwrite=overwrite, as_json=as_json, quiet=quiet)
