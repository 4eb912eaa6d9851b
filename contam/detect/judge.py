"""Make verdicts: the one place where evidence meets what a search did not see.

A policy judges the evidence. What it calls clean is `not_checkable` where documents were not read,
where the item itself is incomplete, or where an index may have missed something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.detect.labels import CLEAN, NOT_CHECKABLE
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.corpus.coverage import Coverage
    from contam.detect.model import Float64s, Int8s, Totals, ViewItems
    from contam.detect.policies.policy import Policy

_NOTHING: Final = "no document shares enough of its wording to be compared"


@dataclass(frozen=True, slots=True)
class Missed:
    """What a search cannot promise of items, whatever it read.

    why         policy by policy: item -> why a document that counts may have been missed
    unanswered  why nothing was searched for; "" where it was
    """

    why: tuple[Mapping[int, str], ...] = ()
    unanswered: str = ""

    def of(self, policy: int) -> Mapping[int, str]:
        """For the policy with this number."""
        return self.why[policy] if self.why else {}


class Verdicts(NamedTuple):
    """Of one policy: label int8[n], score float64[n] (NaN where not checkable), n reasons."""

    label: Int8s
    score: Float64s
    reasons: list[str]


def judge(
    policy: Policy,
    items: ViewItems,
    totals: Totals,
    doubts: Mapping[int, str],
    coverage: Coverage,
    *,
    allow_missing: bool,
) -> Verdicts:
    """The verdicts of a policy on what was found.

    doubts  item -> why it cannot be called clean;  coverage  of the documents that were searched
    allow_missing  whether items are called clean over shards that were not read
    """
    judged = policy.judge(items, totals)
    clean = judged.label == CLEAN
    n_unread = len(coverage.names) - len(coverage.shards_read)
    gap = f"{n_unread} of {counted(len(coverage.names), 'shard')} unread"
    hides = n_unread > 0 and not allow_missing
    after = f"; {gap}, which was allowed" if n_unread and allow_missing else ""
    unsure = np.full(items.n_items, hides)
    unsure[list(doubts)] = True
    label = np.where(clean & unsure, NOT_CHECKABLE, judged.label).astype(np.int8)
    reasons = [gap if hides else _NOTHING + after] * items.n_items
    rows = np.flatnonzero(~clean | ((totals.best_match.item >= 0) & ~unsure))
    for i, text in zip(rows.tolist(), policy.reasons(items, totals, judged, rows), strict=True):
        reasons[i] = text + after if clean[i] else text
    for i, text in doubts.items():
        if clean[i]:
            reasons[i] = text
    return Verdicts(label, np.where(label == NOT_CHECKABLE, np.nan, judged.score), reasons)


def unanswered(n_items: int, reason: str) -> Verdicts:
    """The verdicts on items that were not searched for: nothing is said of any."""
    label = np.full(n_items, NOT_CHECKABLE, np.int8)
    return Verdicts(label, np.full(n_items, np.nan), [reason] * n_items)
