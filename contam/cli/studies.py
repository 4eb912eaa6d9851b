"""Options that the commands of studies share, and how a finished study is written and shown."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contam.cli import options
from contam.cli.results import tell_scored
from contam.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from contam.study.model import Study

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="[INPUT.]ROLE=NAME,...",
        help="Columns of tables: model=..., score=..., n=...; INPUT. for one input alone.",
    ),
]
Verdicts = Annotated[
    str | None,
    typer.Option(
        metavar="PATH", help="Results of a scan, or labels, to study clean items by as well."
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Policy of the verdicts, where they hold several."),
]
Metric = Annotated[
    str | None, typer.Option(metavar="METRIC", help="Metric of the logs, where they have several.")
]
Draws = Annotated[int, typer.Option(min=99, metavar="N", help="Draws of a bootstrap.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of all draws.")]

_MOST_ROWS = 20


def command(
    name: str, *, instead: Mapping[str, str] | None = None, **parsers: Callable[[Any], Any]
) -> Callable[[Callable[..., None]], Callable[..., int]]:
    """A decorator that makes a command of a function that only declares the options of a study.

    name     of the study, whose function takes arguments of these names
    parsers  by option, what its text stands for;  instead  option -> the one it stands for

    Options that all studies have are added. The command runs the study, writes and shows it.
    """

    def decorated(declared: Callable[..., None]) -> Callable[..., int]:
        def run(
            *,
            out: str,
            overwrite: bool,
            as_json: bool,
            quiet: bool,
            **typed: Any,  # noqa: ANN401 - what the options are
        ) -> int:
            from contam.benchmark.mapping import parse_mapping
            from contam.study.by_name import run_options

            read = {"columns": parse_mapping, **parsers}
            given = {key: value for key, value in typed.items() if value is not None}
            given |= {key: read[key](value) for key, value in given.items() if key in read}
            for short, whole in (instead or {}).items():
                if short in given and whole in given:
                    raise UsageError(f"--{short} and --{whole} exclude each other")
                if short in given:
                    given[whole] = given.pop(short)
            return finish(
                run_options(name, given),
                out,
                options.OutputOptions(as_json=as_json, quiet=quiet, overwrite=overwrite),
            )

        own, shared = (_parameters(one) for one in (declared, _shared))
        required = [one for one in (*own, *shared) if one.default is one.empty]
        others = [one for one in (*own, *shared) if one.default is not one.empty]
        run.__name__, run.__doc__ = declared.__name__, declared.__doc__
        run.__annotations__ = {}
        # Typer makes the options of the signature.
        run.__signature__ = inspect.Signature([*required, *others])  # type: ignore[attr-defined]
        return run

    return decorated


def _shared(
    *,
    out: options.OutFolder,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """The options of every study."""


def _parameters(declared: Callable[..., None]) -> list[inspect.Parameter]:
    return list(inspect.signature(declared, eval_str=True).parameters.values())


def by_name(option: str, example: str, *, at_last: bool = False) -> Callable[[Any], dict[str, str]]:
    """A parser of NAME=VALUE texts, each name once; it raises UsageError for others.

    example  a value of the option, for the error;  at_last  split at the last sign, not the first
    """

    def parsed(given: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for one in given:
            name, sign, value = one.rpartition("=") if at_last else one.partition("=")
            if not (sign and name and value):
                raise UsageError(f"{option} {one} is not NAME=VALUE", hint=f"{option} {example}")
            if name in found:
                raise UsageError(f"{option} names {name} twice", hint="leave one out")
            found[name] = value
        return found

    return parsed


def finish(study: Study, out: str, output: options.OutputOptions) -> int:
    """Write a study and show it: exit code 4 if its verdicts do not cover the whole corpus."""
    from pathlib import Path

    from contam.cli import render
    from contam.cli.terminal import emit, visible
    from contam.study.write import SUMMARY, tree, write_study

    write_study(study, out, overwrite=output.overwrite)
    code = tell_scored(study.run, output)
    if output.as_json:
        render.emit_json({"out": out, **tree(study)})
    else:
        for text in (study.finding.found, study.finding.sure, study.finding.change):
            emit(_wrapped(text))
        render.emit_renderable("", _table(study))
        if (more := study.to_arrow().num_rows - _MOST_ROWS) > 0:
            emit(f"{more:,} more rows in {visible(next(iter(study.tables)))}.parquet\n")
        for refusal in study.refusals:
            emit(_wrapped(f"not estimated: {refusal.what}: {refusal.reason}"))
        emit(f"\nresults  {visible(out)}\nsummary  {visible(str(Path(out) / SUMMARY))}\n")
    return code


def _wrapped(text: str) -> str:
    """A paragraph in lines of the terminal's width; what would steer it made visible."""
    from textwrap import fill

    from contam.cli.terminal import page_width, visible

    return fill(visible(text), page_width(), break_on_hyphens=False) + "\n"


def _table(study: Study) -> RenderableType:
    """The columns of the main table that a study shows; limits as one column."""
    from contam.cli.render import new_table
    from contam.cli.terminal import visible
    from contam.study.model import shown

    rows = study.rows()
    names = study.shown_columns()
    texts = [name for name in names if any(isinstance(row[name], str) for row in rows)]
    # What is the same in every row, as where nothing was split, says nothing.
    texts = [name for name in texts if name == texts[0] or len({row[name] for row in rows}) > 1]
    kept = [name for name in names if name not in texts and not name.endswith("_high")]
    kept = [name for name in kept if not any(isinstance(row[name], str) for row in rows)]
    table = new_table(*texts, numbers=[_heading(name) for name in kept])
    for row in rows[:_MOST_ROWS]:
        numbers = [
            f"[{shown(row[name])}, {shown(row[_high(name)])}]"
            if name.endswith("_low") and row[name] is not None
            else shown(row[name], name)
            for name in kept
        ]
        table.add_row(*(visible(row[name]) for name in texts), *numbers)
    return table


def _high(name: str) -> str:
    return name.removesuffix("_low") + "_high"


def _heading(name: str) -> str:
    return "interval" if name.endswith("_low") else name.replace("_", " ")
