"""Show item and document side by side, with the matches marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.items import PARTS, ItemName
from contam.detect.policies.verdict import Verdict
from contam.detect.show.choose import source_of
from contam.detect.show.highlights import Mark, mark, tokens_in_common, units_of
from contam.detect.show.reread import Library, Place
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contam.corpus.formats.base import Document
    from contam.detect.report import Report
    from contam.tables.schemas import Table

# Code points shown around a match; the item's side shows more, it is what was asked about.
_DOCUMENT_CONTEXT: Final = 160
_ITEM_CONTEXT: Final = 600
# Documents are read again in this many items at a time, so that memory stays bounded.
_CHUNK_ITEMS: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class PartMatch:
    """One part of the item beside one document. An empty side means that its text is not there.

    n_tokens  tokens of the part that match;  turn  of a conversation, in which they begin
    token     of a shard of token ids, at which they begin
    mark      "letter" or "number" where the document names the right choice by it; else ""
    """

    part: str
    n_tokens: int
    mark: str
    turn: str | None
    token: int | None
    item: tuple[Mark, ...]
    document: tuple[Mark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMatch:
    """All that one document shares with an item.

    column   the column its text stands in, where that is not the one its shard is read from
    problem  why its text cannot be shown
    """

    document_id: str
    shard: str
    row: int
    url: str | None
    date: str | None
    source: str | None
    column: str | None
    problem: str | None
    parts: tuple[PartMatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemView:
    """One item, what the policies say of it, and its best documents.

    texts                part -> text; empty when the texts were kept out of the result
    n_more_documents     documents with evidence that are not in `documents`
    """

    key: ItemName
    verdicts: tuple[Verdict, ...]
    texts: dict[str, str]
    documents: tuple[DocumentMatch, ...]
    n_more_documents: int


def view_items(
    report: Report,
    keys: Sequence[ItemName],
    *,
    policy: str | None = None,
    max_documents: int = 3,
    sources: Sequence[str] = (),
) -> Iterator[ItemView]:
    """The items in the order given, each beside its best `max_documents` documents.

    sources  of the documents (`contam.detect.show.choose.source_of`); none means all
    max_documents 0 reads nothing again.

    Document texts are read again from the shards of the run. A shard that is gone, unreadable or
    no longer the one scanned is not an error: its documents say so in `problem`.
    """
    library = Library(report.run, report.folder)
    units = units_of(report.run)
    tables = {
        name: _RowsByItem(getattr(report, name), keys) for name in ("verdicts", "items", "evidence")
    }
    for start in range(0, len(keys), _CHUNK_ITEMS):
        yield from _view_chunk(
            tables,
            library,
            units,
            keys[start : start + _CHUNK_ITEMS],
            policy,
            max_documents,
            sources,
        )


class _RowsByItem:
    """Where in a table the rows of each item stand."""

    def __init__(self, table: Table, keys: Sequence[ItemName]) -> None:
        self._table = table
        self._places: dict[ItemName, list[int]] = {key: [] for key in keys}
        columns = (schemas.column(table, name) for name in ItemName._fields)
        for at, key in enumerate(zip(*columns, strict=True)):
            # A plain tuple is equal to the key it spells.
            places = self._places.get(key)  # type: ignore[call-overload] # see above
            if places is not None:
                places.append(at)

    def of(self, keys: Sequence[ItemName]) -> dict[ItemName, list[dict[str, Any]]]:
        """The rows of these items, in table order."""
        places = [self._places[key] for key in keys]
        rows = iter(schemas.rows(schemas.take(self._table, [at for own in places for at in own])))
        return {key: [next(rows) for _ in own] for key, own in zip(keys, places, strict=True)}


def _view_chunk(
    tables: dict[str, _RowsByItem],
    library: Library,
    units: Sequence[str],
    keys: Sequence[ItemName],
    policy: str | None,
    max_documents: int,
    sources: Sequence[str],
) -> Iterator[ItemView]:
    verdicts, items = tables["verdicts"].of(keys), tables["items"].of(keys)
    evidence = {
        key: _by_document(
            row for row in rows if not sources or source_of(row["source"], row["url"]) in sources
        )
        for key, rows in tables["evidence"].of(keys).items()
    }
    shown = {key: list(documents)[:max_documents] for key, documents in evidence.items()}
    library.fetch(place for places in shown.values() for place in places)
    for key in keys:
        own = _Own.of(items[key], units)
        yield ItemView(
            key=key,
            verdicts=tuple(
                verdict
                for verdict in (Verdict(**row) for row in verdicts[key])
                if policy in {None, verdict.policy}
            ),
            texts=own.texts,
            documents=tuple(
                _document(evidence[key][place], own, library, place) for place in shown[key]
            ),
            n_more_documents=len(evidence[key]) - len(shown[key]),
        )


@dataclass(frozen=True, slots=True)
class _Own:
    """An item's texts, as far as they are known, and their sizes in the first of the units."""

    texts: dict[str, str]
    sizes: Mapping[str, int | None]
    units: Sequence[str]

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]], units: Sequence[str]) -> _Own:
        if not rows:
            return cls({}, {}, units)
        sizes = {part: rows[0].get(f"{part}_tokens") for part in PARTS}
        return cls(_part_texts(rows[0]), sizes, units)


def _document(
    rows: list[dict[str, Any]], own: _Own, library: Library, place: Place
) -> DocumentMatch:
    first = rows[0]
    document = library.document(place)
    return DocumentMatch(
        document_id=first["document_id"],
        shard=first["shard"],
        row=first["row"],
        url=first["url"],
        date=first["date"],
        source=first["source"],
        column=document.column or None if document is not None else None,
        problem=library.problem(place),
        parts=tuple(
            _part_match(part, [row for row in rows if row["part"] == part], own, document)
            for part in PARTS
            if any(row["part"] == part for row in rows)
        ),
    )


def _part_match(
    part: str,
    rows: list[dict[str, Any]],
    own: _Own,
    document: Document | None,
) -> PartMatch:
    text = own.texts.get(part)
    # A choice that is named by its letter has no text to mark.
    in_item = [(row["item_start"], row["item_end"]) for row in rows if not row["answer_mark"]]
    in_document = [(row["document_start"], row["document_end"]) for row in rows]
    tokens = [row["document_token"] for row in rows if row["document_token"] is not None]
    return PartMatch(
        part=part,
        n_tokens=tokens_in_common(rows, text, own.units, own.sizes.get(part)),
        mark=mark_of(rows),
        turn=document.turn_at(min(in_document)[0]) if document is not None else None,
        token=min(tokens, default=None),
        item=mark(text, in_item, _ITEM_CONTEXT) if text is not None else (),
        document=mark(document.text, in_document, _DOCUMENT_CONTEXT)
        if document is not None
        else (),
    )


def mark_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """The mark, "letter" or "number", by which a document names the right choice; else ""."""
    return next((str(row["answer_mark"]) for row in rows if row["answer_mark"]), "")


def _by_document(rows: Iterable[dict[str, Any]]) -> dict[Place, list[dict[str, Any]]]:
    grouped: dict[Place, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((row["shard"], row["row"]), []).append(row)
    return grouped


def _part_texts(item: dict[str, Any]) -> dict[str, str]:
    """Part -> text as the scan saw it: choices are joined by line breaks."""
    texts = {part: item[part] for part in PARTS if item[part]}
    if "choices" in texts:
        texts["choices"] = "\n".join(texts["choices"])
    return texts
