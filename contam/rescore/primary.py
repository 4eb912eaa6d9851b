"""One primary metric for each benchmark: tests of the others belong to no family of claims."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contam.rescore.panel import Series


def primary_metrics(series: Iterable[Series]) -> dict[str, str]:
    """By benchmark: the metric that most models' logs name first, of equals the first by name.

    Metrics that are means of item scores go before those that are not, which have no exact test.
    """
    first: dict[tuple[str, str], Series] = {}
    for one in series:
        held = first.setdefault((one.benchmark, one.model), one)
        if one.additive and not held.additive:
            first[one.benchmark, one.model] = one
    votes: dict[str, Counter[tuple[bool, str]]] = {}
    for one in first.values():
        votes.setdefault(one.benchmark, Counter())[one.additive, one.metric] += 1
    found = {}
    for benchmark, counted in votes.items():
        best = min(counted, key=lambda key: (not key[0], -counted[key], key[1]))
        found[benchmark] = best[1]
    return found
