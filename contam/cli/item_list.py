"""List items of a result in one line each, as CSV, or as a page that opens offline."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

from contam.cli.output_file import csv_text
from contam.detect.policies.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from contam.audit.chance.calibration import QValues
    from contam.benchmark.items import ItemName
    from contam.detect.report import Report
    from contam.detect.show.choose import Choice
    from contam.detect.show.side_by_side import ItemView

_COLUMNS: Final = (*(field.name for field in fields(Verdict)), "best_source", "q_value")


def item_table(
    views: Iterable[ItemView], choice: Choice, report: Report, chance: QValues | None
) -> RenderableType:
    """A row for each item, with the facts of the first of its verdicts that fits the choice.

    Of several policies that is the first that fits; their items are in groups, in that order.
    """
    from contam.cli.render import label_style, new_table
    from contam.cli.terminal import visible
    from contam.detect.show.choose import sources_of
    from contam.tables import schemas

    sources = sources_of(report)
    several = choice.policy is None and len(set(schemas.column(report.verdicts, "policy"))) > 1
    table = new_table("item")
    table.collapse_padding = True
    table.add_column("verdict", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    if chance is not None:
        table.add_column("q", justify="right", no_wrap=True)
    for heading in ("leaked", "kind"):
        table.add_column(heading, no_wrap=True)
    table.add_column("docs", justify="right", no_wrap=True)
    table.add_column("source", overflow="fold")
    from rich.text import Text

    above = ""
    for view in views:
        first = next(verdict for verdict in view.verdicts if choice.takes(verdict))
        if several and first.policy != above:
            table.add_row(Text(f"by {visible(first.policy)}", style="bold"))
            above = first.policy
        cells: list[Text | str] = ["/".join(visible(part) for part in view.key if part)]
        cells += [Text(first.label.replace("_", " "), style=label_style(first.label))]
        cells += ["" if first.score is None else f"{first.score:.3g}"]
        if chance is not None:
            q = chance.of(*view.key, first.policy)
            cells.append("" if q is None else f"{q:.3g}")
        cells += [first.exposure, first.kind or "", f"{first.n_documents:,}"]
        table.add_row(*cells, visible(_source(first, sources)))
    return table


def item_csv(
    views: Iterable[ItemView], choice: Choice, report: Report, chance: QValues | None
) -> str:
    """A line for each verdict that fits the choice: the columns of verdicts.parquet, and more."""
    from contam.detect.show.choose import sources_of

    sources = sources_of(report)
    rows = (
        (
            *verdict.to_dict().values(),
            _source(verdict, sources),
            chance.of(*view.key, verdict.policy) if chance else None,
        )
        for view in views
        for verdict in view.verdicts
        if choice.takes(verdict)
    )
    return csv_text(_COLUMNS, rows)


def html_page(
    keys: Sequence[ItemName],
    choice: Choice,
    report: Report,
    chance: QValues | None,
    max_documents: int | None,
    *,
    about: Sequence[str],
) -> str:
    """The items, each beside its documents, as one page of HTML that opens offline.

    about  lines for the head of the page: what of the corpus was read
    """
    from contam.audit.report.pages import COLUMNS, items_page, make_pages
    from contam.cli.render import counted
    from contam.detect.notebook import result_html
    from contam.detect.result import label_counts

    rows, pages = make_pages(
        report, None, chance, keys=keys, choice=choice, max_documents=max_documents
    )
    lacking = {"date"} if chance is not None else {"date", "q"}
    return items_page(
        rows,
        pages,
        title=f"Items of {(report.folder.name or report.folder.absolute().name)}",
        lead=[f"{counted(len(rows), 'item')}: {_described(choice)}. Highest score first.", *about],
        about=result_html(
            label_counts(report.verdicts), report.run["coverage"], report.run.get("notes", ())
        ),
        columns=[column for column in COLUMNS if column.key not in lacking],
    )


def _described(choice: Choice) -> str:
    """What was chosen, in words."""
    facts = [" or ".join(label.replace("_", " ") for label in choice.labels)]
    facts += [f"by {choice.policy}"] if choice.policy else []
    facts += [f"of {', '.join(choice.benchmarks)}"] if choice.benchmarks else []
    facts += [f"in documents of {', '.join(choice.sources)}"] if choice.sources else []
    return ", ".join(facts)


def _source(verdict: Verdict, sources: dict[tuple[str, int], str]) -> str:
    if verdict.best_shard is None or verdict.best_row is None:
        return ""
    return sources.get((verdict.best_shard, verdict.best_row), "")
