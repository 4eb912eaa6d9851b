"""Read the documents of an index that a view's items need, and match them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.items import PARTS
from contam.corpus.batches import gathered
from contam.corpus.columns import unread_notes
from contam.detect.chunk_scan import start_collections
from contam.detect.corpus import excluded_note
from contam.detect.indexed.candidates import (
    Lookup,
    find_candidates,
    items_at_risk,
    items_in,
    near_copies,
)
from contam.detect.match.matching import Matcher
from contam.detect.match.token_view import in_blocks
from contam.detect.match.workers import NO_DEADLINE, Deadline, on_threads
from contam.detect.model import Columns
from contam.errors import ShardError
from contam.index.array_files import fetch_rows
from contam.index.model import LEAST_KEY_BITS
from contam.index.segment import fetch_lists
from contam.kernels.letters import letter_hashes, new_letter_scratch
from contam.kernels.pairs import DOCUMENT_BITS
from contam.tables.memory import distinct
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.benchmark.item_table import ItemTable
    from contam.corpus.coverage import Coverage
    from contam.corpus.documents import DocumentMeta
    from contam.corpus.formats.base import Document
    from contam.detect.corpus import ScanProgress
    from contam.detect.indexed.candidates import Candidates, PlacedSegment
    from contam.detect.indexed.indexes import IndexSet
    from contam.detect.match.collect import Collection
    from contam.detect.model import Bools, Int64s, Matches, Uint64s
    from contam.detect.plan import Plan
    from contam.index.array_files import Rows
    from contam.index.segment import Segment

    Stretch = tuple[int, Int64s, NDArray[np.uint32]]


#: Of the hash of letters, the bits by which most that no index has are left out.
_HEAD_BITS: Final = LEAST_KEY_BITS
#: Files named that are in the corpus and not in the index.
_MOST_NAMED: Final = 20


def torn_documents(
    items: ItemTable, parts: Iterable[PlacedSegment], grams: Uint64s
) -> dict[Path, Int64s]:
    """Documents that a scan may put right by the items' letters, by the folder of their segment.

    Every document is among them of which a scan puts a word right: see contam.kernels.letters.

    grams  hashes that the segments will be asked for as well: fetched along with the letters
    """
    segments = [part.segment for part in parts]
    torn = [segment for segment in segments if segment.letters.n_pairs]
    hashes = grams[:0]
    if torn and segments[0].recipe.unit == "word":
        hashes = _hashes(items, _heads(torn) if _is_many(items, torn) else None)
    asked = [(segment.grams, segment.keys_of(grams)) for segment in segments]
    fetch_lists([*asked, *((segment.letters, segment.keys_of(hashes)) for segment in torn)])
    return {segment.folder: _documents(segment, hashes) for segment in torn if len(hashes)}


def items_torn(items: ItemTable, segment: Segment, documents: Int64s) -> Bools:
    """Which items have letters that are in some of these torn documents: bool[items]."""
    if not len(documents):
        return np.zeros(len(items), np.bool_)
    pairs, _ = segment.letters.unpacked()
    numbers = (pairs & np.uint64((1 << DOCUMENT_BITS) - 1)).astype(np.int64)
    known = distinct(pairs[np.isin(numbers, documents)] >> np.uint64(DOCUMENT_BITS))
    one_by_one = (segment.keys_of(_hashes(items[at : at + 1])) for at in range(len(items)))
    return np.array([np.isin(keys, known).any() for keys in one_by_one], np.bool_)


def _is_many(items: ItemTable, segments: Iterable[Segment]) -> bool:
    """Whether the items have more letters than all segments, about."""
    if len(items) == 1:
        return False
    n_bytes = int(items.records.n_bytes(PARTS).sum())
    return n_bytes > sum(segment.letters.n_pairs for segment in segments)


def _heads(segments: Iterable[Segment]) -> Bools:
    """Whether the segments have letters with these highest bits of a hash: bool[2**_HEAD_BITS]."""
    heads = np.zeros(1 << _HEAD_BITS, np.bool_)
    for segment in segments:
        pairs, _ = segment.letters.unpacked()
        heads[pairs >> np.uint64(DOCUMENT_BITS + segment.recipe.key_bits - _HEAD_BITS)] = True
    return heads


def _hashes(items: ItemTable, heads: Bools | None = None) -> Uint64s:
    """The hashes of the items' letters; given `heads`, those that may be in a segment."""
    found = []
    for data, offsets in (some.part_texts() for some in in_blocks(items)):
        scratch = new_letter_scratch(char_tables(), int(np.diff(offsets).max(initial=0)))
        hashes = letter_hashes(data, offsets, scratch)
        if heads is not None:
            hashes = hashes[heads[hashes >> np.uint64(64 - _HEAD_BITS)]]
        found.append(hashes)
    return distinct(np.concatenate(found))


def _documents(segment: Segment, hashes: Uint64s) -> Int64s:
    keys = distinct(segment.keys_of(hashes))
    return distinct(segment.letters.documents(*segment.letters.find(keys)))


#: Row groups that one worker decodes before it asks for more, in bytes of text.
_UNIT_BYTES: Final = 32 << 20
#: What a progress bar takes a token to be.
_BYTES_PER_TOKEN: Final = 6
#: Text that is matched without looking at the clock.
_STEP_BYTES: Final = 2 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Wanted(Columns):
    """Documents to read, by shard and row: all arrays of n.

    shard     int64, place in the names;  row  int64
    part      int64, segment of the set;  document  int64, its number there
    crc       uint32, of its text;  n_bytes  int64, about the length of that
    near      bool, only its sketch proposes it: no gram of an item led to it
    """

    shard: Int64s
    row: Int64s
    part: Int64s
    document: Int64s
    crc: NDArray[np.uint32]
    n_bytes: Int64s
    near: Bools


@dataclass(eq=False, kw_only=True)
class SearchResult:
    """What searching indexes for the items of one view gave.

    It is also the `contam.detect.corpus.Sources` of the answer: documents are described as they
    were when they were indexed.

    n_capped  grams of which the indexes keep only some documents
    at_risk   bool[items] for each policy, see `items_at_risk`
    coverage  of the indexes when it was made
    unread    bool[items], those that may stand in documents which could not be read
    """

    opened: IndexSet
    collection: Collection
    wanted: Wanted
    n_capped: int
    at_risk: tuple[Bools, ...]
    coverage: Coverage
    unread: Bools

    @property
    def names(self) -> tuple[str, ...]:
        """The shards' names."""
        return self.opened.names

    @property
    def notes(self) -> list[str]:
        """What to say of shards that were left out, not wholly read, or are not in the index."""
        covered = self.opened.coverage
        notes = [*excluded_note(covered.excluded)]
        notes += unread_notes(
            (record.name, record.unread)
            for index in self.opened.indexes
            for record in index.manifest.shards
            if not record.retired
        )
        if missing := covered.not_indexed:
            n_more = len(missing) - _MOST_NAMED
            more = f" and {n_more:,} more" if n_more > 0 else ""
            notes.append(
                f"the answer does not cover {', '.join(missing[:_MOST_NAMED])}{more}: in the folder"
                " of the corpus and not in the index, `contam index add` adds it"
            )
        return notes

    def metadata(self, shard: int, rows: Sequence[int]) -> list[DocumentMeta]:
        """The documents in these rows, as the corpus described them when it was indexed."""
        wanted = self.wanted
        first = np.searchsorted(wanted.shard, shard)
        end = np.searchsorted(wanted.shard, shard, side="right")
        at = first + np.searchsorted(wanted.row[first:end], rows)
        parts, numbers = wanted.part[at].tolist(), wanted.document[at].tolist()
        return [
            self.opened.parts[part].segment.documents([number])[0]
            for part, number in zip(parts, numbers, strict=True)
        ]

    def of_tokens(self, shard: int, rows: Sequence[int]) -> list[Document] | None:
        """The documents in these rows, where they are token ids. Raises ShardError."""
        return self.opened.rows.of_tokens(shard, rows)

    def near(self, matches: Matches) -> Bools:
        """Whether only its sketch led to the document of each match."""
        near = self.wanted.take(self.wanted.near)
        proposed = set(zip(near.shard.tolist(), near.row.tolist(), strict=True))
        places = zip(matches.shard.tolist(), matches.row.tolist(), strict=True)
        return np.array([place in proposed for place in places], np.bool_)

    def inputs(self) -> dict[str, Any]:
        """The indexes, and every shard as it was read."""
        shards = []
        for source, record in zip(self.opened.sources, self.opened.records, strict=True):
            if source is None or record is None:
                continue
            shard = source.shard
            shards.append(
                {
                    "uri": shard.uri,
                    "name": shard.name,
                    "format": shard.format,
                    "size_bytes": shard.size_bytes,
                    "digest": record.digest or None,
                    "column": record.column,
                    **({"columns": record.columns} if record.columns else {}),
                }
            )
        return {"index": [str(index.folder) for index in self.opened.indexes], "shards": shards}

    def about_index(self) -> dict[str, Any]:
        """What run.json says of the indexes and of what they guarantee."""
        recipe = self.opened.recipe
        return {
            "ids": [index.id for index in self.opened.indexes],
            "recipe": recipe.name,
            "guarantee_tokens": recipe.guarantee,
            "gram": recipe.gram,
            "stride": recipe.stride,
            "documents_read": len(self.wanted.row),
            "capped": {"cap": recipe.cap, "grams": self.n_capped},
        }


def search(
    opened: IndexSet,
    plan: Plan,
    *,
    workers: int = 1,
    progress: ScanProgress | None = None,
    keep_rows: bool = False,
    deadline: Deadline = NO_DEADLINE,
) -> SearchResult:
    """Find the documents that may hold something of the items, read them, and match them.

    keep_rows  read through the rows that are kept for later questions, on the calling thread

    Raises DeadlinePassed, at most a document or a row group after the deadline.
    """
    (view,) = plan.search_views
    lookup = Lookup.of(view, opened.recipe)
    deadline.check()
    opened.look_again()
    proposed = None
    if opened.recipe.minhash:
        proposed = near_copies(view, opened.windows)
    deadline.check()
    torn = torn_documents(plan.items, opened.parts, lookup.grams[lookup.order])
    with opened.lock:
        found = find_candidates(lookup, opened.parts, proposed, torn)
    wanted = _wanted(opened, found)
    coverage = opened.coverage
    while True:
        seen = opened.coverage
        if seen is not coverage:
            # What failed for this answer stays so, even if it could be read by now.
            coverage = coverage.with_failures(*seen.failures)
        lost = np.array([failure.shard for failure in coverage.failures], np.int64)
        unread = np.isin(wanted.shard, lost) if len(lost) else np.zeros(len(wanted.row), np.bool_)
        readable = wanted.take(~unread) if len(lost) else wanted
        if keep_rows:
            collection = _match_documents(opened, plan, readable, deadline)
        else:
            collection = _match_streamed(opened, plan, readable, workers, progress, deadline)
        if opened.coverage is not seen:
            # A shard failed meanwhile: the answer is the one that will be given from now on.
            continue
        missing = wanted.take(unread & ~wanted.near)
        return SearchResult(
            opened=opened,
            collection=collection,
            wanted=wanted,
            n_capped=int(found.capped.sum()),
            at_risk=tuple(items_at_risk(policy, lookup, found.capped) for policy in plan.policies),
            coverage=coverage,
            unread=_items_unread(opened, plan, lookup, torn, missing),
        )


def _items_unread(
    opened: IndexSet,
    plan: Plan,
    lookup: Lookup,
    torn: Mapping[Path, Int64s],
    unread: Wanted,
) -> Bools:
    """Items that may stand in documents which cannot be read: bool[items]."""
    found = np.zeros(len(plan.items), np.bool_)
    for number in distinct(unread.part).tolist():
        segment = opened.parts[number].segment
        documents = unread.document[unread.part == number]
        found[items_in(lookup, segment, documents)] = True
        letters = torn.get(segment.folder, documents[:0])
        found |= items_torn(plan.items, segment, np.intersect1d(documents, letters))
    return found


def nothing_found(plan: Plan, opened: IndexSet) -> SearchResult:
    """The answer of a search that found nothing, or that was given up."""
    none = np.zeros(len(plan.items), np.bool_)
    return SearchResult(
        opened=opened,
        collection=start_collections(plan)[0],
        wanted=_nothing_wanted(),
        n_capped=0,
        at_risk=(none,) * len(plan.policies),
        coverage=opened.coverage,
        unread=none,
    )


def _wanted(opened: IndexSet, found: Candidates) -> Wanted:
    """All chosen documents, by shard and row."""
    chosen_of = zip(opened.parts, found.documents, strict=True)
    fetch_rows(rows for part, chosen in chosen_of for rows in _rows_of(part, chosen))
    tables = [
        _wanted_of(opened, number, chosen, near)
        for number, (chosen, near) in enumerate(zip(found.documents, found.near, strict=True))
        if len(chosen)
    ]
    every = Wanted.concat([_nothing_wanted(), *tables])
    return every.take(np.lexsort((every.row, every.shard)))


def _nothing_wanted() -> Wanted:
    none = np.empty(0, np.int64)
    return Wanted(none, none, none, none, none.astype(np.uint32), none, none.astype(np.bool_))


def _wanted_of(opened: IndexSet, number: int, chosen: Int64s, near: Bools) -> Wanted:
    part = opened.parts[number]
    shard, row = opened.place_of(part, chosen)
    crcs, n_tokens = (file.check_many(lo, hi) for file, lo, hi in _rows_of(part, chosen))
    return Wanted(
        shard=shard.astype(np.int64),
        row=row,
        part=np.full(len(row), number),
        document=chosen,
        crc=crcs[chosen],
        n_bytes=_BYTES_PER_TOKEN * n_tokens[chosen].astype(np.int64),
        near=near,
    )


def _rows_of(part: PlacedSegment, chosen: Int64s) -> list[Rows]:
    """What tells of these documents how to find and read them."""
    arrays = part.segment.arrays
    return [(arrays[name], chosen, chosen + 1) for name in ("doc_crc", "doc_tokens")]


def _match_documents(
    opened: IndexSet, plan: Plan, wanted: Wanted, deadline: Deadline
) -> Collection:
    collection = start_collections(plan)[0]
    if not len(wanted.row):
        return collection
    matcher = Matcher(plan.search_views[0], deadline.most_steps)
    for batch in gathered(_kept(opened, wanted, deadline), _STEP_BYTES):
        deadline.check()
        matcher.match(batch, collection)
    return collection


def _kept(
    opened: IndexSet, wanted: Wanted, deadline: Deadline
) -> Iterator[tuple[int, Int64s, list[bytes]]]:
    """The documents wanted, shard by shard; a shard that cannot be read is a failure from now."""
    first = np.flatnonzero(np.diff(wanted.shard, prepend=-1)).tolist()
    for begin, end in pairwise([*first, len(wanted.row)]):
        deadline.check()
        shard, rows = int(wanted.shard[begin]), wanted.row[begin:end]
        try:
            texts = opened.rows.texts(shard, rows, wanted.crc[begin:end])
        except ShardError as error:
            opened.fail(shard, error)
        else:
            yield shard, rows, texts


def _match_streamed(
    opened: IndexSet,
    plan: Plan,
    wanted: Wanted,
    workers: int,
    progress: ScanProgress | None,
    deadline: Deadline,
) -> Collection:
    """Read and match stretches of rows on threads; what was read is not kept."""
    tasks = list(_stretches(opened, wanted))
    if progress is not None:
        progress.start(int(wanted.n_bytes.sum()))
    whole = start_collections(plan)[0]

    def work(stretches: Iterator[Stretch], stop: threading.Event) -> Collection:
        collection = whole.empty_sibling()
        matcher = Matcher(plan.search_views[0], deadline.most_steps)
        for stretch in stretches:
            try:
                for batch in opened.rows.stream(*stretch):
                    if stop.is_set():
                        break
                    deadline.check()
                    matcher.match(batch, collection)
                    if progress is not None:
                        progress.advance(batch.n_bytes)
            except ShardError as error:
                opened.fail(stretch[0], error)
        return collection

    with closing(on_threads(work, tasks, workers)) as found:
        for collection in found:
            whole.merge(collection)
    return whole


def _stretches(opened: IndexSet, wanted: Wanted) -> Iterator[Stretch]:
    """Shard, rows and checksums of documents that one worker reads together."""
    for shard in np.unique(wanted.shard).tolist():
        mine = wanted.take(wanted.shard == shard)
        try:
            for begin, end in opened.rows.spans_of(shard, mine.row, _UNIT_BYTES):
                yield shard, mine.row[begin:end], mine.crc[begin:end]
        except ShardError as error:
            opened.fail(shard, error)
