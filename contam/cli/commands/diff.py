"""`contam diff`: what changed from one result, or one audit, to the next."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.benchmark.items import ItemName
from contam.cli import options, render
from contam.cli.options import argument, flag, option
from contam.cli.results import EXIT_FLAGGED, EXIT_INCOMPLETE
from contam.cli.terminal import emit, folded, plain
from contam.errors import UsageError

if TYPE_CHECKING:
    from contam.detect.changes import Changes, FigureChange, ItemChange

_LISTED: Final = 20
_WORDS: Final = {
    "newly_flagged": "newly flagged",
    "cleared": "cleared",
    "unchecked": "no longer checked",
    "relabelled": "with another label",
    "added": "new, not flagged",
    "removed": "gone",
}
_FIGURES: Final = (
    *("policies", "settings", "coverage", "shards", "corpora", "scores", "ranks", "studies"),
)
_ACCEPTED: Final = "accepted"


def diff(
    before: Path = argument("A", "The earlier results or audit."),
    after: Path = argument("B", "The later one."),
    *,
    accept: Path | None = option(
        "FILE", "Flags of B that were accepted (`contam review --accept`)."
    ),
    fail_on_flagged: bool = flag(
        "--fail-on-flagged",
        "Exit with 3 if an item is newly flagged and not accepted, or if the two cannot"
        " be compared; with 4 if B did not read the whole corpus.",
    ),
    as_json: bool = options.JSON,
) -> int:
    """Show what changed from A to B; items whose label is another one, and why.

    A and B are results of `contam scan` or `contam query`, or packs of `contam audit`, of which
    scores, ranks and studies are compared, too. What cannot be compared comes first.

    Examples:
        contam diff results-1 results-2
        contam diff pack-1 pack-2 --fail-on-flagged
    """
    from contam.audit.sample import open_result
    from contam.audit.verify import REPORT
    from contam.detect.changes import CHANGES, Side, compare

    n_packs = sum((folder / REPORT).exists() for folder in (before, after))
    if n_packs == 1:
        raise UsageError(
            "one is a pack of an audit, the other is not", hint="compare two packs or two results"
        )
    found: Changes
    if n_packs:
        from contam.audit.verify import compare_packs

        found = compare_packs(before, after)
    else:
        found = compare(*(Side.of(open_result(folder)) for folder in (before, after)))
    report = open_result(after)
    if accept is not None:
        from contam.detect.accepted import find_accepted, read_accepted

        flags = find_accepted(read_accepted(accept), report, dt.datetime.now(dt.UTC).date()).flags
        items = (
            replace(item, why=_ACCEPTED) if item.flag in flags else item for item in found.items
        )
        found = replace(found, items=tuple(items))
    if as_json:
        counts = {name: found.count(name) for name in CHANGES}
        told = {"before": str(before), "after": str(after), **asdict(found)}
        render.emit_json({**told, "comparable": not found.incomparable, "counts": counts})
    else:
        for line in _lines(found):
            emit(f"{folded(line)}\n")
    if not fail_on_flagged:
        return 0
    if not report.run["coverage"].get("complete"):
        return EXIT_INCOMPLETE
    fresh = (item for item in found.items if item.change == "newly_flagged")
    failed = found.incomparable or any(item.why != _ACCEPTED for item in fresh)
    return EXIT_FLAGGED if failed else 0


def _lines(found: Changes) -> Iterable[str]:
    for reason in found.incomparable:
        yield f"NOT COMPARABLE: {plain(reason)}"
    figures: dict[str, Sequence[FigureChange]] = {
        name: getattr(found, name, ()) for name in _FIGURES
    }
    if not (found.incomparable or found.items or any(figures.values())):
        yield "nothing changed"
        return
    if status := getattr(found, "status", None):
        yield f"status     {' -> '.join(status)}"
    if found.n_items_changed:
        said = "has another text" if found.n_items_changed == 1 else "have another text"
        yield f"items      {found.n_items_changed:,} {said} than before: new items"
    if not found.items:
        yield "items      the labels are the same"
    for change, words in _WORDS.items():
        own = [item for item in found.items if item.change == change]
        if own:
            yield f"items      {len(own):,} {words}"
            yield from _shortened([_item(one) for one in own])
    for name, changed in figures.items():
        if changed:
            yield f"{name:10s} {len(changed):,} changed"
            say = _shard if name == "shards" else _figure
            yield from _shortened([say(figure) for figure in changed])


def _shortened(lines: Sequence[str]) -> Iterable[str]:
    for line in render.at_most(_LISTED, lines, "more; --json has all"):
        yield from (f"  {each}" for each in line.split("\n"))


def _item(change: ItemChange) -> str:
    labels = f"{change.before or 'none'} -> {change.after or 'none'}"
    name = plain(ItemName.of(change).path)
    return f"{name} by {change.policy}: {labels}\n  {plain(change.why)}"


def _shard(figure: FigureChange) -> str:
    if figure.before is None:
        return f"{plain(figure.of)}: only in B"
    return f"{plain(figure.of)}: {'only in A' if figure.after is None else 'another content'}"


def _figure(figure: FigureChange) -> str:
    what = f" {figure.what}" if figure.what else ""
    return plain(f"{figure.of}{what}: {_value(figure.before)} -> {_value(figure.after)}")


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
