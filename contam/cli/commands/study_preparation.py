"""`contam study preparation`: what a group's lead owes to preparation for the test."""

from __future__ import annotations

from typing import Annotated

import typer

from contam.cli import studies
from contam.cli.options import split_names
from contam.errors import UsageError

SPREAD_OPTIONS = ("--scores", "--columns", "--chance", "--lower-is-better")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no number", hint="--knots 22,23 --chance mmlu=0.25,gsm8k=0"
        ) from error


def _knots(text: str) -> list[float]:
    found = [_number(one) for one in text.split(",")]
    if len(found) != _TWO:
        raise UsageError("--knots takes two numbers", hint="--knots 22,23")
    return found


def _chance(given: list[str]) -> dict[str, float]:
    """Task -> score of a guess; that of all others is under no name."""
    pairs = (text.rpartition("=") for text in split_names(given))
    return {task: _number(share) for task, _, share in pairs}


_TWO = 2


@studies.command("preparation", chance=_chance, knots=_knots, lower_is_better=split_names)
def preparation(
    *,
    scores: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Table of model, score, group and compute, perhaps of task and tuned score.",
        ),
    ],
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
    seed: studies.Seed = 0,
) -> None:
    """Ask what of a group's lead at equal compute is preparation for the test.

    Fits score against compute with an effect of the group, before and after the same fine-tuning
    of every model, and says how far tasks rank models alike before and after. Writes tables,
    summary.md, pictures and run.json to DIR, all or nothing.
    """
