"""`contam audit diff`: what changed since the last audit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contam.cli import options
from contam.cli.terminal import emit, visible

if TYPE_CHECKING:
    from contam.audit.diff import Difference, FigureChange, ItemChange

_SHOWN = 20
_WORDS = {
    "newly_flagged": "newly flagged",
    "cleared": "cleared",
    "unchecked": "no longer checked",
    "relabelled": "another label",
    "added": "new, not flagged",
    "removed": "gone",
}
_FIGURES = ("coverage", "corpora", "policies", "waivers", "scores", "ranks", "studies")


def diff(
    before: Annotated[Path, typer.Argument(metavar="A", help="The pack of the earlier audit.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The pack of the later audit.")],
    *,
    as_json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> None:
    """Show what changed: items, scores, ranks, studies, coverage, corpora, policies, waivers.

    Both packs must be unchanged since they were published. A warning comes first if their verdicts
    cannot be compared.
    """
    from contam.audit.diff import CHANGES, compare_packs
    from contam.cli import render

    found = compare_packs(before, after)
    if as_json:
        counts = {name: found.count(name) for name in CHANGES}
        render.emit_json({**asdict(found), "comparable": not found.incomparable, "counts": counts})
        return
    for line in _lines(found):
        emit(visible(line.replace("\n", " ")) + "\n")


def _lines(found: Difference) -> Iterable[str]:
    for reason in found.incomparable:
        yield f"NOT COMPARABLE: {reason}"
    if found.before == found.after:
        yield "the two packs are the same"
        return
    yield f"status     {found.status_before} -> {found.status_after}"
    if found.n_items_changed:
        yield f"items      {found.n_items_changed:,} have another text than before: they are new"
    if not found.items:
        yield "items      the labels are the same"
    for change, words in _WORDS.items():
        own = [item for item in found.items if item.change == change]
        if own:
            yield f"items      {len(own):,} {words}"
            yield from _shortened([_item(change) for change in own])
    for name in _FIGURES:
        figures: Sequence[FigureChange] = getattr(found, name)
        if figures:
            yield f"{name:10s} {len(figures):,} changed"
            yield from _shortened([_figure(figure) for figure in figures])


def _shortened(lines: Sequence[str]) -> Iterable[str]:
    yield from (f"  {line}" for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield f"  and {len(lines) - _SHOWN:,} more; --json has all"


def _item(change: ItemChange) -> str:
    name = "/".join(part for part in (change.benchmark, change.split, change.item_id) if part)
    waived = ", waived" if change.waived else ""
    return (
        f"{name} by {change.policy}: {change.before or 'none'} -> {change.after or 'none'}{waived}"
    )


def _figure(change: FigureChange) -> str:
    what = f" {change.what}" if change.what else ""
    return f"{change.of}{what}: {_value(change.before)} -> {_value(change.after)}"


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
