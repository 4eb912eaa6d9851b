"""Describe the documents of an answer: id, shard, row, url, date and source.

A scan takes them from the shards it has just read, an index from what it recorded of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contam.corpus.dates import span_of
from contam.corpus.documents import DocumentMeta
from contam.detect.result import UNREADABLE_DATES
from contam.errors import ShardError
from contam.tables.distinct import distinct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.corpus import Corpus
    from contam.detect.indexed.search import SearchResult
    from contam.detect.match.collect import Collection
    from contam.detect.model import Bools, Int32s, Int64s

    Sources: TypeAlias = Corpus | SearchResult
    """The documents behind an answer. A shard is given by its number, an index into `names`."""


# A shard has fewer rows than this, and there are fewer than 2**22 shards.
_ROW_BITS = 41


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Documents:
    """The d documents of an answer, by shard and row.

    date         as the corpus writes it; None where it cannot be read as one
    place        int64[d], shard and row as one number, ascending
    document_id  what the corpus calls it, else "SHARD:ROW"
    shard        name of its shard;  row  its place there
    odd          bool[d], whether the corpus has a date that cannot be read
    lost         shard that could not be asked for all of its documents -> why
    """

    place: Int64s
    document_id: list[str]
    shard: list[str]
    row: list[int]
    url: list[str | None]
    date: list[str | None]
    source: list[str | None]
    odd: Bools
    lost: Mapping[str, str]

    def at(self, shard: Int32s, row: Int64s) -> Int64s:
        """Places in the lists of the documents at these rows of these shards; -1 for no shard."""
        found = np.searchsorted(self.place, _place(shard, row)).astype(np.int64)
        found[shard < 0] = -1
        return found


def describe(sources: Sources, collections: Sequence[Collection]) -> Documents:
    """Ask the sources about every document that verdicts or evidence name.

    Of a shard that is gone meanwhile, and where only the text can be read, the places stay; a date
    that makes no sense is left out: see `document_notes`.
    """
    shards, rows = named_documents(collections)
    place = _place(shards, rows)
    metas: list[DocumentMeta] = []
    lost: dict[str, str] = {}
    known = sources.names
    names: list[str] = []
    first = np.flatnonzero(np.diff(shards, prepend=-1))
    for lo, hi in pairwise([*first.tolist(), len(place)]):
        shard, wanted = int(shards[lo]), rows[lo:hi].tolist()
        name = known[shard]
        try:
            found = sources.metadata(shard, wanted)
            metas += found
            if any(meta.lost for meta in found):
                lost[name] = "these columns are damaged"
        except ShardError as error:
            lost[name] = error.message
            metas += [DocumentMeta("", None, None, None, None) for _ in wanted]
        names += [name] * len(wanted)
    dates = [meta.date if span_of(meta.date) else None for meta in metas]
    ids = [meta.document_id for meta in metas]
    return Documents(
        place=place,
        document_id=[
            own or f"{name}:{row}" for own, name, row in zip(ids, names, rows.tolist(), strict=True)
        ],
        shard=names,
        row=rows.tolist(),
        url=[meta.url for meta in metas],
        date=dates,
        source=[meta.source for meta in metas],
        odd=np.array(
            [
                date is None and bool((meta.date or "").strip())
                for date, meta in zip(dates, metas, strict=True)
            ],
            np.bool_,
        ),
        lost=lost,
    )


def first_tokens(sources: Sources, shard: Int32s, row: Int64s, start: Int32s) -> Int64s:
    """Where in its shard the token stands that holds the code point `start` of each document.

    -1 in shards without token ids, and where a shard cannot be read any more.
    """
    found = np.full(len(start), -1, np.int64)
    for number in np.unique(shard[shard >= 0]).tolist():
        here = np.flatnonzero(shard == number)
        rows = np.unique(row[here]).tolist()
        try:
            documents = sources.of_tokens(number, rows)
        except ShardError:
            continue
        if documents is None:
            continue
        known = dict(zip(rows, documents, strict=True))
        for at in here.tolist():
            if (tokens := known[int(row[at])].tokens) is not None:
                found[at] = tokens.at(int(start[at]))
    return found


def document_notes(documents: Documents) -> list[str]:
    """A line for each shard that could not be asked, and one with the number of odd dates."""
    notes = [
        f"{name}: evidence without url and date: {why}" for name, why in documents.lost.items()
    ]
    if n_odd := int(documents.odd.sum()):
        notes.append(f"{n_odd:,} of {len(documents.place):,} {UNREADABLE_DATES}")
    return notes


def named_documents(collections: Sequence[Collection]) -> tuple[Int64s, Int64s]:
    """Shard and row of every document that verdicts or evidence name, by place: int64[d] each."""
    places = [_place(*collection.documents()) for collection in collections]
    place = distinct(np.concatenate(places)) if places else np.empty(0, np.int64)
    return place >> _ROW_BITS, place & ((1 << _ROW_BITS) - 1)


def _place(shard: Int32s | Int64s, row: Int64s) -> Int64s:
    place: Int64s = (shard.astype(np.int64) << _ROW_BITS) | row
    return place
