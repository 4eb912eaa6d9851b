"""Stream the documents of a chunk as flat UTF-8 in bounded batches."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.corpus.coverage import ShardCoverage
from contam.corpus.opening import CHUNK_BYTES
from contam.corpus.shards import unchanged
from contam.files.addresses import is_address
from contam.tables.blocks import TextBlock, block_of, pieces

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.corpus.columns import Selections
    from contam.corpus.formats.base import Chunk
    from contam.corpus.shards import Shard

    _Batches = Generator["DocBatch", None, None]
    _Begun = tuple[Chunk, _Batches, Future["DocBatch | None"] | None]


BATCH_BYTES = 8 << 20
"""Default upper bound on the text of one batch; a longer document is a batch of its own."""


_NOTHING: Final = ShardCoverage()


@dataclass(frozen=True, slots=True, eq=False)
class DocBatch:
    """Documents of one shard: consecutive ones, or those of `rows`; of several where `shards` is.

    shard      index into the list of shards
    first_row  row of the shard of document 0; document i is row first_row + i
    data       uint8[n_bytes], valid UTF-8, read-only
    offsets    int64[n + 1], read-only; document i is data[offsets[i]:offsets[i + 1]]
    counts     what was read: of several batches only the sum means something
    rows       int64[n], the row of each document, within a shard ascending; None when they are
               consecutive
    shards     int32[n], the shard of each document; None when all are of `shard`
    records    what each document was read from, see `contam.tables.blocks.TextBlock`
    """

    shard: int
    first_row: int
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    counts: ShardCoverage = _NOTHING
    rows: NDArray[np.int64] | None = None
    shards: NDArray[np.int32] | None = None
    records: Sequence[Mapping[str, object] | None] = ()

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return len(self.offsets) - 1

    @property
    def n_bytes(self) -> int:
        """Bytes of text."""
        return len(self.data)

    def text(self, i: int) -> bytes:
        """The text of a document."""
        return self.data[int(self.offsets[i]) : int(self.offsets[i + 1])].tobytes()

    @property
    def blank(self) -> NDArray[np.bool_]:
        """Which rows are blank lines, bool[n]."""
        no_record = [record is None for record in self.records] or [False] * self.n_docs
        blank: NDArray[np.bool_] = np.array(no_record, np.bool_) & (np.diff(self.offsets) == 0)
        return blank


def read_chunk(
    chunk: Chunk,
    shards: Sequence[Shard],
    selections: Selections,
    batch_bytes: int = BATCH_BYTES,
) -> Generator[DocBatch, None, None]:
    """Yield every row of a chunk, in order, as batches of at most `batch_bytes` of text.

    Raises ShardError when the shard cannot be read to the unit's end; batches yielded before
    that are correct but not the whole unit.
    """
    shard = shards[chunk.shard]
    chosen = selections[chunk.shard]
    sources = chosen.sources if chosen else None
    if sources is None:
        return
    with unchanged(shard) as shard:
        kind = shard.kind
        row = chunk.first_row
        if row is None:
            row = kind.first_row(shard.path, chunk, sources.first)
        for block in kind.blocks(shard.path, sources, chunk, batch_bytes):
            yield from _batches(block, chunk.shard, row, batch_bytes, sources.first.dotted)
            row += len(block.offsets) - 1


def gathered(
    documents: Iterable[tuple[int, NDArray[np.int64], Sequence[bytes]]], most_bytes: int
) -> Iterator[DocBatch]:
    """Chosen documents of several shards as few batches of at most so much text.

    documents  (shard, int64[n] rows, their texts as valid UTF-8), one shard after the other
    A longer document is a batch of its own.
    """
    held: list[tuple[int, int, bytes]] = []
    size = 0
    for shard, numbers, texts in documents:
        for row, text in zip(numbers.tolist(), texts, strict=True):
            if held and size + len(text) > most_bytes:
                yield _gathered(held)
                held, size = [], 0
            held.append((shard, row, text))
            size += len(text)
    if held:
        yield _gathered(held)


def _gathered(held: list[tuple[int, int, bytes]]) -> DocBatch:
    shards, rows, texts = zip(*held, strict=True)
    block = block_of(texts)
    return DocBatch(
        shards[0],
        rows[0],
        block.data,
        block.offsets,
        rows=np.array(rows, np.int64),
        shards=np.array(shards, np.int32),
    )


def _batches(
    block: TextBlock, shard: int, row: int, batch_bytes: int, column: str
) -> Iterator[DocBatch]:
    n_rows = len(block.offsets) - 1 - block.n_blank
    n_empty = int(np.count_nonzero(block.offsets[1:] == block.offsets[:-1]))
    n_empty -= block.n_null + block.n_blank
    n_moved = sum(n for _, n in block.moved)
    n_first = n_rows - block.n_null - n_empty - n_moved
    counts = ShardCoverage(
        rows=n_rows,
        n_bytes=len(block.data),
        n_null=block.n_null,
        n_empty=n_empty,
        n_undecodable=block.n_undecodable,
        undecodable_bytes=block.undecodable_bytes,
        n_moved=n_moved,
        n_elsewhere=block.n_elsewhere,
        n_blank=block.n_blank,
        columns=tuple(sorted((*(((column, n_first),) if n_first else ()), *block.moved))),
    )
    for begin, end in pieces(block, batch_bytes):
        data, offsets = block.data, block.offsets
        if (begin, end) != (0, len(offsets) - 1):
            data = data[offsets[begin] : offsets[end]]
            offsets = offsets[begin : end + 1] - offsets[begin]
            offsets.flags.writeable = False
        records = block.records[begin:end]
        yield DocBatch(shard, row + begin, data, offsets, counts, records=records)
        counts = _NOTHING


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
    waiting: deque[_Begun] = deque()

    def take() -> bool:
        chunk = next(left, None)
        if chunk is None:
            return False
        batches = read_chunk(chunk, shards, selections, batch_bytes)
        # Its first row, if unknown, is told by the chunk before it, else by reading that once more.
        is_early = chunk.first_row is not None and chunk.n_bytes <= _LARGEST_AHEAD
        waiting.append((chunk, batches, pool.submit(next, batches, None) if is_early else None))
        return True

    def every(batches: Iterator[DocBatch], first: Future[DocBatch | None] | None) -> _Batches:
        found = first.result() if first else next(batches, None)
        # Not before there is work: others, too, want a first chunk.
        while (
            len(waiting) < _MOST_AHEAD and sum(one.n_bytes for one, _, _ in waiting) < CHUNK_BYTES
        ):
            if not take():
                break
        if found is not None:
            yield found
        yield from batches

    with ThreadPoolExecutor(_MOST_AHEAD, thread_name_prefix="contam-read") as pool:
        try:
            while waiting or take():
                chunk, batches, first = waiting.popleft()
                try:
                    yield chunk, every(batches, first)
                finally:
                    _stop(batches, first)
        finally:
            for _, batches, first in waiting:
                _stop(batches, first)


def _stop(batches: _Batches, first: Future[DocBatch | None] | None) -> None:
    """Read no more of a chunk; what is being read is waited for."""
    if first and not first.cancel():
        wait([first])
    batches.close()
