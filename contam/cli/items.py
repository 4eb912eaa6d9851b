"""`contam items`: a benchmark out of the logs that hold its items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contam.cli import options

SPREAD_OPTIONS = ("--from-logs",)


def items(
    *,
    from_logs: Annotated[
        list[str],
        typer.Option(metavar="PATH...", help="Logs: files, folders or globs, as in `contam logs`."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The benchmark, as JSON lines.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace FILE if it is there.")
    ] = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Make a benchmark from logs that hold its items, for `contam scan --benchmark FILE`.

    Logs of several models hold the same items: each is written once.
    """
    from contam.cli import render
    from contam.cli.terminal import plain, talk
    from contam.rescore.logs import read_logs
    from contam.rescore.logs.items import benchmark_of, write_items

    found = benchmark_of(read_logs(from_logs))
    write_items(found.rows, out, overwrite=overwrite)
    for path, n_items in found.without:
        talk(
            f"note: {plain(path)}: {render.counted(n_items, 'item')} without a question of its own"
        )
    benchmarks = dict.fromkeys(str(row["benchmark"]) for row in found.rows)
    render.emit_renderable(
        plain(
            f"{render.counted(len(found.rows), 'item')} of {', '.join(benchmarks)}; "
            f"{found.n_again:,} more times in other logs"
        ),
        plain(f"benchmark  {out}"),
    )
