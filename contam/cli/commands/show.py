"""`contam show` and `contam sql`: what a result holds, side by side, counted or asked in SQL."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from contam.cli import options, render
from contam.cli.options import argument, flag, option, split_names
from contam.cli.render import label_style, new_table
from contam.cli.results import refuse_beside, write_text
from contam.cli.terminal import emit, folded, page_width, shows_unicode, visible
from contam.detect.labels import FLAGGED, LABELS, NOT_CHECKABLE, SHOWN
from contam.detect.policies.verdict import Verdict
from contam.errors import UsageError
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from contam.audit.calibration import QValues
    from contam.benchmark.items import ItemName
    from contam.detect.report import Report
    from contam.detect.show.choose import Choice
    from contam.detect.show.side_by_side import DocumentMatch, ItemView, Mark, PartMatch


_LISTED: Final = 20
_WITH_STATS = ("folder", "stats", "policy", "benchmark", "as_json")
_DOCUMENTS = """
CREATE VIEW documents AS SELECT any_value(document_id) AS document_id, shard, row,
  any_value(url) AS url, any_value(date) AS date, any_value(source) AS source,
  count(DISTINCT (benchmark, split, item_id)) AS n_items
FROM evidence GROUP BY shard, row ORDER BY shard, row
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which items are listed."""

    label: list[str] | None = option(
        "LABEL,...",
        "List items with these labels: contaminated, suspect, clean, not_checkable."
        " [default: contaminated,suspect]",
    )
    benchmark: list[str] | None = option("NAME,...", "List items of these benchmarks.")
    source: list[str] | None = option(
        "NAME,...",
        "List items that share text with documents of these sources, or hosts of"
        " addresses; of the documents only these are shown.",
    )


#: Characters of a line of the list, but for the item.
_OTHER_COLUMNS = 66
#: Characters of a rule behind a title.
_LEAST_RULE = 4


@options.shared
def show(
    context: typer.Context,
    folder: Path = argument("DIR", "Results of `contam scan` or `contam audit`."),
    item: str | None = argument(
        "[ITEM]", "An item id, or benchmark/id. Default: list the flagged items.", None
    ),
    *,
    policy: str | None = option("NAME", "Show only verdicts of this policy."),
    filters: Filters,
    documents: int | None = option(
        "N", "Documents shown beside each item. [default: none in a list, 5 with ITEM]", min=1
    ),
    limit: int | None = option("N", "Items shown. [default: 20; with --json, --html all]", min=1),
    stats: bool = flag(
        "--stats", "Count what is flagged by benchmark, source and month, with bars."
    ),
    as_json: bool = options.JSON,
    html: Path | None = option(
        "FILE", "Write items and documents side by side, as one file of HTML."
    ),
    overwrite: bool = options.OVERWRITE,
) -> int:
    """List flagged items, the best of each benchmark in turn, or show one beside its documents.

    Matching text is marked and coloured. Documents are read again from the corpus. For a pack,
    verdicts have their q-values.

    Examples:
        contam show results
        contam show results gsm8k/17
    """
    if as_json and html is not None:
        raise UsageError("--json and --html exclude each other", hint="choose one")
    if item is not None and (filters.label or filters.benchmark or filters.source):
        raise UsageError(
            "--label, --benchmark and --source do not go with ITEM", hint="leave out the item"
        )
    if stats:
        refuse_beside(context, _WITH_STATS, "--stats", "leave it out: no item is shown")
    from contam.audit.calibration import chance_of
    from contam.audit.sample import open_result
    from contam.detect.show.choose import (
        Choice,
        check_policy,
        choose_items,
        find_items,
        flagged_items,
    )
    from contam.detect.show.side_by_side import view_items

    report = open_result(folder)
    chance = chance_of(folder)
    check_policy(report, policy)
    choice = Choice(
        policy=policy,
        labels=tuple(split_names(filters.label or FLAGGED)) if item is None else SHOWN,
        benchmarks=tuple(split_names(filters.benchmark or ())),
        sources=tuple(split_names(filters.source or ())),
    )
    keys = choose_items(report, choice) if item is None else find_items(report, item)
    unchecked = choose_items(report, replace(choice, labels=(LABELS[NOT_CHECKABLE],), sources=()))
    about = [visible(line) for line in render.result_lines(report.run, len(unchecked))]
    if stats:
        _print_stats(report, choice, about, as_json=as_json)
        return 0
    shown = keys[: limit or (len(keys) if as_json or html is not None else _LISTED)]
    if html is not None:
        page = html_page(shown, choice, report, chance, documents, about=about)
        write_text(html, page, overwrite=overwrite, named="--html")
        emit(visible(f"{counted(len(shown), 'item')} written to {html}") + "\n")
        return 0
    whole = item is not None or as_json
    views = view_items(
        report,
        shown,
        policy=policy,
        max_documents=documents or (5 if whole else 0),
        sources=choice.sources,
    )
    if as_json:
        render.emit_json(
            {
                "chosen": len(keys),
                "flagged": len(set(keys).intersection(flagged_items(report, policy))),
                "not_checkable": len(unchecked),
                "coverage": report.run["coverage"],
                "items": [as_tree(view, chance) for view in views],
            }
        )
    else:
        last = [] if item is not None else about
        if len(keys) > len(shown):
            more = counted(len(keys) - len(shown), "more item")
            last = [f"{more}: --limit {len(keys)}", *last]
        if not keys:
            render.emit_renderable(visible(_nothing(report, choice)), "")
        elif whole or documents:
            for view in views:
                render.emit_renderable(*item_blocks(view, chance))
        else:
            render.emit_renderable(item_table(views, choice, report, chance), "")
            last = [*last, visible(f"side by side: contam show {folder} ITEM")]
        emit("".join(f"{folded(line)}\n" for line in last))
    return 0


def _print_stats(report: Report, choice: Choice, about: Iterable[str], *, as_json: bool) -> None:
    found = count_flags(report, choice.policy, choice.benchmarks)
    if as_json:
        render.emit_json({"policies": found, "coverage": report.run["coverage"]})
        return
    render.emit_renderable(*stats_blocks(found))
    emit("".join(f"{folded(line)}\n" for line in about))


def _nothing(report: Report, choice: Choice) -> str:
    by = f" by {choice.policy}" if choice.policy else ""
    if choice.labels == FLAGGED and not choice.benchmarks and not choice.sources:
        return f"no item is flagged{by} in {report.folder}"
    return f"no item of {report.folder} matches these filters"


def as_tree(view: ItemView, chance: QValues | None = None) -> dict[str, Any]:
    """A view as plain values, ready for JSON; of a pack, each verdict with its `q_value`."""
    verdicts = [verdict.to_dict() for verdict in view.verdicts]
    for verdict in verdicts if chance else ():
        verdict["q_value"] = chance and chance.of(*view.key, verdict["policy"])
    return {
        **view.key._asdict(),
        "verdicts": verdicts,
        "texts": view.texts,
        "documents": [asdict(document) for document in view.documents],
        "more_documents": view.n_more_documents,
    }


def item_blocks(view: ItemView, chance: QValues | None = None) -> list[RenderableType]:
    """A view as what is printed of it."""
    from rich.rule import Rule
    from rich.text import Text

    name = visible(view.key.path)
    title = Text(name, style="bold", overflow="fold")
    # Rich would cut a title that leaves no room for a rule.
    fits = title.cell_len + _LEAST_RULE <= page_width()
    blocks: list[RenderableType] = [Rule(title, align="left") if fits else title]
    for verdict in view.verdicts:
        q = chance.describe(*view.key, verdict.policy) if chance and verdict.flagged else ""
        blocks.append(_verdict(verdict, q))
    if not view.texts:
        blocks.append("the item's texts were kept out of this result")
    for document in view.documents:
        blocks += ["", *_document(document)]
    if not view.documents:
        blocks.append("no document shares text with it")
        for part, text in view.texts.items():
            blocks.append(Text(f"{part}  ", style="bold").append(visible(text), style="default"))
    if view.n_more_documents:
        blocks.append(f"\n{counted(view.n_more_documents, 'more document')} in evidence.parquet")
    return [*blocks, ""]


def _verdict(verdict: Verdict, chance: str) -> Text:
    from rich.text import Text

    line = Text(verdict.label, style=label_style(verdict.label))
    known = (
        verdict.policy,
        "" if verdict.score is None else f"score {verdict.score:.3g}",
        verdict.exposure if verdict.exposure != "none" else "",
        verdict.kind,
        verdict.n_documents and counted(verdict.n_documents, "document"),
        verdict.n_documents and counted(verdict.n_occurrences, "occurrence"),
        chance,
    )
    facts = [str(fact) for fact in known if fact]
    return line.append(visible(f"  {', '.join(facts)}: {verdict.reason}"), style="default")


def _document(document: DocumentMatch) -> list[RenderableType]:
    from rich.text import Text

    where = f"{document.shard} row {document.row:,}"
    where += f" column {document.column}" if document.column else ""
    known = [document.document_id, where, document.url, document.date, document.source]
    head = Text(visible("  ".join(dict.fromkeys(fact for fact in known if fact))), style="cyan")
    blocks: list[RenderableType] = [head]
    if document.problem:
        blocks.append(f"its text cannot be shown: {visible(document.problem)}")
    blocks.append(_side_by_side(document.parts))
    return blocks


def _side_by_side(parts: Sequence[PartMatch]) -> RenderableType:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, expand=True, show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("item", ratio=1, overflow="fold")
    table.add_column("document", ratio=1, overflow="fold")
    for part in parts:
        shared = f"named by its {part.mark}" if part.mark else counted(part.n_tokens, "token")
        facts = [part.part, shared]
        facts += [f"turn {part.turn}"] if part.turn else []
        facts += [f"at token {part.token:,}"] if part.token is not None else []
        table.add_row("\n".join(facts), _marked(part.item), _marked(part.document))
    return table


def _marked(marks: Sequence[Mark]) -> Text:
    """Marks as text: matches in colour and between brackets, so that they show without colour."""
    from rich.text import Text

    before, after, gap = ("⟦", "⟧", "…") if shows_unicode() else ("[[", "]]", "...")
    text = Text()
    for mark in marks:
        if mark.kind == "match":
            text.append(f"{before}{visible(mark.text)}{after}", style="bold black on yellow")
        elif mark.kind == "gap":
            text.append(f" {gap} {counted(mark.n_left_out, 'character')} {gap} ", style="dim")
        else:
            text.append(visible(mark.text))
    return text


def item_table(
    views: Iterable[ItemView], choice: Choice, report: Report, chance: QValues | None
) -> RenderableType:
    """A row for each item, with the facts of the first of its verdicts that fits the choice.

    Of several policies that is the first that fits; their items are in groups, in that order.
    """
    from contam.detect.show.choose import sources_of
    from contam.tables import schemas

    sources = sources_of(report)
    several = choice.policy is None and len(set(schemas.column(report.verdicts, "policy"))) > 1
    table = new_table("item")
    table.collapse_padding = True
    for heading in ("verdict", "score", *(["q"] if chance else []), "leaked", "kind", "docs"):
        right = heading in {"score", "q", "docs"}
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    table.add_column("source", overflow="fold")
    from rich.text import Text

    above = ""
    room = page_width() - _OTHER_COLUMNS
    for view in views:
        first = next(verdict for verdict in view.verdicts if choice.takes(verdict))
        if several and first.policy != above:
            table.add_row(Text(f"by {visible(first.policy)}", style="bold"))
            above = first.policy
        cells: list[Text | str] = [_broken(visible(view.key.path), room)]
        cells += [Text(first.label.replace("_", " "), style=label_style(first.label))]
        cells += ["" if first.score is None else f"{first.score:.3g}"]
        if chance is not None:
            q = chance.of(*view.key, first.policy)
            cells.append("" if q is None else f"{q:.3g}")
        cells += [first.exposure, first.kind or "", f"{first.n_documents:,}"]
        best = (first.best_shard or "", first.best_row or 0)
        table.add_row(*cells, visible(sources.get(best, "")))
    return table


def _broken(name: str, room: int) -> str:
    """A name in lines of so many characters, broken behind its slashes."""
    lines = [""]
    for piece in re.split("(?<=/)", name):
        if lines[-1] and len(lines[-1]) + len(piece) > room:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


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


def sql(
    folder: Path = argument("DIR", "Results of `contam scan --out`."),
    query: str = argument(
        "SQL", "SQL over verdicts, evidence, items, documents (of the evidence) and sources."
    ),
) -> None:
    """Query a result folder in SQL (DuckDB); COPY (...) TO 'FILE' writes an answer: CSV, Parquet.

    Examples:
        contam sql results 'select label, count(*) from verdicts group by all'
        contam sql results "copy evidence to 'evidence.csv'"
    """
    from contam.detect.report import load_report
    from contam.tables.schemas import sources_table
    from contam.tables.sql import Database

    report = load_report(folder)
    with closing(Database()) as database:
        for name in ("verdicts", "evidence", "items"):
            database.add_table(name, getattr(report, name))
        database.ask(_DOCUMENTS)
        database.add_table("sources", sources_table(report.run.get("sources", {}).get("rows", [])))
        names, rows = database.ask(query)
    table = render.new_table()
    for at, name in enumerate(names):
        numbers = bool(rows) and all(isinstance(row[at], int | float) for row in rows)
        table.add_column(visible(name), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else visible(_cell(value)) for value in row))
    render.emit_renderable(table, f"\n{counted(len(rows), 'row')}")


def _cell(value: Any) -> str:  # noqa: ANN401 - whatever a column of a database holds
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_BAR: Final = 24


def count_flags(report: Report, policy: str | None, benchmarks: Collection[str]) -> dict[str, Any]:
    """What is flagged by each policy.

    policy  the only one;  benchmarks  the only ones; none means all

    Of each policy: `benchmarks` with their labels, and for `sources` (the most frequent first) and
    `months` how many flagged items share text with a document of each.
    """
    from contam.audit.facts import tally

    found: dict[str, Any] = {}
    for (benchmark, by), facts in tally(report, "", {}, most_sources=None).items():
        if policy not in {None, by} or (benchmarks and benchmark not in benchmarks):
            continue
        own = found.setdefault(by, {"benchmarks": {}, "sources": Counter(), "months": Counter()})
        own["benchmarks"][benchmark] = {
            label: getattr(facts, label) for label in (*FLAGGED, "clean", "not_checkable")
        }
        own["sources"].update({one.source: one.n_items for one in facts.sources})
        own["months"].update({one.name: one.n for one in facts.months})
    for own in found.values():
        own["sources"] = dict(sorted(own["sources"].items(), key=lambda one: (-one[1], one[0])))
        own["months"] = dict(sorted(own["months"].items()))
    return found


def stats_blocks(found: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The same as tables with bars, of months the last."""
    for policy, own in found.items():
        yield f"flagged by {visible(policy)}"
        shares = {}
        for name, labels in own["benchmarks"].items():
            n, of = sum(labels[label] for label in FLAGGED), sum(labels.values())
            shares[name] = (f"{n:,}", f"{of:,}", render.share(n, of), _bar(n, of))
        yield from (_table("benchmark", ("flagged", "of", "share"), shares), "")
        for thing, rows in (("source", slice(_LISTED)), ("month", slice(-_LISTED, None))):
            counts: dict[str, int] = own[f"{thing}s"]
            listed = dict([*counts.items()][rows])
            most = max(listed.values(), default=1)
            shown = {name: (f"{n:,}", _bar(n, most)) for name, n in listed.items()}
            if shown:
                yield _table(thing, ("items",), shown)
                more = len(counts) - len(shown)
                yield f"{counted(more, f'more {thing}')}: --json has all\n" if more else ""


def _table(thing: str, numbers: Sequence[str], rows: Mapping[str, Sequence[str]]) -> Table:
    table = render.new_table(thing, numbers=numbers)
    table.add_column("")
    for name, cells in rows.items():
        table.add_row(visible(name), *cells)
    return table


def _bar(n: int, of: int) -> str:
    """A bar of this share of the full length, at least one block long if there is anything."""
    full = "█" if shows_unicode() else "#"
    return full * (max(1, round(_BAR * n / of)) if n else 0)
