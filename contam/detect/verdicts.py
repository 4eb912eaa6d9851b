"""Merged evidence -> the columns of the verdict table, a whole policy at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.detect.model import CLEAN, LABELS, NOT_CHECKABLE, Judgements
from contam.detect.policies.standing import (
    EXPOSURES,
    KINDS,
    NONE,
    QUESTION_AND_ANSWER,
    QUESTION_ONLY,
    exposures,
    kinds,
)
from contam.tables.schemas import Repeated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.corpus.coverage import Coverage
    from contam.detect.described import Documents
    from contam.detect.match.collect import Collection
    from contam.detect.model import Int8s, LaneItems, Totals
    from contam.detect.plan import Plan
    from contam.detect.policies.policy import Policy
    from contam.tables.schemas import Column

_NOTHING = "no document shares enough of its wording to be looked at"


class Gap:
    """What was not read, and what that does to a clean label."""

    def __init__(self, coverage: Coverage, *, allowed: bool) -> None:
        n_unread = len(coverage.names) - len(coverage.shards_read)
        self.hides = n_unread > 0 and not allowed
        self.allowed = n_unread > 0 and allowed
        self.text = f"{n_unread} of {len(coverage.names)} shards unread"


def verdict_columns(
    plan: Plan, coverage: Coverage, collections: Sequence[Collection], documents: Documents
) -> dict[str, Column]:
    """The columns of `contam.detect.result.VERDICTS`: item by item, policies as asked."""
    gap = Gap(coverage, allowed=plan.parameters.allow_missing)
    n_items, n_policies = len(plan.items), len(plan.policies)
    numbers: dict[str, list[NDArray[np.generic]]] = {}
    reasons: list[list[str]] = []
    seen = [0] * len(plan.lanes)
    for policy, at in zip(plan.policies, plan.lane_of, strict=True):
        totals = collections[at].totals(seen[at])
        seen[at] += 1
        items = plan.lanes[at].items
        judged = policy.judge(items, totals)
        judged = Judgements(label=judged.label.copy(), score=judged.score)
        gone = (judged.label == CLEAN) & gap.hides
        reasons.append(_reasons(policy, items, totals, judged, gap))
        label = np.where(gone, NOT_CHECKABLE, judged.label).astype(np.int8)
        for name, values in _figures(items, totals, label, judged, documents).items():
            numbers.setdefault(name, []).append(values)
    flat = {name: np.stack(values, axis=1).reshape(-1) for name, values in numbers.items()}
    item = np.repeat(np.arange(n_items), n_policies)
    policies = [policy.spec.id for policy in plan.policies]
    document = flat["document"]
    return {
        "benchmark": Repeated([one.benchmark for one in plan.items], item),
        "split": Repeated([one.split for one in plan.items], item),
        "item_id": Repeated([one.item_id for one in plan.items], item),
        "policy": Repeated(policies, np.tile(np.arange(n_policies), n_items)),
        "label": Repeated(LABELS, flat["label"]),
        "score": flat["score"],
        "exposure": Repeated(EXPOSURES, flat["exposure"]),
        "kind": Repeated(KINDS, flat["kind"]),
        "n_documents": flat["n_documents"],
        "n_occurrences": flat["n_occurrences"],
        "best_document_id": Repeated(documents.document_id, document),
        "best_shard": Repeated(documents.shard, document),
        "best_row": flat["best_row"],
        "best_url": Repeated(documents.url, document),
        "best_date": Repeated(documents.date, document),
        "reason": [text for texts in zip(*reasons, strict=True) for text in texts],
    }


def _figures(
    items: LaneItems, totals: Totals, label: Int8s, judged: Judgements, documents: Documents
) -> dict[str, NDArray[np.generic]]:
    """Everything of one policy's verdicts but the reasons, arrays of n items."""
    best = totals.best_pair
    exposure = exposures(best)
    asked = (exposure == QUESTION_ONLY) | (exposure == QUESTION_AND_ANSWER)
    exposure[asked & (label == CLEAN)] = NONE
    return {
        "label": label,
        "score": np.where(label == NOT_CHECKABLE, np.nan, judged.score),
        "exposure": exposure,
        "kind": kinds(best, exposure, items.n_tokens),
        "n_documents": totals.n_documents,
        "n_occurrences": totals.n_occurrences,
        "document": documents.at(best.shard, best.row),
        "best_row": best.row,
    }


def _reasons(
    policy: Policy, items: LaneItems, totals: Totals, judged: Judgements, gap: Gap
) -> list[str]:
    clean = judged.label == CLEAN
    usual = gap.text if gap.hides else _NOTHING
    after = f"; {gap.text}, which was allowed" if gap.allowed else ""
    reasons = [usual + after] * items.n_items
    own = ~clean if gap.hides else ~clean | (totals.best_pair.item >= 0)
    for i in np.flatnonzero(own).tolist():
        text = policy.reason(items, totals, judged, i)
        reasons[i] = text + after if clean[i] else text
    return reasons
