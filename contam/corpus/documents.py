"""Second look at a few documents: who they are, what they say, and which turn of a chat."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from contam.corpus import jsonl
from contam.corpus.columns import METADATA_NAMES, MetadataField, Selection
from contam.corpus.shards import errors_named
from contam.errors import ShardError
from contam.tables import lookup
from contam.tables.chat import Turn, turn_at
from contam.tables.json_text import at_path, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contam.corpus.shards import Shard
    from contam.tables.columns import ColumnRef
    from contam.tables.record import Found

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DocumentMeta:
    """What the corpus says about one document.

    document_id  the id column as text; "" when there is none (say shard and row instead)
    date         as the corpus writes it; a time stamp column in ISO form
    """

    document_id: str
    url: str | None
    date: str | None
    source: str | None
    language: str | None


def read_metadata(shard: Shard, selection: Selection, rows: Sequence[int]) -> list[DocumentMeta]:
    """Return the metadata of `rows`, in the order asked; reads no text column.

    Raises ShardError when the shard cannot be read or has no such row.
    """
    refs = [ref for name in METADATA_NAMES for ref in selection.metadata.get(name, ())]
    if not refs:
        return [DocumentMeta("", None, None, None, None) for _ in rows]

    def look(wanted: list[int]) -> Iterator[tuple[int, DocumentMeta]]:
        if shard.format == "jsonl":
            for row, record in jsonl.records(shard.path, wanted):
                yield row, _meta(selection, {ref: at_path(record, ref.path) for ref in refs})
        else:
            for row, values in lookup.values(shard.path, table_format(shard), refs, wanted):
                yield row, _meta(selection, dict(zip(refs, values, strict=True)))

    return _in_order(shard, rows, look)


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it was searched.

    column  the column it was read from when the shard's first one held no text; else ""
    turns   what the text is joined from, in order; None for plain text
    """

    text: str
    column: str = ""
    turns: tuple[Turn, ...] | None = None

    def turn_at(self, char: int) -> str | None:
        """Name the turn that code point `char` lies in: "3:assistant", counted from 0.

        None when the document is no conversation or the position is past its end.
        """
        return turn_at(self.turns, char) if self.turns is not None else None


def read_documents(shard: Shard, selection: Selection, rows: Sequence[int]) -> list[Document]:
    """Return the documents of `rows`, in the order asked: the same texts that `read_unit` gave.

    Raises ShardError when the shard cannot be read or has no such row.
    """
    return _documents(shard, selection, rows, with_turns=True)


def read_texts(shard: Shard, selection: Selection, rows: Sequence[int]) -> list[str]:
    """Return the texts of `rows`, in the order asked: the same text that `read_unit` gave.

    Raises ShardError when the shard cannot be read or has no such row.
    """
    return [one.text for one in _documents(shard, selection, rows, with_turns=False)]


def _documents(
    shard: Shard, selection: Selection, rows: Sequence[int], *, with_turns: bool
) -> list[Document]:
    sources = selection.sources
    if sources is None:
        raise ShardError(f"{shard.name}: has no documents", shard=shard.name)

    def look(wanted: list[int]) -> Iterator[tuple[int, Document]]:
        if shard.format == "jsonl":
            for row, one in jsonl.documents(shard.path, sources, wanted):
                yield row, _document(one)
            return
        found: dict[int, Document] = {}
        for ref in sources.every:
            left = [row for row in wanted if row not in found or _is_blank(found[row].text)]
            if not left:
                break
            column = "" if ref is sources.first else ref.dotted
            for row, text, turns in lookup.documents(
                shard.path, table_format(shard), ref, left, with_turns=with_turns
            ):
                if not (column and _is_blank(text)):
                    found[row] = Document(text, column, None if turns is None else tuple(turns))
        yield from found.items()

    return _in_order(shard, rows, look)


def _document(found: Found) -> Document:
    turns = found.turns
    if turns is not None:
        turns = [Turn(turn.role, clean(turn.text)[0].decode()) for turn in turns]
    return Document(
        (found.text or b"").decode(), found.column, None if turns is None else tuple(turns)
    )


def table_format(shard: Shard) -> lookup.TableFormat:
    """Say how the tables of a shard that is no JSONL are stored."""
    return "parquet" if shard.format == "parquet" else "arrow"


def _is_blank(text: str) -> bool:
    return not text or (text.isascii() and text.isspace())


def _in_order(
    shard: Shard, rows: Sequence[int], look: Callable[[list[int]], Iterator[tuple[int, T]]]
) -> list[T]:
    with errors_named(shard):
        found = dict(look(sorted(set(rows))))
    missing = next((row for row in rows if row not in found), None)
    if missing is not None:
        raise ShardError(
            f"{shard.name}: row {missing} is not there",
            shard=shard.name,
            hint="the file may have changed since it was scanned",
        )
    return [found[row] for row in rows]


def _meta(selection: Selection, values: Mapping[ColumnRef, object]) -> DocumentMeta:
    def first(name: MetadataField) -> str | None:
        texts = (as_text(values[ref]) for ref in selection.metadata.get(name, ()))
        return next((text for text in texts if text), None)

    return DocumentMeta(
        first("id") or "", first("url"), first("date"), first("source"), first("language")
    )


def as_text(value: object) -> str | None:
    """Write a column's value as text; lists and structs say nothing here."""
    if isinstance(value, str):
        return clean(value)[0].decode()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str(value)
