"""`contam items`: extract a benchmark from logs that hold its items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import options
from contam.cli.output_file import refuse_replacing

SPREAD_OPTIONS = ("--from-logs", "--columns")


def items(
    *,
    from_logs: Annotated[
        list[str],
        typer.Option(metavar="PATH...", help="Logs: files, folders or globs, as in `contam logs`."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The benchmark to write, as JSON lines.")
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART=COLUMN,...",
            help="Columns of a plain table: id, question, choices, answer, score, ...",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace FILE if it exists.")
    ] = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Make a benchmark from the items in logs, for `contam scan --benchmark FILE`.

    An item in several logs is written once. Tables of scores work as well if they have a column
    for the question.
    """
    from contam.benchmark.mapping import parse_mapping
    from contam.cli import render
    from contam.cli.terminal import plain, talk
    from contam.rescore.logs import read_logs
    from contam.rescore.logs.logged_items import benchmark_of, write_items

    refuse_replacing(out, from_logs)
    found = benchmark_of(read_logs(from_logs, columns=parse_mapping(columns or [])))
    write_items(found.rows, out, overwrite=overwrite)
    for path, n_items in found.without:
        talk(
            f"note: {plain(path)}: {render.counted(n_items, 'item')} without a question of its own"
        )
    names = dict.fromkeys(str(row.get("benchmark", "")) for row in found.rows)
    benchmarks = [name or "a benchmark without a name" for name in names]
    render.emit_renderable(
        plain(
            f"{render.counted(len(found.rows), 'item')} of {', '.join(benchmarks)}; "
            f"{found.n_again:,} more times in other logs"
        ),
        plain(f"benchmark  {out}"),
    )
