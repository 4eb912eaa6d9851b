"""`contam sql`: query a result in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from contam.cli import options
from contam.cli.row_file import csv_text, form_of
from contam.errors import UsageError


def sql(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of `contam scan --out`.")],
    query: Annotated[
        str,
        typer.Argument(
            metavar="SQL", help="One query over the views verdicts, evidence, items, documents."
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the rows as JSON, one object each.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the rows to a file: .csv, .json or .parquet by its name."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Query a result folder in SQL (DuckDB).

    `documents` is a view of the shards that were searched: shard, row, document_id, url, date,
    source, language, text. Offsets in `evidence` count characters of `text` from 0.
    """
    asked = {"--json": as_json, "--csv": as_csv, "--out": out is not None}
    given = [flag for flag, chosen in asked.items() if chosen]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other", hint="choose one")
    if out is not None:
        form_of(out)
    from contam.cli import render
    from contam.cli.terminal import emit, visible
    from contam.detect.show.ask import open_database
    from contam.tables.sql import writing

    if kind := writing(query):
        raise UsageError(
            f"a query may only read, and this one holds {kind}",
            hint="ask with SELECT; --out FILE writes the answer to a file",
        )
    if out is not None:
        n_rows = _write(folder, query, out, overwrite=overwrite)
        emit(visible(f"{render.counted(n_rows, 'row')} written to {out}") + "\n")
        return
    with open_database(folder, query) as database:
        names, rows = database.ask(query)
    if as_json:
        render.emit_json(_trees(names, rows))
    elif as_csv:
        emit(csv_text(names, rows))
    else:
        _print(names, rows)


def _write(folder: Path, query: str, out: Path, *, overwrite: bool) -> int:
    """Write the answer to a file, whole or not at all; returns the number of rows."""
    import json

    from contam.cli.output_file import refuse_replacing_source
    from contam.detect.report import load_report
    from contam.detect.show.ask import open_database
    from contam.files.single import whole_file

    form = form_of(out)
    refuse_replacing_source(out, load_report(folder))
    with whole_file(out, overwrite=overwrite) as file, open_database(folder, query) as database:
        if form == ".parquet":
            return database.write_parquet(query, file)
        names, rows = database.ask(query)
        if not names:
            raise UsageError("the query has no answer to write", hint="ask with SELECT")
        if form == ".csv":
            text = csv_text(names, rows)
        else:
            text = json.dumps(_trees(names, rows), indent=2) + "\n"
        file.write(text.encode("utf-8", "replace"))
        return len(rows)


def _trees(names: list[str], rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """The rows as JSON has them. Raises UsageError where two columns have one name."""
    from contam.tables.sql import refuse_same_names

    refuse_same_names(names)
    return [dict(zip(names, map(_value, row), strict=True)) for row in rows]


def _value(value: Any) -> Any:  # noqa: ANN401 - whatever a column of a database holds
    """A value as JSON can say it; dates, decimals and the like as text."""
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if isinstance(value, list | tuple):
        return [_value(entry) for entry in value]
    if isinstance(value, dict):
        return {str(key): _value(entry) for key, entry in value.items()}
    return str(value)


def _print(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    from contam.cli import render
    from contam.cli.terminal import visible

    if _is_wide(names, rows):
        _print_upright(names, rows)
        return
    table = render.new_table()
    for at, name in enumerate(names):
        numbers = bool(rows) and all(isinstance(row[at], int | float) for row in rows)
        table.add_column(visible(name), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else visible(_shown(value)) for value in row))
    render.emit_renderable(table, f"\n{render.counted(len(rows), 'row')}")


def _is_wide(names: list[str], rows: list[tuple[Any, ...]]) -> bool:
    """Whether a table would be wider than the terminal, so that its columns would be folded."""
    from contam.cli.terminal import page_width

    widths = [
        max(len(name), *(len(_shown(row[at])) for row in rows)) if rows else len(name)
        for at, name in enumerate(names)
    ]
    return sum(widths) + 2 * len(widths) > page_width()


def _print_upright(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    """A line for each value, an empty one between rows."""
    from contam.cli import render
    from contam.cli.terminal import emit, visible

    longest = max(map(len, names))
    for row in rows:
        for name, value in zip(names, row, strict=True):
            text = "" if value is None else visible(_shown(value))
            emit(f"{visible(name):<{longest}}  {text}".rstrip() + "\n")
        emit("\n")
    emit(f"{render.counted(len(rows), 'row')}\n")


def _shown(value: Any) -> str:  # noqa: ANN401 - the same as for _value
    return f"{value:.6g}" if isinstance(value, float) else str(value)
