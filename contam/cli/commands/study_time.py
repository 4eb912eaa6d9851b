"""`contam study time`: scores by the dates of their items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import options, studies
from contam.cli.options import split_names

SPREAD_OPTIONS = ("--logs", "--columns", "--cutoff", "--reference", "--strata")


def time(
    *,
    logs: Annotated[
        list[str],
        typer.Option(
            metavar="PATH...",
            help="Scores of each item: what `contam rescore` takes as logs, of one benchmark.",
        ),
    ],
    out: options.OutFolder,
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
    reference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL,...", help="Models that cannot have seen the items: theirs is taken off."
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
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of all draws.")] = 0,
    overwrite: options.Overwrite = False,
    as_json: studies.Json = False,
    quiet: studies.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Ask whether scores fall where a model's training data end.

    Drops at known cutoffs, a search for unknown ones, monthly control charts, and with the
    verdicts of a scan the gain by the date of documents.
    """
    from contam.benchmark.mapping import parse_mapping
    from contam.errors import UsageError
    from contam.study.dates import time as study_time

    if cutoff and cutoffs is not None:
        raise UsageError("--cutoff and --cutoffs exclude each other")
    study = study_time(
        logs,
        dates,
        cutoffs=_cutoffs(split_names(cutoff)) if cutoff else cutoffs,
        references=split_names(reference or []),
        strata=None if strata is None else split_names(strata),
        window=window,
        verdicts=verdicts,
        policy=policy or "",
        metric=metric or "",
        columns=parse_mapping(columns) if columns else None,
        least=least,
        permutations=permutations,
        seed=seed,
    )
    return studies.finish(study, out, overwrite=overwrite, as_json=as_json, quiet=quiet)


def _cutoffs(given: list[str]) -> dict[str, str]:
    """`a=2023-09`, each model once. Raises UsageError for another form."""
    from contam.errors import UsageError

    found: dict[str, str] = {}
    for one in given:
        model, sign, day = one.rpartition("=")
        if not (sign and model and day):
            raise UsageError(
                f"--cutoff {one} names no model and the last day of its data",
                hint="--cutoff heron-8b=2023-09-30",
            )
        if model in found:
            raise UsageError(f"--cutoff names {model} twice", hint="leave one out")
        found[model] = day
    return found
