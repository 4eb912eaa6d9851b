"""Who the documents in an answer are: each asked about once, found again by shard and row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from contam.corpus.documents import DocumentMeta
from contam.errors import ShardError
from contam.tables.distinct import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.match.collect import Collection
    from contam.detect.model import Int32s, Int64s
    from contam.detect.sources import Sources

# A shard has fewer rows than this, and there are fewer than 2**22 shards.
_ROW_BITS = 41


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Documents:
    """The d documents of an answer, by shard and row.

    place        int64[d], ascending: shard and row as one number
    document_id  what the corpus calls it, else "SHARD:ROW"
    shard        name of its shard;  row  its place there
    """

    place: Int64s
    document_id: list[str]
    shard: list[str]
    row: list[int]
    url: list[str | None]
    date: list[str | None]
    source: list[str | None]

    def at(self, shard: Int32s, row: Int64s) -> Int64s:
        """Places in the lists of the documents at these rows of these shards; -1 for no shard."""
        found = np.searchsorted(self.place, _place(shard, row)).astype(np.int64)
        found[shard < 0] = -1
        return found


def describe(sources: Sources, collections: Sequence[Collection], notes: list[str]) -> Documents:
    """Ask the sources about every document that verdicts or evidence name.

    Of a shard that is gone meanwhile only the places stay, and `notes` gets a line.
    """
    tables = [collection.evidence()[0] for collection in collections]
    tables += [count.best for collection in collections for count in collection.counts]
    places = [_place(table.shard, table.row)[table.shard >= 0] for table in tables]
    place = distinct(np.concatenate(places)) if places else np.empty(0, np.int64)
    shards = place >> _ROW_BITS
    rows = place & ((1 << _ROW_BITS) - 1)
    metas: list[DocumentMeta] = []
    known = sources.names
    names: list[str] = []
    first = np.flatnonzero(np.diff(shards, prepend=-1))
    for lo, hi in pairwise([*first.tolist(), len(place)]):
        shard, wanted = int(shards[lo]), rows[lo:hi].tolist()
        name = known[shard]
        try:
            metas += sources.metadata(shard, wanted)
        except ShardError as error:
            notes.append(f"{name}: evidence without url and date: {error.message}")
            metas += [DocumentMeta("", None, None, None, None) for _ in wanted]
        names += [name] * len(wanted)
    ids = [meta.document_id for meta in metas]
    return Documents(
        place=place,
        document_id=[
            own or f"{name}:{row}" for own, name, row in zip(ids, names, rows.tolist(), strict=True)
        ],
        shard=names,
        row=rows.tolist(),
        url=[meta.url for meta in metas],
        date=[meta.date for meta in metas],
        source=[meta.source for meta in metas],
    )


def _place(shard: Int32s, row: Int64s) -> Int64s:
    place: Int64s = (shard.astype(np.int64) << _ROW_BITS) | row
    return place
