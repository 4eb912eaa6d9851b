"""Judge the items, and make the columns of verdicts and of evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from contam.benchmark.items import PARTS, ItemName
from contam.detect.corpus import first_tokens
from contam.detect.labels import CLEAN, LABELS, NOT_CHECKABLE
from contam.detect.match.token_view import in_blocks, tokens_of, variant_texts
from contam.detect.match.variants import own_spans
from contam.detect.model import N_PARTS
from contam.detect.policies.common import (
    EXPOSURES,
    KINDS,
    NONE,
    QUESTION_AND_ANSWER,
    QUESTION_ONLY,
    exposures,
    kinds,
)
from contam.facts import counted
from contam.kernels.tokenize_items import code_point_spans
from contam.tables.schemas import Repeated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.benchmark.item_table import ItemTable
    from contam.corpus.coverage import Coverage
    from contam.detect.corpus import Documents, Sources
    from contam.detect.match.collect import Collection
    from contam.detect.match.token_view import TokenView
    from contam.detect.model import Float64s, Int8s, Matches, Totals, ViewItems
    from contam.detect.plan import Plan
    from contam.detect.policies.policy import Policy
    from contam.tables.schemas import Column


#: Tokens whose spans are made at once.
_SPANS_AT_ONCE = 1 << 19


def spans_of(items: ItemTable, view: TokenView, tokens: NDArray[np.int64]) -> NDArray[np.int32]:
    """Code points of tokens of a view, in any order, in the texts of their parts: int32[n, 2]."""
    if view.tokenizer is not None:
        return view.points[tokens]
    spans = np.empty((len(tokens), 2), np.int32)
    order = np.argsort(tokens, kind="stable")
    for begin in range(0, len(order), _SPANS_AT_ONCE):
        some = order[begin : begin + _SPANS_AT_ONCE]
        spans[some] = _spans_by_token(items, view, tokens[some])[tokens[some]]
    return spans


def _spans_by_token(
    items: ItemTable, view: TokenView, tokens: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The same as a table of all tokens; of items and variants without `tokens` all is 0.

    What is not asked for takes no memory.
    """
    begin, n, code = view.part_start[::N_PARTS], len(items), view.spec.unit
    result = np.zeros((int(begin[-1]), 2), np.int32)
    asked = np.unique(np.searchsorted(begin, tokens, side="right") - 1)

    def fill(rows: NDArray[np.int64], spans: list[NDArray[np.int32]]) -> None:
        """Put the spans of these items or variants, behind each other, in their places."""
        length = begin[rows + 1] - begin[rows]
        moved = np.repeat(begin[rows] - (np.cumsum(length) - length), length)
        result[moved + np.arange(len(moved))] = np.concatenate(spans)

    own = asked[asked < n]
    if len(own):
        fill(own, [spans for spans, _ in _points(items.take(own), code)])
    owner = np.empty(0, np.int32) if view.variants is None else view.variants.owner
    owners = np.unique(owner[asked[asked >= n] - n]).astype(np.int64)
    if len(owners):
        # Their blocks are others than those of all items: an item's variants keep their order.
        chosen = items.take(owners)
        counts = [of_block for _, of_block in _points(chosen, code)]
        blocks = [*variant_texts(chosen, counts)]
        found = np.argsort([one.owner for some, _ in blocks for one in some], kind="stable")
        rows = np.flatnonzero(np.isin(owner, owners))
        placed = np.empty_like(rows)
        placed[found] = n + rows[np.argsort(owner[rows], kind="stable")]
        fill(placed, [own_spans(texts) for _, texts in blocks])
    return result


def _points(items: ItemTable, code: int) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """Code points of the tokens of each block of items, and how many each part has."""
    for some in in_blocks(items):
        data, offsets = some.part_texts()
        _, spans, starts = tokens_of(data, offsets, code, None)
        yield code_point_spans(data, offsets, starts, spans), np.diff(starts)


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
            for i in missed.of(number):
                if verdicts.label[i] not in (CLEAN, NOT_CHECKABLE):
                    verdicts.reasons[i] += _AT_LEAST
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


_AT_LEAST: Final = "; the counts are at least so many, as the index may have missed documents"
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
