"""Match the chunks of a corpus on threads, and add up what they find."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from contam.corpus.batches import BATCH_BYTES, read_chunks
from contam.corpus.coverage import ShardCoverage, ShardFailure
from contam.corpus.documents import SourceStream
from contam.detect.match.matching import matcher_of
from contam.detect.match.workers import on_threads
from contam.detect.partial import PartialResult
from contam.errors import ShardError

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Sequence

    from contam.corpus.batches import DocBatch
    from contam.corpus.formats.base import Chunk
    from contam.detect.corpus import Corpus, ScanProgress
    from contam.detect.match.matching import DocumentMatcher
    from contam.detect.plan import Plan

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
