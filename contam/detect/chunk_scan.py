"""Match the chunks of a corpus on threads, and add up what they find."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.corpus.batches import BATCH_BYTES, read_chunks
from contam.corpus.coverage import CoverageCounter, ShardCoverage, ShardFailure
from contam.corpus.documents import SourceStream, meta_of
from contam.detect.corpus import named_documents
from contam.detect.match.by_source import FoundSources, SourceCounts
from contam.detect.match.collect import Collection
from contam.detect.match.matching import matcher_of
from contam.detect.match.workers import on_threads
from contam.detect.policies.policy import DEFAULT, get_policy
from contam.errors import InternalError, ShardError

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contam.corpus.batches import DocBatch
    from contam.corpus.columns import Selections
    from contam.corpus.coverage import Coverage
    from contam.corpus.documents import DocumentMeta
    from contam.corpus.formats.base import Chunk
    from contam.detect.corpus import Corpus, ScanProgress
    from contam.detect.match.matching import DocumentMatcher
    from contam.detect.model import Int64s
    from contam.detect.parts.part_store import Part
    from contam.detect.plan import Plan
    from contam.detect.policies.policy import Policy


#: Text read at once where a tokenizer file makes the tokens: about a second's work, so that a scan
#: can be stopped soon.
_TOKENIZER_BATCH_BYTES = 1 << 20


def scan_chunk(
    corpus: Corpus,
    chunk: Chunk,
    batches: Iterable[DocBatch],
    matchers: Sequence[DocumentMatcher],
    partial: PartialResult,
    progress: ScanProgress | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Match one chunk and add it to a partial result; a shard that fails is recorded there.

    batches   all of the chunk;  matchers  one a view
    """
    counts = ShardCoverage()
    reported = 0
    selection = corpus.selections[chunk.shard]
    sources = None
    if selection is not None:
        sources = SourceStream(chunk, corpus.shards[chunk.shard], selection)
    try:
        for batch in batches:
            if stop is not None and stop.is_set():
                return
            if partial.sources is not None and sources is not None:
                _tell_sources(batch, sources, partial)
            rows = [
                matcher.match(batch, collection)
                for matcher, collection in zip(matchers, partial.collections, strict=True)
            ]
            partial.found.note(batch, corpus.selections, rows)
            counts += batch.counts
            if progress is not None:
                step = min(batch.n_bytes, max(chunk.n_bytes - reported, 0))
                progress.advance(step)
                reported += step
            partial.found.shrink(partial.collections)
    except ShardError as error:
        name = corpus.shards[chunk.shard].name
        partial.read.add_failure(ShardFailure.of(chunk.shard, name, error))
        partial.chunks.add(corpus.chunk_numbers[chunk])
        return
    partial.read.add_chunk(chunk, counts)
    partial.chunks.add(corpus.chunk_numbers[chunk])
    if progress is not None:
        progress.advance(max(chunk.n_bytes - reported, 0))


def _tell_sources(batch: DocBatch, sources: SourceStream, partial: PartialResult) -> None:
    """Count the documents of a batch by source, for what will be found in them, too."""
    counts = partial.sources
    codes = None
    if counts is not None and not counts.too_many:
        names = sources.of(batch)
        real = np.flatnonzero(~batch.blank)
        found = counts.codes([names[at] for at in real.tolist()], len(real) * sources.lost)
        if found is not None:
            counts.add_rows(found)
            codes = np.zeros(batch.n_docs, np.int32)
            codes[real] = found
    for collection in partial.collections:
        if collection.sources is not None:
            collection.sources.batch = None if codes is None else (batch.first_row, codes)


def scan_chunks(
    plan: Plan,
    corpus: Corpus,
    *,
    workers: int,
    chunks: Sequence[Chunk] | None = None,
    progress: ScanProgress | None = None,
) -> PartialResult:
    """Match these chunks of the corpus, or all, on threads that each fill a partial result."""
    whole = PartialResult.start(plan, corpus)
    slow = any(view.tokenizer is not None for view in plan.views)
    size = _TOKENIZER_BATCH_BYTES if slow else BATCH_BYTES

    def work(chunks: Iterator[Chunk], unwanted: threading.Event) -> PartialResult:
        partial = whole.empty_sibling(corpus)
        matchers = [matcher_of(view) for view in plan.search_views]
        with closing(read_chunks(chunks, corpus.shards, corpus.selections, size)) as reading:
            for chunk, batches in reading:
                scan_chunk(corpus, chunk, batches, matchers, partial, progress, unwanted)
        for collection in partial.collections:
            collection.flush()
        return partial

    with closing(on_threads(work, corpus.chunks if chunks is None else chunks, workers)) as found:
        for partial in found:
            whole.merge(partial)
    return whole


#: Documents of a thread before those that are no evidence any more are let go.
_MOST: Final = 1 << 16


class FoundMeta:
    """Metadata of documents by (shard, row), of one thread."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], DocumentMeta] = {}
        self._most = _MOST

    def note(self, batch: DocBatch, selection: Selections, rows: Sequence[Int64s]) -> None:
        """Keep the metadata of the documents in these rows, as far as the batch has it."""
        if not batch.records:
            return
        for row in {row for some in rows for row in some.tolist()}:
            record = batch.records[row - batch.first_row]
            if record is not None:
                self.known[batch.shard, row] = meta_of(record, selection, batch.shard)

    def shrink(self, collections: Sequence[Collection]) -> None:
        """Let go what is no evidence in these collections, when there is much."""
        if len(self.known) <= self._most:
            return
        shards, rows = named_documents(collections)
        named = set(zip(shards.tolist(), rows.tolist(), strict=True))
        self.known = {place: meta for place, meta in self.known.items() if place in named}
        self._most = max(_MOST, 2 * len(self.known))

    def merge(self, other: Mapping[tuple[int, int], DocumentMeta]) -> None:
        """Add what another thread knows."""
        self.known.update(other)


@dataclass(eq=False)
class PartialResult:
    """What some of the chunks gave: a collection a view, and what was read. Merges in any order.

    sources  counts by source; None where no shard names the sources of its documents
    """

    collections: list[Collection]
    read: CoverageCounter
    chunks: set[int] = field(default_factory=set)
    found: FoundMeta = field(default_factory=FoundMeta)
    sources: SourceCounts | None = None

    @classmethod
    def start(cls, plan: Plan, corpus: Corpus) -> PartialResult:
        """One in which nothing is read yet."""
        whole = cls(start_collections(plan), CoverageCounter(corpus.coverage))
        if corpus.source_columns:
            whole.sources = counts = SourceCounts(plan.views[0].items.benchmark)
            for view, collection in enumerate(whole.collections):
                numbers = [number for number, at in enumerate(plan.view_of) if at == view]
                collection.sources = FoundSources(counts, numbers)
        return whole

    def empty_sibling(self, corpus: Corpus) -> PartialResult:
        """An empty one for another worker, whose collections share what can be shared."""
        siblings = [collection.empty_sibling() for collection in self.collections]
        return PartialResult(siblings, CoverageCounter(corpus.coverage), sources=self.sources)

    @property
    def coverage(self) -> Coverage:
        """What was expected, and what was read of it."""
        return self.read.coverage()

    def merge(self, other: PartialResult) -> None:
        """Add what was found in other chunks."""
        for mine, theirs in zip(self.collections, other.collections, strict=True):
            mine.merge(theirs)
        self.read.add(other.read.read, other.read.failures)
        self.chunks |= other.chunks
        self.found.merge(other.found.known)

    def take(self, part: Part) -> None:
        """Add a part, under the numbers that its shards and chunks have here.

        Raises InternalError for one of the same chunks: a chunk that is counted twice would hide
        one that nobody read.
        """
        if again := len(self.chunks & part.chunks):
            raise InternalError(f"{again} chunks were counted before")
        for mine, theirs in zip(self.collections, part.collected, strict=True):
            mine.take(theirs)
        self.read.add(part.read, part.failures)
        self.chunks |= part.chunks
        if self.sources is not None and part.sources is not None:
            self.sources.take(part.sources)


def start_collections(plan: Plan) -> list[Collection]:
    """A collection for each view, in which nothing was found yet."""
    return [
        Collection.start(
            view,
            [p for p, at in zip(plan.policies, plan.view_of, strict=True) if at == number],
            _ranking() if view.rephrasings is None else plan.policies[plan.view_of.index(number)],
            plan.parameters.max_evidence,
            every_hit=plan.parameters.every_hit,
        )
        for number, view in enumerate(plan.views)
    ]


@cache
def _ranking() -> Policy:
    """By whom the documents are chosen that are shown."""
    return get_policy(DEFAULT)
