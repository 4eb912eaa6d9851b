"""Say which sources are dirty: documents read and found, and items, by source and benchmark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from contam.detect.intervals import wilson
from contam.detect.match.by_source import ALL, MOST_SOURCES, unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.match.by_source import BySource
    from contam.detect.plan import Plan

#: Rows that run.json has at most: those of the worst sources of each policy.
_MOST_ROWS: Final = 10_000


def sources_section(plan: Plan, counted: BySource, columns: Sequence[str]) -> dict[str, Any]:
    """The section `sources` of run.json: the worst sources of each policy first.

    columns  those that name the sources
    """
    section: dict[str, Any] = {"columns": list(columns)}
    if counted.too_many:
        return {**section, "too_many": MOST_SOURCES}
    benchmarks = plan.items.column("benchmark")
    numbers = plan.views[0].items.benchmark
    name_of = dict(zip(numbers.tolist(), benchmarks, strict=True))
    items: Counter[tuple[int, int, int]] = Counter()
    for policy, source, item in zip(*(x.tolist() for x in unpacked(counted.items)), strict=True):
        items[policy, source, int(numbers[item])] += 1
        items[policy, source, ALL] += 1
    found = {(p, s, b): n for p, s, b, n in counted.documents.tolist()}
    by_source: dict[tuple[int, int], list[int]] = {}
    for policy, source, benchmark in sorted(found):
        by_source.setdefault((policy, source), []).append(benchmark)
    rows: list[dict[str, Any]] = []
    for policy, asked in enumerate(plan.policies):
        own = []
        for source, n_rows in enumerate(counted.rows.tolist()):
            for benchmark in by_source.get((policy, source), [ALL]):
                key = policy, source, benchmark
                n = found.get(key, 0)
                low, high = wilson(n, n_rows) if n_rows else (0.0, 1.0)
                row = {
                    "policy": asked.spec.id,
                    "source": counted.names[source],
                    "benchmark": name_of.get(benchmark),
                    "rows": n_rows,
                    "documents": n,
                    "items": items[key],
                    "share": round(n / n_rows, 9) if n_rows else 0.0,
                    "low": round(low, 9),
                    "high": round(high, 9),
                }
                own.append(row)
        worst = {row["source"]: -row["low"] for row in own if row["benchmark"] is None}
        own.sort(key=lambda row: worst[row["source"]])
        rows += own[: _MOST_ROWS // len(plan.policies)]
    n_sources = len(counted.names)
    unread = {"n_unread": counted.n_unread} if counted.n_unread else {}
    return {**section, "n_sources": n_sources, **unread, "rows": rows}
