"""Lay out an item beside its documents, with the matches marked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.items import PARTS
from contam.detect.show.highlights import Mark, mark, shortened
from contam.detect.show.in_common import tokens_in_common
from contam.detect.show.side_by_side import DocumentMatch, PartMatch, mark_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.benchmark.items import BenchItem
    from contam.detect.show.side_by_side import ItemView

    Row = dict[str, Any]

CONTEXT: Final = 200
"""Characters of a document around each run, for who may read documents."""

_ITEM_CONTEXT: Final = 600
_MOST_DOCUMENTS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPart(PartMatch):
    """A part as a check found it.

    similarity  where runs were not looked for: how much the two share
    """

    similarity: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemComparison:
    """The documents that share something with an item, and how many more were found."""

    documents: tuple[DocumentMatch, ...]
    n_more: int


def compare_item(item: BenchItem, evidence: Sequence[Row], unit: str) -> ItemComparison:
    """Compare an item with the first documents of its evidence, as `/v1/check` gives it.

    unit  of the index: "word", "char" or another for tokens of a tokenizer file
    """
    places: dict[tuple[str, int], list[Row]] = {}
    for row in evidence:
        places.setdefault((row["shard"], row["row"]), []).append(row)
    shown = list(places.values())[:_MOST_DOCUMENTS]
    return ItemComparison(
        documents=tuple(_document(item, rows, unit) for rows in shown),
        n_more=len(places) - len(shown),
    )


def to_review(view: ItemView) -> ItemComparison:
    """Compare an item with the documents that a reader is shown.

    Of a document that cannot be read, the page does not say why: that names files of this machine.
    """
    documents = (
        replace(
            document,
            parts=tuple(
                replace(part, item=shortened(part.item), document=shortened(part.document))
                for part in document.parts
            ),
        )
        for document in view.documents
    )
    return ItemComparison(documents=tuple(documents), n_more=view.n_more_documents)


def whole(text: str) -> tuple[Mark, ...]:
    """A text without marks; of a very long one the middle is left out."""
    return shortened((Mark("text", text),))


def _document(item: BenchItem, rows: list[Row], unit: str) -> DocumentMatch:
    first = rows[0]
    parts = {
        name: list(found)
        for name, found in groupby(
            sorted(rows, key=lambda row: PARTS.index(row["part"])), key=lambda row: row["part"]
        )
    }
    return DocumentMatch(
        document_id=first["document_id"],
        shard=first["shard"],
        row=first["row"],
        url=first["url"],
        date=first["date"],
        source=first["source"],
        column=None,
        problem=None,
        parts=tuple(_part(item, name, found, unit) for name, found in parts.items()),
    )


def _part(item: BenchItem, name: str, rows: list[Row], unit: str) -> CheckedPart:
    spans = [(row["item_start"], row["item_end"]) for row in rows if not row["answer_mark"]]
    text = item.part_text(name)
    shares = [row["similarity"] for row in rows if row["similarity"] is not None]
    return CheckedPart(
        part=name,
        n_tokens=tokens_in_common(rows, text, (unit,)),
        verified=all(row["verified"] for row in rows),
        similarity=max(shares, default=None),
        item=shortened(mark(text, spans, _ITEM_CONTEXT)),
        document=shortened(_in_document(rows)),
        mark=mark_of(rows),
        turn=None,
    )


def _in_document(rows: Sequence[Row]) -> list[Mark]:
    """What is known of the document, in its order: runs, the text around them, and gaps.

    A gap of no known length says that more comes behind.
    """
    windows: list[tuple[int, str]] = []
    spans = []
    after = ""
    for row in sorted(rows, key=lambda row: (row["document_start"], row["document_end"])):
        if row["document_text"] is None:
            continue
        before, after = row["before"] or "", row["after"] or ""
        start = row["document_start"] - len(before)
        text = before + row["document_text"] + after
        spans.append((row["document_start"], row["document_end"]))
        if windows and start <= windows[-1][0] + len(windows[-1][1]):
            begin, known = windows[-1]
            windows[-1] = (begin, known + text[begin + len(known) - start :])
        else:
            windows.append((start, text))
    marks, at = [], 0
    for begin, text in windows:
        if begin > at:
            marks.append(Mark("gap", "", begin - at))
        at = begin + len(text)
        inside = [(max(a, begin) - begin, min(b, at) - begin) for a, b in spans]
        marks += mark(text, inside, len(text))
    if len(after) == CONTEXT:
        marks.append(Mark("gap", "", 0))
    return marks
