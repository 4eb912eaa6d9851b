"""Stream the documents of a chunk as flat UTF-8 in bounded batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contam.corpus.columns import Selections, selection_of
from contam.corpus.shards import unchanged
from contam.tables.blocks import TextBlock, block_of, pieces

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.corpus.chunks import Chunk
    from contam.corpus.shards import Shard

BATCH_BYTES = 8 << 20
"""Default upper bound on the text of one batch; a longer document is a batch of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class DocBatch:
    """Documents of one shard: consecutive ones, or those of `rows`; of several where `shards` is.

    shard      index into the list of shards
    first_row  row of the shard of document 0; document i is row first_row + i
    data       uint8[n_bytes], valid UTF-8, read-only
    offsets    int64[n + 1], read-only; document i is data[offsets[i]:offsets[i + 1]]
    n_null     documents without a text; they have length zero
    n_empty    documents with a text of length zero
    n_undecodable, undecodable_bytes   documents in which bytes that are not UTF-8 were replaced
               by U+FFFD, and the number of those bytes
    columns    the columns that documents with a text were read from, and how many from each
    n_moved    documents read from another column because theirs held no text
    n_elsewhere   documents without a text in the column the user named, with one in another
    n_blank    blank lines among them, which are no documents
    rows       int64[n], the row of each document, within a shard ascending; None when they are
               consecutive
    shards     int32[n], the shard of each document; None when all are of `shard`
    records    what each document was read from, see `contam.tables.blocks.TextBlock`
    """

    shard: int
    first_row: int
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    n_null: int
    n_empty: int
    n_undecodable: int
    undecodable_bytes: int
    columns: tuple[tuple[str, int], ...] = ()
    n_moved: int = 0
    n_elsewhere: int = 0
    n_blank: int = 0
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


def read_chunk(
    chunk: Chunk,
    shards: Sequence[Shard],
    selection: Selections,
    batch_bytes: int = BATCH_BYTES,
) -> Generator[DocBatch, None, None]:
    """Yield every row of a chunk, in order, as batches of at most `batch_bytes` of text.

    Raises ShardError when the shard cannot be read to the unit's end; batches yielded before
    that are correct but not the whole unit.
    """
    shard = shards[chunk.shard]
    chosen = selection_of(selection, chunk.shard)
    sources = chosen.sources if chosen else None
    if sources is None:
        return
    with unchanged(shard) as shard:
        in_file, kind = chunk.in_file, shard.kind
        row = chunk.first_row
        if row is None:
            row = kind.first_row(shard.path, in_file)
        for block in kind.blocks(shard.path, sources, in_file, batch_bytes):
            yield from _batches(block, chunk.shard, row, batch_bytes, sources.first.dotted)
            row += len(block.offsets) - 1


def gathered(
    documents: Iterable[tuple[int, NDArray[np.int64], Sequence[bytes]]], most_bytes: int
) -> Iterator[DocBatch]:
    """Chosen documents of several shards as few batches of at most so much text.

    documents  (shard, int64[n] rows, their texts as valid UTF-8), one shard after the other
    A longer document is a batch of its own.
    """
    shards: list[int] = []
    rows: list[int] = []
    texts: list[bytes] = []
    size = 0
    for shard, numbers, found in documents:
        for row, text in zip(numbers.tolist(), found, strict=True):
            if texts and size + len(text) > most_bytes:
                yield _gathered(shards, rows, texts)
                shards, rows, texts, size = [], [], [], 0
            shards.append(shard)
            rows.append(row)
            texts.append(text)
            size += len(text)
    if texts:
        yield _gathered(shards, rows, texts)


def _gathered(shards: list[int], rows: list[int], texts: list[bytes]) -> DocBatch:
    block = block_of(texts)
    return DocBatch(
        shards[0],
        rows[0],
        block.data,
        block.offsets,
        *(0, 0, 0, 0),
        rows=np.array(rows, np.int64),
        shards=np.array(shards, np.int32),
    )


def _batches(
    block: TextBlock, shard: int, row: int, batch_bytes: int, column: str
) -> Iterator[DocBatch]:
    n_empty = int(np.count_nonzero(block.offsets[1:] == block.offsets[:-1]))
    n_empty -= block.n_null + block.n_blank
    counts = (block.n_null, n_empty, block.n_undecodable, block.undecodable_bytes)
    n_moved = sum(n for _, n in block.moved)
    n_first = len(block.offsets) - 1 - block.n_null - n_empty - n_moved - block.n_blank
    columns = (*(((column, n_first),) if n_first else ()), *block.moved)
    more = (columns, n_moved, block.n_elsewhere, block.n_blank)
    for begin, end in pieces(block, batch_bytes):
        data, offsets = block.data, block.offsets
        if (begin, end) != (0, len(offsets) - 1):
            data = data[offsets[begin] : offsets[end]]
            offsets = offsets[begin : end + 1] - offsets[begin]
            offsets.flags.writeable = False
        # The block's counts go with its first piece: only their sum means something.
        records = block.records[begin:end]
        yield DocBatch(shard, row + begin, data, offsets, *counts, *more, records=records)
        counts, more = (0, 0, 0, 0), ((), 0, 0, 0)
