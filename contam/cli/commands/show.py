"""`contam show`: show flagged items beside their documents, with matches marked."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contam.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from contam.audit.chance.qvalues import QValues
    from contam.detect.policies.verdict import Verdict
    from contam.detect.report import Report
    from contam.detect.show.highlights import Mark
    from contam.detect.show.side_by_side import DocumentMatch, ItemView, PartMatch

_LISTED = 20


def show(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Results of `contam scan` or `contam audit`."),
    ],
    item: Annotated[
        str | None,
        typer.Argument(metavar="[ITEM]", help="An item id, or benchmark/id. Default: all flagged."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show only verdicts of this policy.")
    ] = None,
    documents: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Documents shown per item. [default: 1; with ITEM 5]"
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Items shown. [default: 20; with --json all]"),
    ] = None,
    as_json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Show flagged items and documents side by side.

    Matching text is marked and coloured. Documents are read again from the corpus. For a pack,
    verdicts have their q-values.
    """
    from contam.audit.chance.qvalues import chance_of
    from contam.audit.review.sample import open_result
    from contam.cli import render
    from contam.detect.show.side_by_side import check_policy, find_items, flagged_items, view_items

    report = open_result(folder)
    chance = chance_of(folder)
    check_policy(report, policy)
    keys = flagged_items(report, policy) if item is None else find_items(report, item)
    limit = limit or (len(keys) if as_json else _LISTED)
    if documents is None:
        documents = 1 if item is None and not as_json else 5
    views = view_items(report, keys[:limit], policy=policy, max_documents=documents)
    if as_json:
        render.emit_json({"flagged": len(keys), "items": [as_tree(view, chance) for view in views]})
        return
    if not keys:
        _say_nothing_flagged(report, policy)
    for view in views:
        render.emit_renderable(*item_blocks(view, chance))
    if len(keys) > limit:
        render.emit_renderable(
            f"{len(keys) - limit:,} more flagged items: --limit {len(keys)}, or name an item"
        )


def _say_nothing_flagged(report: Report, policy: str | None) -> None:
    from contam.cli import render

    by = f" by {policy}" if policy else ""
    render.emit_renderable(f"no item is flagged{by} in {report.folder}")


def as_tree(view: ItemView, chance: QValues | None = None) -> dict[str, Any]:
    """A view as plain values, ready for JSON; of a pack, each verdict with its `q_value`."""
    verdicts = [
        {**verdict.to_dict(), "q_value": chance.of(*view.key, verdict.policy)}
        if chance
        else verdict.to_dict()
        for verdict in view.verdicts
    ]
    return {
        **view.key._asdict(),
        "verdicts": verdicts,
        "texts": view.texts,
        "documents": [asdict(document) for document in view.documents],
        "more_documents": view.n_more_documents,
    }


def item_blocks(view: ItemView, chance: QValues | None = None) -> list[RenderableType]:
    """A view as what is printed of it."""
    from contam.cli.sheet import Title
    from contam.cli.terminal import visible

    name = "/".join(visible(part) for part in view.key if part)
    blocks: list[RenderableType] = [Title(name)]
    blocks += [
        _verdict(
            verdict,
            chance.describe(*view.key, verdict.policy) if chance and verdict.flagged else "",
        )
        for verdict in view.verdicts
    ]
    if not view.texts:
        blocks.append("the item's texts were kept out of this result")
    for document in view.documents:
        blocks += ["", *_document(document)]
    if not view.documents:
        blocks += ["no document shares text with it", *_texts(view)]
    if view.n_more_documents:
        blocks.append(f"\n{view.n_more_documents:,} more documents in evidence.parquet")
    return [*blocks, ""]


def _verdict(verdict: Verdict, chance: str) -> Text:
    from rich.text import Text

    from contam.cli.render import label_style
    from contam.cli.terminal import visible

    line = Text(verdict.label, style=label_style(verdict.label))
    facts = [verdict.policy]
    if verdict.score is not None:
        facts.append(f"score {verdict.score:.3g}")
    if verdict.exposure != "none":
        facts.append(verdict.exposure)
    facts += [verdict.kind] if verdict.kind else []
    if verdict.n_documents:
        facts.append(f"documents {verdict.n_documents:,}, occurrences {verdict.n_occurrences:,}")
    facts += [chance] if chance else []
    return line.append(visible(f"  {', '.join(facts)}: {verdict.reason}"), style="default")


def _document(document: DocumentMatch) -> list[RenderableType]:
    from rich.text import Text

    from contam.cli.terminal import visible

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
        facts = [part.part]
        facts += [f"named by its {part.mark}"] if part.mark else [f"{part.n_tokens} tokens"]
        facts += [f"turn {part.turn}"] if part.turn else []
        facts += [] if part.verified else ["unverified"]
        table.add_row("\n".join(facts), _marked(part.item), _marked(part.document))
    return table


def _marked(marks: Sequence[Mark]) -> Text:
    """Marks as text: matches in colour and between brackets, so that they show without colour."""
    from rich.text import Text

    from contam.cli.terminal import shows_unicode, visible

    before, after, gap = ("⟦", "⟧", "…") if shows_unicode() else ("[[", "]]", "...")
    text = Text()
    for mark in marks:
        if mark.kind == "match":
            text.append(f"{before}{visible(mark.text)}{after}", style="bold black on yellow")
        elif mark.kind == "gap":
            text.append(f" {gap} {mark.n_left_out:,} characters {gap} ", style="dim")
        else:
            text.append(visible(mark.text))
    return text


def _texts(view: ItemView) -> list[RenderableType]:
    from rich.text import Text

    from contam.cli.terminal import visible

    return [
        Text(f"{part}  ", style="bold").append(visible(text), style="default")
        for part, text in view.texts.items()
    ]
