"""An item as people read it: documents beside it, with what matches marked."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from contam.benchmark.items import PARTS
from contam.detect.show.marks import Mark, mark
from contam.detect.show.side_by_side import mark_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contam.benchmark.items import BenchItem
    from contam.detect.show.side_by_side import DocumentMatch, ItemView

    Row = dict[str, Any]

CONTEXT: Final = 200
"""Characters of a document around each run, for who may read documents."""

_ITEM_CONTEXT: Final = 600
_MOST_DOCUMENTS: Final = 10
_LONG: Final = 4000
_KEPT: Final = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBeside:
    """One part of the item beside one document.

    n_tokens    tokens of the runs that match;  turn  of a conversation, in which they begin
    similarity  where runs were not looked for: how much the two share
    mark        "letter" or "number" where the document names the right choice by it; else ""
    document    empty where the document's text is not shown
    """

    part: str
    n_tokens: int
    verified: bool
    similarity: float | None
    item: tuple[Mark, ...]
    document: tuple[Mark, ...]
    turn: str | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentBeside:
    """A document, and what it shares with each part of the item.

    link    its address, if following it does no more than that
    column  the column its text stands in, where that is not the one its shard is read from
    gone    its shard cannot be read any more as it was
    """

    document_id: str
    shard: str
    row: int
    url: str | None
    link: str | None
    date: str | None
    source: str | None
    parts: tuple[PartBeside, ...]
    column: str | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The documents that share something with an item, and how many more were found."""

    documents: tuple[DocumentBeside, ...]
    n_more: int


def beside(item: BenchItem, evidence: Sequence[Row]) -> Beside:
    """An item beside the first documents of its evidence, as `/v1/check` gives it."""
    places: dict[tuple[str, int], list[Row]] = {}
    for row in evidence:
        places.setdefault((row["shard"], row["row"]), []).append(row)
    shown = list(places.values())[:_MOST_DOCUMENTS]
    return Beside(
        documents=tuple(_document(item, rows) for rows in shown),
        n_more=len(places) - len(shown),
    )


def to_review(view: ItemView) -> Beside:
    """An item beside the documents that a reader is shown of it."""
    return Beside(
        documents=tuple(_to_review(one) for one in view.documents), n_more=view.n_more_documents
    )


def whole(text: str) -> tuple[Mark, ...]:
    """A text without marks; of a very long one the middle is left out."""
    return _bounded((Mark("text", text),))


def _to_review(document: DocumentMatch) -> DocumentBeside:
    return DocumentBeside(
        document_id=document.document_id,
        shard=document.shard,
        row=document.row,
        url=document.url,
        link=_link(document.url),
        date=document.date,
        source=document.source,
        column=document.column,
        # Why is told in words that name files of this machine.
        gone=document.problem is not None,
        parts=tuple(
            PartBeside(
                part=one.part,
                n_tokens=one.n_tokens,
                verified=one.verified,
                similarity=None,
                item=_bounded(one.item),
                document=_bounded(one.document),
                turn=one.turn,
                mark=one.mark,
            )
            for one in document.parts
        ),
    )


def _document(item: BenchItem, rows: list[Row]) -> DocumentBeside:
    first = rows[0]
    parts = {
        name: list(found)
        for name, found in groupby(
            sorted(rows, key=lambda row: PARTS.index(row["part"])), key=lambda row: row["part"]
        )
    }
    return DocumentBeside(
        document_id=first["document_id"],
        shard=first["shard"],
        row=first["row"],
        url=first["url"],
        link=_link(first["url"]),
        date=first["date"],
        source=first["source"],
        parts=tuple(_part(item, name, found) for name, found in parts.items()),
    )


def _part(item: BenchItem, name: str, rows: list[Row]) -> PartBeside:
    spans = [(row["item_start"], row["item_end"]) for row in rows if not row["answer_mark"]]
    shares = [row["similarity"] for row in rows if row["similarity"] is not None]
    return PartBeside(
        part=name,
        n_tokens=sum(row["n_tokens"] for row in rows),
        verified=all(row["verified"] for row in rows),
        similarity=max(shares, default=None),
        item=_bounded(mark(item.part_text(name), spans, _ITEM_CONTEXT)),
        document=_bounded(_in_document(rows)),
        mark=mark_of(rows),
    )


def _in_document(rows: Sequence[Row]) -> list[Mark]:
    """What is known of the document, in its order: runs, what stands around them, and gaps.

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


def _bounded(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """The same marks; of a very long one the middle is left out."""
    found: list[Mark] = []
    for one in marks:
        if len(one.text) <= _LONG:
            found.append(one)
            continue
        found += [
            Mark(one.kind, one.text[:_KEPT]),
            Mark("gap", "", len(one.text) - 2 * _KEPT),
            Mark(one.kind, one.text[-_KEPT:]),
        ]
    return tuple(found)


def _link(url: str | None) -> str | None:
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None
