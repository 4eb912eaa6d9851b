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
    str, typer.Option(metavar="NAME", help="Policy of the verdicts, where they hold several.")
]
Metric = Annotated[
    str, typer.Option(metavar="METRIC", help="Metric of the logs, where they have several.")
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
            emit(f"{visible(text)}\n")
        render.emit_renderable("", _table(study))
        for refusal in study.refusals:
            emit(f"not estimated: {visible(refusal.what)}: {visible(refusal.reason)}\n")
        emit(f"\nresults  {visible(out)}\nsummary  {visible(str(Path(out) / SUMMARY))}\n")
    return 0 if complete else 4


def _table(study: Study) -> RenderableType:
    """The first columns and rows of the main table."""
    from contam.cli.sheet import Sheet
    from contam.cli.terminal import visible
    from contam.study.write import shown

    rows = study.rows()
    names = study.to_arrow().column_names
    first = {name: next((row[name] for row in rows if row[name] is not None), "") for name in names}
    texts = [name for name in names if isinstance(first[name], str)]
    kept = [name for name in names if name not in texts][:_MOST_NUMBERS]
    sheet = Sheet(texts[:_MOST_TEXTS], [name.replace("_", " ") for name in kept])
    for row in rows[:_MOST_ROWS]:
        sheet.add(
            [visible(row[name]) for name in texts[:_MOST_TEXTS]],
            [shown(row[name], name) for name in kept],
        )
    return sheet


_MOST_TEXTS = 2
_MOST_NUMBERS = 8
