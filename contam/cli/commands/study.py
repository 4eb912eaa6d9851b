"""`contam study`: studies of what scores are made of."""

from __future__ import annotations

import typer

from contam.cli import options
from contam.cli.commands import (
    study_board,
    study_fresh,
    study_likelihood,
    study_preparation,
    study_time,
)

app = typer.Typer(
    help="Study what scores are made of: memory, preparation, choice of tasks, calendar.",
    rich_markup_mode=None,
)
app.callback(invoke_without_command=True)(options.help_without_command)

app.command("fresh", short_help="Compare an original test set with a fresh one.")(study_fresh.fresh)
app.command("preparation", short_help="Ask what of a lead is preparation for the test.")(
    study_preparation.preparation
)
app.command("board", short_help="Rank models on many tasks, and see how easily it moves.")(
    study_board.board
)
app.command("time", short_help="See whether scores fall where a model's data end.")(study_time.time)
app.command("likelihood", short_help="Ask log-probabilities what a model has seen.")(
    study_likelihood.likelihood
)

SPREAD_OPTIONS = tuple(
    dict.fromkeys(
        (
            *study_fresh.SPREAD_OPTIONS,
            *study_preparation.SPREAD_OPTIONS,
            *study_board.SPREAD_OPTIONS,
            *study_time.SPREAD_OPTIONS,
        )
    )
)
