"""Read a few documents again: their metadata, text, and turn of a chat."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np

from contam.corpus.columns import (
    METADATA_NAMES,
    MetadataField,
    Selection,
    Selections,
)
from contam.corpus.shards import errors_named, unchanged
from contam.errors import COPY_AGAIN, ShardError
from contam.files.listed import check, may_pass
from contam.tables.chat import at_path, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contam.corpus.batches import DocBatch
    from contam.corpus.columns import Selection
    from contam.corpus.formats.base import Chunk, Document
    from contam.corpus.shards import Shard
    from contam.tables.columns import ColumnRef


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DocumentMeta:
    """Metadata of one document.

    document_id  the id column as text; "" when there is none (use shard and row instead)
    date         as the corpus writes it; a time stamp column in ISO form
    lost         whether the shard cannot give it, where it gave the text
    """

    document_id: str
    url: str | None
    date: str | None
    source: str | None
    language: str | None
    lost: bool = False


LOST: Final = DocumentMeta("", None, None, None, None, lost=True)


def metadata_or_lost(shard: Shard, selection: Selection, rows: Sequence[int]) -> list[DocumentMeta]:
    """What `read_metadata` gives, and `LOST` for documents of which it is damaged.

    Which ones these are does not depend on what else is asked for. Raises ShardError for a shard
    that is not as it was listed, or that its store does not give.
    """
    try:
        return read_metadata(shard, selection, rows)
    except ShardError as error:
        check(shard.path)
        if may_pass(error):
            raise  # another row group would have to wait for its store, too
    found: dict[int, DocumentMeta] = {}
    for some in _by_row_group(shard, selection, sorted(set(rows))):
        try:
            with unchanged(shard) as one:
                found.update(_metadata(one, selection, some))
        except ShardError as error:
            # The row group was read up to what is damaged.
            if may_pass(error):
                raise
    return [found.get(row, LOST) for row in rows]


def _by_row_group(shard: Shard, selection: Selection, rows: list[int]) -> list[list[int]]:
    """The rows, ascending, of each part of a shard that is read by itself."""
    groups = selection.text and shard.kind.row_groups(shard.path, selection.text)
    if not groups:
        return [rows]
    ends = list(accumulate(group.n_rows for group in groups))
    return [list(some) for _, some in groupby(rows, key=lambda row: bisect_right(ends, row))]


def read_metadata(shard: Shard, selection: Selection, rows: Sequence[int]) -> list[DocumentMeta]:
    """Return the metadata of `rows`, in the order asked; reads no text column.

    Raises ShardError when the shard cannot be read or has no such row.
    """
    if not any(selection.metadata.values()):
        return [DocumentMeta("", None, None, None, None) for _ in rows]
    return _in_order(shard, rows, lambda one, wanted: _metadata(one, selection, wanted))


def _metadata(
    shard: Shard, selection: Selection, rows: list[int]
) -> Iterator[tuple[int, DocumentMeta]]:
    refs = [ref for name in METADATA_NAMES for ref in selection.metadata.get(name, ())]
    for row, values in shard.kind.values(shard.path, refs, rows):
        yield row, _meta(selection, values)


def meta_of(record: Mapping[str, object], selections: Selections, shard: int) -> DocumentMeta:
    """What `read_metadata` gives for a document of this shard that was read from a record."""
    selection = selections[shard]
    if selection is None:
        return DocumentMeta("", None, None, None, None)
    refs = {ref for name in METADATA_NAMES for ref in selection.metadata.get(name, ())}
    return _meta(selection, {ref: at_path(record, ref.path) for ref in refs})


def read_documents(shard: Shard, selection: Selection, rows: Sequence[int]) -> list[Document]:
    """Return the documents of `rows`, in the order asked: the same texts that `read_chunk` gave.

    Raises ShardError when the shard cannot be read or has no such row.
    """
    sources = selection.sources
    if sources is None:
        raise ShardError("{shard}: has no documents", shard=shard.name)

    def look(shard: Shard, wanted: list[int]) -> Iterator[tuple[int, Document]]:
        return shard.kind.documents(shard.path, sources, wanted)

    return _in_order(shard, rows, look)


def _in_order(
    shard: Shard, rows: Sequence[int], look: Callable[[Shard, list[int]], Iterator[tuple[int, T]]]
) -> list[T]:
    with unchanged(shard) as one:
        found = dict(look(one, sorted(set(rows))))
    missing = next((row for row in rows if row not in found), None)
    if missing is not None:
        raise ShardError(
            "{shard}: row {} is not there", missing, shard=shard.name,
            hint="the file may have changed since it was scanned",
        )  # fmt: skip
    return [found[row] for row in rows]


def _meta(selection: Selection, values: Mapping[ColumnRef, object]) -> DocumentMeta:
    def first(name: MetadataField) -> str | None:
        for ref in selection.metadata.get(name, ()):
            if text := as_text(values[ref]):
                return text
        return None

    return DocumentMeta(
        first("id") or "", first("url"), first("date"), first("source"), first("language")
    )


def as_text(value: object) -> str | None:
    """Write a column's value as text; None for lists and structs."""
    if isinstance(value, str):
        return value if value.isascii() else clean(value)[0].decode()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str(value)


MetaColumns: TypeAlias = dict[MetadataField, list[str | None]]
"""Field of METADATA_NAMES -> its value for each document, None where there is none."""


class MetadataStream:
    """The metadata of a chunk's documents, in row order, `take(n)` after `take(n)`.

    Gives for every document what `read_metadata` gives. Reads no text column, and nothing at
    all of a shard without metadata.
    """

    def __init__(self, chunk: Chunk, shard: Shard, selection: Selection) -> None:
        self._shard = shard
        self._choices = {
            name: refs for name in METADATA_NAMES if (refs := selection.metadata.get(name))
        }
        refs = tuple(dict.fromkeys(ref for some in self._choices.values() for ref in some))
        self._blocks = shard.kind.metadata(shard.path, refs, chunk) if refs else None
        self._held: MetaColumns = {name: [] for name in self._choices}

    def take(self, n: int) -> MetaColumns:
        """The next n documents. Raises ShardError when the shard has no more or cannot be read."""
        if self._blocks is None:
            return {name: [None] * n for name in METADATA_NAMES}
        held = self._held
        while len(next(iter(held.values()))) < n:
            with errors_named(self._shard):
                block = next(self._blocks, None)
            if block is None:
                raise ShardError(
                    "{shard}: its metadata ends before its text",
                    shard=self._shard.name,
                    hint=COPY_AGAIN,
                )
            for name, refs in self._choices.items():
                held[name] += _first_texts([block[ref] for ref in refs])
        taken: MetaColumns = {name: [None] * n for name in METADATA_NAMES if name not in held}
        for name, values in held.items():
            taken[name] = values[:n]
            del values[:n]
        return taken


class SourceStream:
    """The sources of a chunk's documents, batch after batch: what `read_metadata` says of each.

    lost  whether they could not be read from here on, though the text can: they are None
    """

    def __init__(self, chunk: Chunk, shard: Shard, selection: Selection) -> None:
        self._refs = selection.metadata.get("source", ())
        self._given = chunk, shard, replace(selection, metadata={"source": self._refs})
        self._stream: MetadataStream | None = None
        self._done = 0
        self.lost = False

    def of(self, batch: DocBatch) -> list[str | None]:
        """The sources of the next documents. Raises ShardError for a shard that has changed."""
        n, records, refs = batch.n_docs, batch.records, self._refs
        self._done += n
        if not refs or self.lost:
            return [None] * n
        # The record of a long text is not kept.
        missing = {at for at, record in enumerate(records) if record is None}
        if self._stream is None and records and missing.issubset(np.flatnonzero(batch.blank)):
            return _first_texts([[at_path(one, ref.path) for one in records] for ref in refs])
        try:
            if self._stream is None:
                self._stream = MetadataStream(*self._given)
                self._stream.take(self._done - n)
            return self._stream.take(n)["source"]
        except ShardError:
            check(self._given[1].path)
            self.lost = True
            return [None] * n


def _first_texts(columns: list[list[object]]) -> list[str | None]:
    """The first value that is not empty, row by row; `columns` have the same length."""
    found = [as_text(value) or None for value in columns[0]]
    for column in columns[1:]:
        if all(text is not None for text in found):
            break
        found = [
            text if text is not None else as_text(value) or None
            for text, value in zip(found, column, strict=True)
        ]
    return found
