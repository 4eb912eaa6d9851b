"""`contam sql`: query a result in SQL."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from contam.cli import render
from contam.cli.terminal import csv_text, emit, visible
from contam.facts import counted


def sql(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of `contam scan --out`.")],
    query: Annotated[
        str,
        typer.Argument(metavar="SQL", help="SQL over verdicts, evidence and items."),
    ],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")] = False,
) -> None:
    """Query a result folder in SQL (DuckDB); COPY (...) TO 'FILE.parquet' writes an answer.

    Examples:
        contam sql results 'select label, count(*) from verdicts group by all'
        contam sql results "copy evidence to 'evidence.csv'"
    """
    from contam.detect.report import load_report
    from contam.tables.sql import Database

    report = load_report(folder)
    with closing(Database()) as database:
        for name in ("verdicts", "evidence", "items"):
            database.add_table(name, getattr(report, name))
        names, rows = database.ask(query)
    if as_csv:
        emit(csv_text(names, rows))
        return
    table = render.new_table()
    for at, name in enumerate(names):
        numbers = bool(rows) and all(isinstance(row[at], int | float) for row in rows)
        table.add_column(visible(name), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else visible(_shown(value)) for value in row))
    render.emit_renderable(table, f"\n{counted(len(rows), 'row')}")


def _shown(value: Any) -> str:  # noqa: ANN401 - whatever a column of a database holds
    return f"{value:.6g}" if isinstance(value, float) else str(value)
