"""Read the documents of an index that a view's items need, and match them."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.corpus.batches import gathered
from contam.detect.indexed.candidates import Lookup, find_candidates
from contam.detect.indexed.hashed import hashed_batches
from contam.detect.indexed.near_copies import NearCopies
from contam.detect.match.deadline import Deadline
from contam.detect.match.matching import Matcher
from contam.detect.match.workers import on_threads
from contam.detect.partial import start_collections
from contam.errors import ShardError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from contam.corpus.coverage import Coverage
    from contam.detect.indexed.candidates import Candidates
    from contam.detect.indexed.indexes import IndexSet
    from contam.detect.match.collect import Collection
    from contam.detect.model import Bools, Int64s
    from contam.detect.plan import Plan
    from contam.detect.scan import ScanProgress

#: Row groups that one worker decodes before it asks for more, in bytes of text.
_UNIT_BYTES: Final = 32 << 20
#: What a progress bar takes a token to be.
_BYTES_PER_TOKEN: Final = 6
#: Text that is matched without looking at the clock.
_STEP_BYTES: Final = 2 << 20
_NO_DEADLINE: Final = Deadline()


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
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

    def take(self, keep: Bools | Int64s) -> Wanted:
        """Some of them."""
        return Wanted(**{one.name: getattr(self, one.name)[keep] for one in fields(self)})


@dataclass(eq=False)
class SearchResult:
    """What searching indexes for the items of one view gave.

    coverage  of the indexes when it was made; hashed  shards of which hashes alone were compared
    """

    collection: Collection
    lookup: Lookup
    wanted: Wanted
    capped: Bools
    hashed: frozenset[int]
    coverage: Coverage


def search(
    opened: IndexSet,
    plan: Plan,
    *,
    workers: int = 1,
    progress: ScanProgress | None = None,
    keep_rows: bool = False,
    near: bool = True,
    deadline: Deadline = _NO_DEADLINE,
) -> SearchResult:
    """Find the documents that may hold something of the items, read them, and match them.

    keep_rows  read through the rows that are kept for later questions, on the calling thread
    near       look for near copies as well, where the index has sketches

    Raises DeadlinePassed, at most a document or a row group after the deadline.
    """
    (view,) = plan.views
    lookup = Lookup.of(view, opened.recipe)
    deadline.check()
    segments = [part.segment for part in opened.parts]
    extra = None
    if near and opened.recipe.minhash is not None:
        extra = NearCopies(view, opened.windows)
    deadline.check()
    with opened.lock:
        found = find_candidates(
            lookup,
            segments,
            [part.state for part in opened.parts],
            [part.seeds for part in opened.parts],
            extra,
        )
    wanted = _wanted(opened, found)
    while True:
        coverage = opened.coverage
        lost = np.array([failure.shard for failure in coverage.failures], np.int64)
        unread = np.isin(wanted.shard, lost) if len(lost) else np.zeros(len(wanted.row), np.bool_)
        readable = wanted.take(~unread) if len(lost) else wanted
        if keep_rows:
            collection = _match_documents(opened, plan, readable, deadline)
        else:
            collection = _match_streamed(opened, plan, readable, workers, progress, deadline)
        if opened.coverage is not coverage:
            # A shard failed meanwhile: the answer is the one that will be given from now on.
            continue
        hashed = frozenset(opened.gone & set(wanted.shard[unread].tolist()))
        if hashed:
            gone = np.isin(wanted.shard, np.array(sorted(hashed), np.int64)) & unread
            _match_hashed(opened, plan, lookup, wanted.take(gone), collection, deadline)
        return SearchResult(collection, lookup, wanted, found.capped, hashed, coverage)


def nothing_found(plan: Plan, opened: IndexSet) -> SearchResult:
    """The answer of a search that found nothing, or that was given up."""
    lookup = Lookup.of(plan.views[0], opened.recipe)
    capped = np.zeros(len(lookup.keys), np.bool_)
    nothing = _nothing_wanted()
    return SearchResult(
        start_collections(plan)[0], lookup, nothing, capped, frozenset(), opened.coverage
    )


def _wanted(opened: IndexSet, found: Candidates) -> Wanted:
    """All chosen documents, by shard and row."""
    tables = [
        _wanted_of(opened, number, chosen, near)
        for number, (chosen, near) in enumerate(zip(found.documents, found.near, strict=True))
        if len(chosen)
    ]
    if not tables:
        return _nothing_wanted()
    every = Wanted(
        **{
            one.name: np.concatenate([getattr(table, one.name) for table in tables])
            for one in fields(Wanted)
        }
    )
    return every.take(np.lexsort((every.row, every.shard)))


def _nothing_wanted() -> Wanted:
    none = np.empty(0, np.int64)
    return Wanted(none, none, none, none, none.astype(np.uint32), none, none.astype(np.bool_))


def _wanted_of(opened: IndexSet, number: int, chosen: Int64s, near: Bools) -> Wanted:
    part = opened.parts[number]
    shard, row = opened.place_of(part, chosen)
    crcs, n_tokens = (part.segment.arrays[name] for name in ("doc_crc", "doc_tokens"))
    crcs.check_all()
    n_tokens.check_all()
    return Wanted(
        shard=shard.astype(np.int64),
        row=row,
        part=np.full(len(row), number),
        document=chosen,
        crc=crcs.array[chosen],
        n_bytes=_BYTES_PER_TOKEN * n_tokens.array[chosen].astype(np.int64),
        near=near,
    )


def _match_documents(
    opened: IndexSet, plan: Plan, wanted: Wanted, deadline: Deadline
) -> Collection:
    collection = start_collections(plan)[0]
    if not len(wanted.row):
        return collection
    matcher = Matcher(plan.views[0], deadline.most_steps)
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


@dataclass(eq=False)
class _Work:
    """Stretches of rows to read and match, which threads take one by one."""

    opened: IndexSet
    plan: Plan
    first: Collection
    tasks: list[tuple[int, Int64s, NDArray[np.uint32]]]
    progress: ScanProgress | None
    deadline: Deadline
    lock: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> Collection:
        """Take tasks until none is left; each thread fills a collection beside the first."""
        collection = self.first.empty_sibling()
        matcher = Matcher(self.plan.views[0], self.deadline.most_steps)
        while not self.stop.is_set():
            with self.lock:
                task = self.tasks.pop() if self.tasks else None
            if task is None:
                break
            try:
                self._match(task, matcher, collection)
            except ShardError as error:
                with self.lock:
                    self.opened.fail(task[0], error)
        return collection

    def _match(
        self,
        task: tuple[int, Int64s, NDArray[np.uint32]],
        matcher: Matcher,
        collection: Collection,
    ) -> None:
        for batch in self.opened.rows.stream(*task):
            if self.stop.is_set():
                return
            self.deadline.check()
            matcher.match(batch, collection)
            if self.progress is not None:
                self.progress.advance(batch.n_bytes)


def _match_streamed(
    opened: IndexSet,
    plan: Plan,
    wanted: Wanted,
    workers: int,
    progress: ScanProgress | None,
    deadline: Deadline,
) -> Collection:
    """Read and match on threads; what was read is not kept."""
    tasks: list[tuple[int, Int64s, NDArray[np.uint32]]] = []
    for shard in np.unique(wanted.shard).tolist():
        mine = wanted.take(wanted.shard == shard)
        try:
            for begin, end in opened.rows.spans_of(shard, mine.row, _UNIT_BYTES):
                tasks.append((shard, mine.row[begin:end], mine.crc[begin:end]))
        except ShardError as error:
            opened.fail(shard, error)
    if progress is not None:
        progress.start(int(wanted.n_bytes.sum()))
    count = max(1, min(workers, len(tasks)))
    work = _Work(opened, plan, start_collections(plan)[0], tasks[::-1], progress, deadline)
    if count == 1:
        return work.run()
    with closing(on_threads(work.run, count, work.stop)) as found:
        for collection in found:
            work.first.merge(collection)
    return work.first


def _match_hashed(
    opened: IndexSet,
    plan: Plan,
    lookup: Lookup,
    wanted: Wanted,
    into: Collection,
    deadline: Deadline,
) -> None:
    matcher = Matcher(plan.views[0], deadline.most_steps)
    for number in np.unique(wanted.part).tolist():
        mine = wanted.take(wanted.part == number)
        part = opened.parts[number]
        order = np.argsort(mine.document)
        batches = hashed_batches(
            lookup, part, mine.document[order], mine.shard[order], mine.row[order]
        )
        for batch, tokens in batches:
            deadline.check()
            matcher.match_tokens(batch, tokens, into)


def search_hashes(
    opened: IndexSet, plan: Plan, lookup: Lookup, deadline: Deadline = _NO_DEADLINE
) -> SearchResult:
    """The same by what the index alone knows of its documents: no text is read."""
    deadline.check()
    with opened.lock:
        found = find_candidates(
            lookup,
            [part.segment for part in opened.parts],
            [part.state for part in opened.parts],
            [part.seeds for part in opened.parts],
        )
    wanted = _wanted(opened, found)
    collection = start_collections(plan)[0]
    _match_hashed(opened, plan, lookup, wanted, collection, deadline)
    hashed = frozenset(wanted.shard.tolist())
    return SearchResult(collection, lookup, wanted, found.capped, hashed, opened.coverage)
