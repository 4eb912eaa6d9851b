"""Lay out flagged items with their evidence side by side, in pages that open one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.corpus.dates import CLASSES, class_of
from contam.detect.show.choose import Choice, flagged_items
from contam.detect.show.highlights import shortened
from contam.detect.show.side_by_side import view_items

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.audit.chance.qvalues import QValues
    from contam.benchmark.items import ItemName
    from contam.detect.report import Report
    from contam.detect.show.highlights import Mark
    from contam.detect.show.side_by_side import DocumentMatch, ItemView, PartMatch

    Tree = dict[str, Any]

PAGE_ITEMS: Final = 50
"""Items in one page of evidence; a page is read when one of its items is opened."""

_MANY: Final = 1_000


def make_pages(
    report: Report,
    released: Mapping[str, str] | None,
    waived: Mapping[tuple[str, str, str], str],
    chance: QValues | None,
    *,
    keys: Sequence[ItemName] | None = None,
    choice: Choice | None = None,
    max_documents: int | None = None,
) -> tuple[list[Tree], list[list[Tree]]]:
    """(rows of the list of items, pages of evidence in the order of the rows).

    released  day each benchmark came out, by name; None: dates of documents are not judged
    waived    (benchmark, split, item id) -> why a reviewer waived it
    chance    what decoys say of every item and policy
    keys      the items to list; None: all that are flagged
    choice    as which they were chosen: whose verdicts and documents are shown
    max_documents  shown beside each item

    Documents are read again from the corpora; one that cannot be says so. Of many flagged items
    only the best document is shown: all of them are in evidence.parquet. Where the result keeps no
    texts no document is quoted either: what matches there is the text of the item.
    """
    keys = flagged_items(report) if keys is None else keys
    choice = choice or Choice()
    most = max_documents or (3 if len(keys) <= _MANY else 1)
    quoting = bool(report.run["parameters"]["keep_text"])
    rows: list[Tree] = []
    pages: list[list[Tree]] = []
    views = view_items(
        report, keys, policy=choice.policy, max_documents=most, sources=choice.sources
    )
    for number, view in enumerate(views):
        if number % PAGE_ITEMS == 0:
            pages.append([])
        day = released.get(view.key.benchmark) if released else None
        rows.append({**_row(view, day, chance, choice), "waived": waived.get(view.key, "")})
        pages[-1].append(
            {
                "reasons": {
                    verdict.policy: f"{verdict.label}: {verdict.reason}"
                    for verdict in view.verdicts
                },
                "chance": {
                    verdict.policy: chance.describe(*view.key, verdict.policy)
                    for verdict in view.verdicts
                    if chance is not None and verdict.flagged
                },
                "documents": [
                    _document(document, day, quoting=quoting) for document in view.documents
                ],
                "more": view.n_more_documents,
            }
        )
    return rows, pages


def _row(view: ItemView, released: str | None, chance: QValues | None, choice: Choice) -> Tree:
    """What the list shows of one item: the facts of the first verdict that was chosen."""
    first = next(verdict for verdict in view.verdicts if choice.takes(verdict))
    kinds = [class_of(document.date, released) for document in view.documents]
    q = chance.of(*view.key, first.policy) if chance else None
    return {
        "benchmark": view.key.benchmark,
        "split": view.key.split,
        "item": view.key.item_id,
        "labels": {verdict.policy: verdict.label for verdict in view.verdicts},
        "score": None if first.score is None else round(first.score, 4),
        "q": None if q is None else round(q, 6),
        "exposure": first.exposure,
        "kind": first.kind or "",
        "documents": first.n_documents,
        "source": next((document.source or document.url or "" for document in view.documents), ""),
        "date": min(kinds, key=CLASSES.index) if kinds else CLASSES[-1],
    }


def _document(document_match: DocumentMatch, released: str | None, *, quoting: bool) -> Tree:
    return {
        "id": document_match.document_id,
        "shard": document_match.shard,
        "row": document_match.row,
        "url": document_match.url or "",
        "date": document_match.date or "",
        "dated": class_of(document_match.date, released),
        "source": document_match.source or "",
        "problem": document_match.problem or "",
        "parts": [_part(part, quoting=quoting) for part in document_match.parts],
    }


def _part(part_match: PartMatch, *, quoting: bool) -> Tree:
    return {
        "part": part_match.part,
        "tokens": part_match.n_tokens,
        "verified": part_match.verified,
        "mark": part_match.mark,
        "item": _marks(part_match.item),
        "document": _marks(part_match.document) if quoting else [],
    }


def _marks(marks: tuple[Mark, ...]) -> list[list[Any]]:
    """["match" | "text", text] or ["gap", characters]."""
    return [
        [mark.kind, mark.n_left_out if mark.kind == "gap" else mark.text]
        for mark in shortened(marks)
    ]
