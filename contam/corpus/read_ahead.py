"""Read chunks one after the other; those of object stores while others are worked on.

A store answers late and sends slowly, so a thread that reads and matches in turns would wait half
of its time. Files of a disk mostly come from memory, where a second thread would only cost.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import TYPE_CHECKING, Final

from contam.corpus.batches import read_chunk
from contam.corpus.chunks import CHUNK_BYTES
from contam.files.addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from contam.corpus.batches import DocBatch
    from contam.corpus.chunks import Chunk
    from contam.corpus.columns import Selections
    from contam.corpus.shards import Shard

#: Chunks that are begun before their turn: so many, if they are small.
_MOST_AHEAD: Final = 4
#: None of more text: all of it may be in memory then.
_LARGEST_AHEAD: Final = 8 * CHUNK_BYTES


def read_chunks(
    chunks: Iterable[Chunk], shards: Sequence[Shard], selections: Selections, batch_bytes: int
) -> Generator[tuple[Chunk, Iterable[DocBatch]], None, None]:
    """Yield every chunk with its batches, which `read_chunk` describes; for one thread.

    Of a corpus with objects in stores, the first batches of the chunks behind it are read
    meanwhile. Nothing is read any more once the generator is closed.
    """
    if not any(is_address(shard.uri) for shard in shards):
        for chunk in chunks:
            yield chunk, read_chunk(chunk, shards, selections, batch_bytes)
        return
    left = iter(chunks)
    waiting: deque[_Ahead] = deque()

    def take() -> bool:
        chunk = next(left, None)
        if chunk is not None:
            batches = read_chunk(chunk, shards, selections, batch_bytes)
            waiting.append(_Ahead(chunk, batches, pool))
        return chunk is not None

    def take_more() -> None:
        # Not before there is work: others, too, want a first chunk.
        while len(waiting) < _MOST_AHEAD and sum(one.n_bytes for one in waiting) < CHUNK_BYTES:
            if not take():
                return

    with ThreadPoolExecutor(_MOST_AHEAD, thread_name_prefix="contam-read") as pool:
        try:
            while waiting or take():
                one = waiting.popleft()
                with closing(one):
                    yield one.chunk, one.batches(take_more)
        finally:
            for one in waiting:
                one.close()


class _Ahead:
    """The batches of a chunk, the first of which may be read by another thread.

    For typed columns a store is then asked for all of the chunk.
    """

    def __init__(
        self, chunk: Chunk, batches: Generator[DocBatch, None, None], pool: ThreadPoolExecutor
    ) -> None:
        self.chunk = chunk
        self._batches = batches
        self._first: Future[DocBatch | None] | None = None
        # Its first row, if unknown, is told by the chunk before it, else by reading that once more.
        if chunk.first_row is not None and chunk.n_bytes <= _LARGEST_AHEAD:
            self._first = pool.submit(next, batches, None)

    @property
    def n_bytes(self) -> int:
        """Bytes of text, about."""
        return self.chunk.n_bytes

    def batches(self, begun: Callable[[], None]) -> Iterator[DocBatch]:
        """All of them; calls `begun` when the first is there."""
        first = self._first.result() if self._first else next(self._batches, None)
        begun()
        if first is not None:
            yield first
        yield from self._batches

    def close(self) -> None:
        """Read no more; what is being read is waited for."""
        if self._first and not self._first.cancel():
            wait([self._first])
        self._batches.close()
