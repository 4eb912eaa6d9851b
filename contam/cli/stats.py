"""Print what is flagged in a result: by benchmark, by source and by month, with bars."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from contam.cli import render
from contam.cli.terminal import shows_unicode, visible
from contam.detect.labels import FLAGGED
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from contam.detect.report import Report

_LISTED: Final = 20
_BAR: Final = 24


def stats(report: Report, policy: str | None, benchmarks: Collection[str]) -> dict[str, Any]:
    """What is flagged by each policy.

    policy  the only one;  benchmarks  the only ones; none means all

    Of each policy: `benchmarks` with their labels, and for `sources` (the most frequent first) and
    `months` how many flagged items share text with a document of each.
    """
    from contam.audit.report.tally import tally

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
