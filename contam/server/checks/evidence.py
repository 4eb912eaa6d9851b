"""Convert evidence to plain values, a few items at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from contam.benchmark.items import ItemName
from contam.detect.indexed.quote import quote
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.detect.result import ScanResult
    from contam.server.indexes.registry import IndexSnapshot
    from contam.server.schemas.check import Options

Row = dict[str, Any]
Place = tuple[str, int]

#: Documents whose texts are held at once, unless one item has more.
_DOCUMENTS: Final = 128
#: The longest way in which JSON writes one character, of those in our answers.
_MOST_CHARACTER_BYTES: Final = 6


class EvidenceReader:
    """Rows of evidence by item, their texts read when they are asked for."""

    def __init__(self, result: ScanResult, snapshot: IndexSnapshot, options: Options) -> None:
        self._columns = result.evidence_columns
        self._snapshot = snapshot
        self._context = options.context
        owner = self._columns["item_id"]
        assert isinstance(owner, schemas.Repeated)  # noqa: S101 - for the type checker: as finishing makes it
        bounds = np.searchsorted(owner.index, np.arange(len(result.items_in_order) + 1)).tolist()
        self._items = result.items_in_order
        self._bounds = list(pairwise(bounds))

    def most_bytes(self) -> Iterator[int]:
        """Bytes that the rows of each item may have in an answer, at the most: nothing is read."""
        for begin, end in self._bounds:
            plain = len(orjson.dumps(self._rows(begin, end))) if end > begin else 0
            texts = int(self._spans(slice(begin, end)).sum()) + 2 * self._context * (end - begin)
            yield _MOST_CHARACTER_BYTES * (plain + texts)

    def by_item(self) -> Iterator[list[Row]]:
        """The rows of each item in order, with the matching texts and the text around them."""
        first = 0
        while first < len(self._bounds):
            last, places = first, set[Place]()
            pieces: list[list[Row]] = []
            while last < len(self._bounds) and (last == first or len(places) < _DOCUMENTS):
                rows = self._rows(*self._bounds[last])
                places |= {(row["shard"], row["row"]) for row in rows if row["verified"]}
                pieces.append(rows)
                last += 1
            texts = quote(self._snapshot.opened, places)
            for at, rows in enumerate(pieces, first):
                yield self._with_texts(rows, at, texts)
            first = last

    def of(self, at: int) -> list[Row]:
        """The rows of one item."""
        rows = self._rows(*self._bounds[at])
        places = {(row["shard"], row["row"]) for row in rows if row["verified"]}
        return self._with_texts(rows, at, quote(self._snapshot.opened, places))

    def _rows(self, begin: int, end: int) -> list[Row]:
        columns = schemas.part(self._columns, begin, end)
        rows = schemas.records(columns, schemas.EVIDENCE)
        for row in rows:
            for name in ItemName._fields:
                del row[name]
        return rows

    def _spans(self, which: slice) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Characters of item and document that the rows quote; 0 where nothing was read."""
        start, end, first, last, read = (
            np.asarray(self._columns[name])[which]
            for name in ("item_start", "item_end", "document_start", "document_end", "verified")
        )
        spans: np.ndarray[Any, np.dtype[np.int64]] = np.where(read, end - start + last - first, 0)
        return spans

    def _with_texts(self, rows: list[Row], at: int, texts: dict[Place, str]) -> list[Row]:
        item = self._items[at]
        for row in rows:
            own = item.part_text(row["part"])[row["item_start"] : row["item_end"]]
            row["item_text"] = own or None
            row["document_text"] = row["before"] = row["after"] = None
            text = texts.get((row["shard"], row["row"])) if row["verified"] else None
            if text is not None:
                start, end = row["document_start"], row["document_end"]
                row["document_text"] = text[start:end]
                if self._context:
                    row["before"] = text[max(start - self._context, 0) : start]
                    row["after"] = text[end : end + self._context]
        return rows
