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
    """The same as tables with bars."""
    for policy, own in found.items():
        yield f"flagged by {visible(policy)}"
        table = render.new_table("benchmark", numbers=("flagged", "of", "share"))
        table.add_column("")
        for name, labels in own["benchmarks"].items():
            n, of = sum(labels[label] for label in FLAGGED), sum(labels.values())
            cells = (f"{n:,}", f"{of:,}", render.share(n, of), _bar(n / of))
            table.add_row(visible(name), *cells)
        yield table
        yield ""
        yield from _counts("source", list(own["sources"].items()), "more source")
        # The last months are the ones that matter.
        months = list(own["months"].items())
        if len(months) > _LISTED:
            yield f"{counted(len(months) - _LISTED, 'earlier month')}; --json has all"
        yield from _counts("month", months[-_LISTED:], "")


def _counts(thing: str, counts: Sequence[tuple[str, int]], more: str) -> Iterator[RenderableType]:
    if not counts:
        return
    most = max(n for _, n in counts)
    table = render.new_table(thing, numbers=("items",))
    table.add_column("")
    for name, n in counts[:_LISTED]:
        table.add_row(visible(name), f"{n:,}", _bar(n / most))
    yield table
    if len(counts) > _LISTED:
        yield f"{counted(len(counts) - _LISTED, more)}; --json has all"
    yield ""


def _bar(share: float) -> str:
    """A bar of this share of the full length, at least one block long if there is anything."""
    full = "█" if shows_unicode() else "#"
    return full * (max(1, round(_BAR * share)) if share else 0)
