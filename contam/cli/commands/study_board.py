"""`contam study board`: a board of many tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import studies

SPREAD_OPTIONS = ("--columns", "--task", "--lower-is-better")


@studies.command("board")
def board(
    *,
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
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--task", metavar="NAME...", help="Tasks to use. [default: all columns but the model]"
        ),
    ] = None,
    lower_is_better: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK...", help="Tasks on which a lower score is better."),
    ] = None,
    columns: studies.Columns = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the searches.")] = 0,
) -> None:
    """Ask how a board ranks its models, and how easily that order moves.

    Aggregates, diversity, sensitivity to weights and to weak models, and what flags change.
    """
