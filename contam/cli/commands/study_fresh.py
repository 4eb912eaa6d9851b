"""`contam study fresh`: an original test set beside a fresh one."""

from __future__ import annotations

from typing import Annotated

import typer

from contam.cli import studies
from contam.cli.options import split_names

SPREAD_OPTIONS = ("--original", "--fresh", "--easier", "--columns", "--reference")


@studies.command("fresh", easier=studies.by_name("--easier", "top=top.csv"), references=split_names)
def fresh(
    *,
    original: Annotated[
        list[str],
        typer.Option(
            metavar="PATH...",
            help="Scores on the original set: a table with model, n and correct or score, or logs.",
        ),
    ],
    fresh: Annotated[
        list[str], typer.Option(metavar="PATH...", help="Scores on the fresh set, the same way.")
    ],
    easier: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH...",
            help="Further fresh sets, of items that people agree on more.",
        ),
    ] = None,
    columns: studies.Columns = None,
    verdicts: studies.Verdicts = None,
    policy: studies.Policy = None,
    metric: studies.Metric = None,
    references: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            metavar="MODEL,...",
            help="Models that cannot have seen the original set.",
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(metavar="SHARE", help="How far apart equally hard sets may be."),
    ] = 0.05,
    chance: Annotated[
        float, typer.Option(metavar="SHARE", help="Score of a guess on both sets.")
    ] = 0.0,
    least: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Clean items without which nothing is said of them."),
    ] = 50,
    draws: studies.Draws = 2_000,
    seed: studies.Seed = 0,
) -> None:
    """Compare scores on an original test set with scores on a fresh one.

    Gaps with intervals, lines over models on two scales, models that fall further than the line of
    the others, and what is shown of the two sets being equally hard. Writes tables, summary.md,
    pictures and run.json to DIR, all or nothing.
    """
