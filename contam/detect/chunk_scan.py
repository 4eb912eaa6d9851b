"""Match the chunks of a corpus on threads, and add up what they find."""

from __future__ import annotations

from concurrent.futures import CancelledError
from contextlib import closing
from typing import TYPE_CHECKING

from contam.corpus.batches import BATCH_BYTES
from contam.corpus.coverage import ShardCoverage, ShardFailure
from contam.corpus.read_ahead import read_chunks
from contam.detect.match.matching import UnitMatcher
from contam.detect.match.workers import on_threads
from contam.detect.partial import Partial
from contam.errors import ShardError

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Sequence

    from contam.corpus.batches import DocBatch
    from contam.corpus.chunks import Chunk
    from contam.detect.plan import Plan
    from contam.detect.scan import Corpus, ScanProgress

#: Text read at once where a tokenizer file makes the tokens: about a second's work, so that a scan
#: can be stopped soon.
_TOKENIZER_BATCH_BYTES = 1 << 20
#: Batches that are matched with one block of the items before the next, where there are several.
_BATCHES_TOGETHER = 4


def scan_chunk(
    corpus: Corpus,
    chunk: Chunk,
    batches: Iterable[Sequence[DocBatch]],
    matchers: Sequence[UnitMatcher],
    partial: Partial,
    progress: ScanProgress | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Match one chunk and add it to a partial answer; a shard that fails is recorded there.

    batches  all of the chunk, those together that are matched with one block of the items before
             the next
    """
    counts = ShardCoverage()
    reported = 0
    try:
        for some in batches:
            if stop is not None and stop.is_set():
                return
            by_unit = [
                matcher.match(some, partial.collections[unit :: len(matchers)])
                for unit, matcher in enumerate(matchers)
            ]
            for batch, *rows in zip(some, *by_unit, strict=True):
                partial.found.note(
                    batch, corpus.selections, [found for of_unit in rows for found in of_unit]
                )
                counts += ShardCoverage.of_batch(batch)
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


def _together(batches: Iterable[DocBatch], n_bytes: int) -> Iterator[Sequence[DocBatch]]:
    """As many batches at a time as have so much text, also those before an error."""
    waiting: list[DocBatch] = []
    try:
        for batch in batches:
            waiting.append(batch)
            if sum(some.n_bytes for some in waiting) >= n_bytes:
                yield waiting
                waiting = []
    except ShardError:
        if waiting:
            yield waiting
        raise
    if waiting:
        yield waiting


def scan_chunks(
    plan: Plan,
    corpus: Corpus,
    *,
    workers: int,
    chunks: Sequence[Chunk] | None = None,
    progress: ScanProgress | None = None,
    stop: threading.Event | None = None,
) -> Partial:
    """Match these chunks of the corpus, or all, on threads that each fill a partial answer.

    stop  raises CancelledError before the next chunk once it is set
    """
    whole = Partial.start(plan, corpus)
    slow = any(view.tokenizer is not None for view in plan.views)
    size = _TOKENIZER_BATCH_BYTES if slow else BATCH_BYTES
    # Each block is looked up in all of it before the next: they may not fit into memory together.
    together = _BATCHES_TOGETHER * size if len(plan.views) > plan.n_units else 0

    def work(chunks: Iterator[Chunk], unwanted: threading.Event) -> Partial:
        partial = whole.empty_sibling(corpus)
        matchers = [UnitMatcher(plan.views[unit :: plan.n_units]) for unit in range(plan.n_units)]
        with closing(read_chunks(chunks, corpus.shards, corpus.selections, size)) as reading:
            for chunk, batches in reading:
                if stop is not None and stop.is_set():
                    raise CancelledError
                some = _together(batches, together)
                scan_chunk(corpus, chunk, some, matchers, partial, progress, unwanted)
        for collection in partial.collections:
            collection.flush()
        return partial

    with closing(on_threads(work, corpus.chunks if chunks is None else chunks, workers)) as found:
        for partial in found:
            whole.merge(partial)
    return whole
