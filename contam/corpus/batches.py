"""Documents of a unit of work, streamed as flat UTF-8 in bounded batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contam.corpus import jsonl
from contam.corpus.columns import Selections, selection_of
from contam.corpus.shards import errors_named
from contam.tables import ipc, parquet
from contam.tables.blocks import TextBlock, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from contam.corpus.shards import Shard
    from contam.corpus.units import WorkUnit
    from contam.tables.columns import ColumnRef

BATCH_BYTES = 8 << 20
"""Default upper bound on the text of one batch; a longer document is a batch of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class DocBatch:
    """Consecutive documents of one shard.

    shard      index into the list of shards
    first_row  row of the shard of document 0; document i is row first_row + i
    data       uint8[n_bytes], valid UTF-8, read-only
    offsets    int64[n + 1], read-only; document i is data[offsets[i]:offsets[i + 1]]
    n_null     documents without a text; they have length zero
    n_empty    documents with a text of length zero
    n_undecodable, undecodable_bytes   documents in which bytes that are not UTF-8 were replaced
               by U+FFFD, and the number of those bytes
    """

    shard: int
    first_row: int
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    n_null: int
    n_empty: int
    n_undecodable: int
    undecodable_bytes: int

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return len(self.offsets) - 1

    @property
    def n_bytes(self) -> int:
        """Bytes of text."""
        return len(self.data)


def read_unit(
    unit: WorkUnit,
    shards: Sequence[Shard],
    selection: Selections,
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[DocBatch]:
    """Yield every row of a unit, in order, as batches of at most `batch_bytes` of text.

    Raises ShardError when the shard cannot be read to the unit's end; batches yielded before
    that are correct but not the whole unit.
    """
    shard = shards[unit.shard]
    chosen = selection_of(selection, unit.shard)
    if chosen is None or chosen.text is None:
        return
    row = unit.first_row
    with errors_named(shard):
        for block in _blocks(unit, shard, chosen.text, batch_bytes):
            yield from _batches(block, unit.shard, row, batch_bytes)
            row += len(block.offsets) - 1


def _blocks(unit: WorkUnit, shard: Shard, text: ColumnRef, batch_bytes: int) -> Iterator[TextBlock]:
    if shard.format == "parquet":
        return parquet.text_blocks(shard.uri, text, unit.row_groups, max_bytes=batch_bytes)
    if shard.format == "arrow":
        return ipc.text_blocks(shard.uri, text)
    return jsonl.text_blocks(shard.uri, text, max_bytes=batch_bytes)


def _batches(block: TextBlock, shard: int, row: int, batch_bytes: int) -> Iterator[DocBatch]:
    n_empty = int(np.count_nonzero(block.offsets[1:] == block.offsets[:-1])) - block.n_null
    counts = (block.n_null, n_empty, block.n_undecodable, block.undecodable_bytes)
    for begin, end in pieces(block, batch_bytes):
        data, offsets = block.data, block.offsets
        if (begin, end) != (0, len(offsets) - 1):
            data = data[offsets[begin] : offsets[end]]
            offsets = offsets[begin : end + 1] - offsets[begin]
            offsets.flags.writeable = False
        # The block's counts go with its first piece: only their sum means something.
        yield DocBatch(shard, row + begin, data, offsets, *counts)
        counts = (0, 0, 0, 0)
