"""Options that the commands of studies share, and how a finished study is written and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from contam.cli import options

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
Overwrite = options.Overwrite
Json = Annotated[bool, typer.Option("--json", help="Print the study as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes.")]

_MOST_ROWS = 20


def finish(study: Study, out: str, *, overwrite: bool, as_json: bool, quiet: bool) -> int:
    """Write a study and show it: exit code 4 if its verdicts do not cover the whole corpus."""
    from pathlib import Path

    from contam.cli import render
    from contam.cli.terminal import emit, plain, talk, visible
    from contam.study.write import SUMMARY, tree, write_study

    write_study(study, out, overwrite=overwrite)
    complete = study.run.get("coverage", {}).get("complete", True)
    if not quiet:
        for note in study.run.get("notes", ()):
            talk(f"note: {plain(note)}")
        if not complete:
            talk("the verdicts do not cover the whole corpus: clean is not certain")
    if as_json:
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
    return 0 if complete else 4


def _wrapped(text: str) -> str:
    """A paragraph in lines of the terminal's width; what would steer it made visible."""
    from textwrap import fill

    from contam.cli.terminal import page_width, visible

    return fill(visible(text), page_width(), break_on_hyphens=False) + "\n"


def _table(study: Study) -> RenderableType:
    """The columns of the main table that a study shows; limits as one column."""
    from contam.cli.sheet import Sheet
    from contam.cli.terminal import visible
    from contam.study.write import shown

    rows = study.rows()
    names = study.shown_columns()
    texts = [name for name in names if any(isinstance(row[name], str) for row in rows)]
    # What is the same in every row, as where nothing was split, says nothing.
    texts = [name for name in texts if name == texts[0] or len({row[name] for row in rows}) > 1]
    kept = [name for name in names if name not in texts and not name.endswith("_high")]
    kept = [name for name in kept if not any(isinstance(row[name], str) for row in rows)]
    sheet = Sheet(texts, [_heading(name) for name in kept])
    for row in rows[:_MOST_ROWS]:
        numbers = [
            f"[{shown(row[name])}, {shown(row[_high(name)])}]"
            if name.endswith("_low") and row[name] is not None
            else shown(row[name], name)
            for name in kept
        ]
        sheet.add([visible(row[name]) for name in texts], numbers)
    return sheet


def _high(name: str) -> str:
    return name.removesuffix("_low") + "_high"


def _heading(name: str) -> str:
    return "interval" if name.endswith("_low") else name.replace("_", " ")
