"""`contam study fresh`: an original test set beside a fresh one."""

from __future__ import annotations

from typing import Annotated

import typer

from contam.cli import options, studies
from contam.cli.options import split_names

SPREAD_OPTIONS = ("--original", "--fresh", "--easier", "--columns", "--reference")


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
    out: options.OutFolder,
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
    reference: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL,...", help="Models that cannot have seen the original set."),
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
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of all draws.")] = 0,
    overwrite: options.Overwrite = False,
    as_json: studies.Json = False,
    quiet: studies.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Compare scores on an original test set with scores on a fresh one.

    Gaps with intervals, lines over models on two scales, models that fall further than the line of
    the others, and what is shown of the two sets being equally hard. Writes tables, summary.md,
    pictures and run.json to DIR, all or nothing.
    """
    from contam.benchmark.mapping import parse_mapping
    from contam.errors import UsageError
    from contam.study.fresh_sets import FreshSettings
    from contam.study.fresh_sets import fresh as run_fresh

    sets: dict[str, str] = {}
    for given in easier or []:
        name, sign, path = given.partition("=")
        if not (name and sign and path) or name in sets:
            raise UsageError(
                f"--easier {given} gives no new name a path", hint="--easier top=top.csv"
            )
        sets[name] = path
    study = run_fresh(
        original,
        fresh,
        easier=sets,
        columns=parse_mapping(columns) if columns else None,
        verdicts=verdicts,
        policy=policy or "",
        metric=metric or "",
        settings=FreshSettings(
            references=tuple(split_names(reference or [])),
            margin=margin,
            chance=(chance, chance),
            least=least,
            draws=draws,
            seed=seed,
        ),
    )
    return studies.finish(study, out, overwrite=overwrite, as_json=as_json, quiet=quiet)
