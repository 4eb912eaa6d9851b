"""`contam study time`: scores by the dates of their items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import studies
from contam.cli.options import split_names

SPREAD_OPTIONS = ("--logs", "--columns", "--cutoff", "--reference", "--strata")


_last_days = studies.by_name("--cutoff", "heron-8b=2023-09-30", at_last=True)


@studies.command(
    "time",
    instead={"cutoff": "cutoffs"},
    cutoff=lambda given: _last_days(split_names(given)),
    references=split_names,
    strata=split_names,
)
def time(
    *,
    logs: Annotated[
        list[str],
        typer.Option(
            metavar="PATH...",
            help="Scores of each item: what `contam rescore` takes as logs, of one benchmark.",
        ),
    ],
    dates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of the items with the date each came out, and their strata."
            " [default: the table of --logs]",
        ),
    ] = None,
    cutoff: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL=DATE,...", help="Last day of a model's training data."),
    ] = None,
    cutoffs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Table with columns model and cutoff, instead."),
    ] = None,
    references: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            metavar="MODEL,...",
            help="Models that cannot have seen the items: theirs is taken off.",
        ),
    ] = None,
    strata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN,...",
            help="Columns of the dates to compare like with like by. [default: platform,"
            " difficulty, where they are there]",
        ),
    ] = None,
    window: Annotated[
        str, typer.Option(metavar="NAME", help="month, quarter, half-year or year.")
    ] = "quarter",
    verdicts: studies.Verdicts = None,
    policy: studies.Policy = None,
    metric: studies.Metric = None,
    columns: studies.Columns = None,
    least: Annotated[
        int,
        typer.Option(min=2, metavar="N", help="Items needed on either side of a cutoff."),
    ] = 50,
    permutations: Annotated[
        int, typer.Option(min=99, metavar="N", help="Draws of the search for a cutoff.")
    ] = 2_000,
    seed: studies.Seed = 0,
) -> None:
    """Ask whether scores fall where a model's training data end.

    Drops at known cutoffs, a search for unknown ones, monthly control charts, and with the
    verdicts of a scan the gain by the date of documents.
    """
