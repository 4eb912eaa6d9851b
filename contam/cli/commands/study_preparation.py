"""`contam study preparation`: what a group's lead owes to preparation for the test."""

from __future__ import annotations

from typing import Annotated

import typer

from contam.cli import options, studies
from contam.cli.options import split_names

SPREAD_OPTIONS = ("--scores", "--columns", "--chance", "--lower-is-better")


def preparation(
    *,
    scores: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Table of model, score, group and compute, perhaps of task and tuned score.",
        ),
    ],
    out: options.OutFolder,
    columns: studies.Columns = None,
    chance: Annotated[
        list[str] | None,
        typer.Option(metavar="[TASK=]SHARE,...", help="Score of a guess. [default: 0]"),
    ] = None,
    knots: Annotated[
        str,
        typer.Option(
            metavar="A,B", help="Where segments of compute meet, in powers of ten of operations."
        ),
    ] = "22,23",
    lower_is_better: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK,...", help="Less is better on these tasks; only ranks use them."
        ),
    ] = None,
    draws: studies.Draws = 2_000,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of all draws.")] = 0,
    overwrite: options.Overwrite = False,
    as_json: studies.Json = False,
    quiet: studies.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Ask what of a group's lead at equal compute is preparation for the test.

    Fits score against compute with an effect of the group, before and after the same fine-tuning
    of every model, and says how far tasks rank models alike before and after. Writes tables,
    summary.md, pictures and run.json to DIR, all or nothing.
    """
    from contam.benchmark.mapping import parse_mapping
    from contam.errors import UsageError
    from contam.study.preparing import PreparationSettings
    from contam.study.preparing import preparation as run_preparation

    try:
        first, second = (float(text) for text in knots.split(","))
        by_task = [
            (task, float(share))
            for task, _, share in (text.rpartition("=") for text in split_names(chance or []))
        ]
    except ValueError as error:
        raise UsageError(
            "--knots and --chance take numbers", hint="--knots 22,23 --chance mmlu=0.25,gsm8k=0"
        ) from error
    study = run_preparation(
        scores,
        columns=parse_mapping(columns) if columns else None,
        settings=PreparationSettings(
            chance=tuple(by_task),
            knots=(first, second),
            lower_is_better=tuple(split_names(lower_is_better or [])),
            draws=draws,
            seed=seed,
        ),
    )
    return studies.finish(study, out, overwrite=overwrite, as_json=as_json, quiet=quiet)
