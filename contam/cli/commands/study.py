"""`contam study`: studies of what scores are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import options, studies
from contam.cli.options import split_names
from contam.errors import UsageError

app = typer.Typer(
    help="Study what scores are made of: memory, preparation, choice of tasks, calendar.",
    rich_markup_mode=None,
)
app.callback(invoke_without_command=True)(options.help_without_command)


@app.command("fresh", short_help="Compare an original test set with a fresh one.")
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


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no number", hint="--knots 22,23 --chance mmlu=0.25,gsm8k=0"
        ) from error


def _knots(text: str) -> list[float]:
    first, _, second = text.partition(",")
    return [_number(first), _number(second)]


def _chance(given: list[str]) -> dict[str, float]:
    """Task -> score of a guess; that of all others is under no name."""
    pairs = (text.rpartition("=") for text in split_names(given))
    return {task: _number(share) for task, _, share in pairs}


@app.command("preparation", short_help="Ask what of a lead is preparation for the test.")
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


@app.command("board", short_help="Rank models on many tasks, and see how easily it moves.")
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


_last_days = studies.by_name("--cutoff", "heron-8b=2023-09-30", at_last=True)


@app.command("time", short_help="See whether scores fall where a model's data end.")
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
