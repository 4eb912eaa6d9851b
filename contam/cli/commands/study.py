"""`contam study`: studies of what scores are made of."""

from __future__ import annotations

import typer

from contam.cli import options

app = typer.Typer(
    help="Study what scores are made of: memory, preparation, choice of tasks, calendar.",
    rich_markup_mode=None,
)
app.callback(invoke_without_command=True)(options.help_without_command)

SPREAD_OPTIONS = ("--original", "--fresh", "--columns")
