"""Judge the items, and make the columns of verdicts and of evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contam.benchmark.items import PARTS, ItemName
from contam.detect.judge import judge, unanswered
from contam.detect.labels import CLEAN, LABELS
from contam.detect.match.spans import spans_of
from contam.detect.policies.exposure import (
    EXPOSURES,
    KINDS,
    NONE,
    QUESTION_AND_ANSWER,
    QUESTION_ONLY,
    exposures,
    kinds,
)
from contam.detect.sources import first_tokens
from contam.tables.schemas import Repeated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.benchmark.item_table import ItemTable
    from contam.corpus.coverage import Coverage
    from contam.detect.judge import Missed, Verdicts
    from contam.detect.match.collect import Collection
    from contam.detect.match.token_view import TokenView
    from contam.detect.model import Float64s, Matches, Totals, ViewItems
    from contam.detect.plan import Plan
    from contam.detect.sources import Documents, Sources
    from contam.tables.schemas import Column

# By the codes of `contam.kernels.match_rows`: AS_LETTER, AS_NUMBER.
_MARKS = ("letter", "number")


def verdict_columns(
    plan: Plan,
    coverage: Coverage,
    collections: Sequence[Collection],
    documents: Documents,
    missed: Missed,
) -> dict[str, Column]:
    """The columns of `contam.detect.result.VERDICTS`: item by item, policies as asked.

    coverage   of the documents that were searched;  collections  what was found, one a view
    documents  those that verdicts and evidence name;  missed  what the search cannot promise
    """
    numbers, reasons = _verdicts(plan, coverage, collections, documents, missed)
    n_items, n_policies = len(plan.items), len(plan.policies)
    policies = [policy.spec.id for policy in plan.policies]
    document = numbers["document"]
    return {
        **_names(plan, np.repeat(np.arange(n_items, dtype=np.int32), n_policies)),
        "policy": Repeated(policies, np.tile(np.arange(n_policies, dtype=np.int16), n_items)),
        "label": Repeated(LABELS, numbers["label"]),
        "score": numbers["score"],
        "exposure": Repeated(EXPOSURES, numbers["exposure"]),
        "kind": Repeated(KINDS, numbers["kind"]),
        "n_documents": numbers["n_documents"],
        "n_occurrences": numbers["n_occurrences"],
        "best_document_id": Repeated(documents.document_id, document),
        "best_shard": Repeated(documents.shard, document),
        "best_row": numbers["best_row"],
        "best_url": Repeated(documents.url, document),
        "best_date": Repeated(documents.date, document),
        "reason": reasons,
    }


def evidence_columns(
    plan: Plan, sources: Sources, collections: Sequence[Collection], documents: Documents
) -> dict[str, Column]:
    """The columns of `contam.tables.schemas.EVIDENCE`: by item, view and rank of the document.

    Millions of rows: what a row has from its item or document is looked up when it is written.
    """
    near = any(sources.near(collection.evidence()[0]).any() for collection in collections)
    flat = _joined(
        [
            _view_evidence(plan.items, sources, (view, collection), documents, near=near)
            for view, collection in zip(plan.views, collections, strict=True)
        ]
    )
    item, document, mark = flat.pop("item"), flat.pop("document"), flat.pop("mark")
    columns: dict[str, Column] = {
        **flat,
        **_names(plan, item),
        "part": Repeated(PARTS, flat["part"]),
        "answer_mark": Repeated(_MARKS, mark),
        "document_id": Repeated(documents.document_id, document),
        "shard": Repeated(documents.shard, document),
        "row": Repeated(documents.row, document),
        "url": Repeated(documents.url, document),
        "date": Repeated(documents.date, document),
        "source": Repeated(documents.source, document),
    }
    if not near:
        columns["similarity"] = Repeated((), np.full(len(item), -1, np.int8))
    return columns


def _names(plan: Plan, item: NDArray[Any]) -> dict[str, Column]:
    """The columns that name the item of each row; item  its number."""
    return {name: Repeated(plan.items.column(name), item) for name in ItemName._fields}


def _verdicts(
    plan: Plan,
    coverage: Coverage,
    collections: Sequence[Collection],
    documents: Documents,
    missed: Missed,
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Arrays of the verdicts, and their reasons: item by item, policies as asked."""
    incomplete = {i: why for i, why in enumerate(plan.items.column("incomplete")) if why}
    numbers: dict[str, list[NDArray[np.generic]]] = {}
    reasons: list[list[str]] = []
    seen = [0] * len(plan.views)
    for number, (policy, at) in enumerate(zip(plan.policies, plan.view_of, strict=True)):
        totals = collections[at].totals(seen[at])
        seen[at] += 1
        items = plan.views[at].items
        if missed.unanswered:
            verdicts = unanswered(items.n_items, missed.unanswered)
        else:
            doubts = {**incomplete, **missed.of(number)}
            allowed = plan.parameters.allow_missing
            verdicts = judge(policy, items, totals, doubts, coverage, allow_missing=allowed)
        reasons.append(verdicts.reasons)
        for name, values in _figures(items, totals, verdicts, documents).items():
            numbers.setdefault(name, []).append(values)
    # Column by column, and each is let go: never is all of it there twice.
    flat = {name: np.stack(numbers.pop(name), axis=1).reshape(-1) for name in list(numbers)}
    return flat, [text for texts in zip(*reasons, strict=True) for text in texts]


def _figures(
    items: ViewItems, totals: Totals, verdicts: Verdicts, documents: Documents
) -> dict[str, NDArray[np.generic]]:
    """Everything of one policy's verdicts but the reasons, arrays of n items."""
    best = totals.best_match
    exposure = exposures(best)
    asked = (exposure == QUESTION_ONLY) | (exposure == QUESTION_AND_ANSWER)
    exposure[asked & (verdicts.label == CLEAN)] = NONE
    return {
        "label": verdicts.label,
        "score": verdicts.score,
        "exposure": exposure,
        "kind": kinds(best, exposure, items.n_tokens),
        "n_documents": totals.n_documents,
        "n_occurrences": totals.n_occurrences,
        "document": documents.at(best.shard, best.row),
        "best_row": best.row,
    }


def _joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The rows of all views by item; a column is let go once it is in its place."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([part["item"] for part in parts]), kind="stable")
    return {
        name: np.concatenate([part.pop(name) for part in parts])[order] for name in list(parts[0])
    }


def _view_evidence(
    items: ItemTable,
    sources: Sources,
    found: tuple[TokenView, Collection],
    documents: Documents,
    *,
    near: bool,
) -> dict[str, NDArray[Any]]:
    """Columns of one view's rows; near  whether any row of any view has a similarity to tell."""
    view, collection = found
    matches, pieces = collection.evidence()
    owner = pieces.match
    item = matches.item[owner]
    first = view.items.token_start[item, pieces.part] + pieces.item_token
    spans = spans_of(items, view, np.concatenate([first, first + pieces.length - 1]))
    return {
        "item": item,
        "document": documents.at(matches.shard, matches.row).astype(np.int32)[owner],
        "part": pieces.part,
        "alignment": np.maximum(pieces.alignment, 0),
        "mark": np.where(pieces.alignment < 0, -1 - pieces.alignment, -1).astype(np.int8),
        "item_start": spans[: len(first), 0].copy(),
        "item_end": spans[len(first) :, 1].copy(),
        "document_start": pieces.start,
        "document_end": pieces.end,
        "document_token": first_tokens(
            sources, matches.shard[owner], matches.row[owner], pieces.start
        ),
        "n_tokens": pieces.length,
        **({"similarity": _similarity(sources, matches)[owner, pieces.part]} if near else {}),
    }


def _similarity(sources: Sources, matches: Matches) -> Float64s:
    """How much of each part its document holds, float64[m, 4]; NaN unless a sketch led there."""
    held: Float64s = matches.coverage.astype(np.float64).round(4)
    held[~sources.near(matches)] = np.nan
    return held
