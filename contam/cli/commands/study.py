"""`contam study`: studies of what scores are made of."""

from __future__ import annotations

from collections.abc import Callable

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

_COMMANDS: dict[Callable[..., int], str] = {
    study_fresh.fresh: "Compare an original test set with a fresh one.",
    study_preparation.preparation: "Ask what of a lead is preparation for the test.",
    study_board.board: "Rank models on many tasks, and see how easily it moves.",
    study_time.time: "See whether scores fall where a model's data end.",
    study_likelihood.likelihood: "Ask log-probabilities what a model has seen.",
}
for command, said in _COMMANDS.items():
    app.command(command.__name__, short_help=said)(command)

_SPREAD = (study_fresh, study_preparation, study_board, study_time)
SPREAD_OPTIONS = tuple(dict.fromkeys(flag for module in _SPREAD for flag in module.SPREAD_OPTIONS))
