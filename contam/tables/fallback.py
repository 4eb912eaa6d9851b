"""Find the text of rows whose main column is empty in the other columns."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from contam.tables.blocks import TextBlock, blank_rows, replaced
from contam.tables.fields import as_text_block, null_rows, take_rows
from contam.tables.some_rows import taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from contam.tables.columns import TextColumns

    Others = Callable[[NDArray[np.int64]], pa.RecordBatch]


def filled_block(batch: pa.RecordBatch, sources: TextColumns, others: Others) -> TextBlock:
    """Return the documents of a batch: of the first column, or of the first other that has one.

    others  gives, for rows of the batch (int64[k], ascending), a batch of those rows with the
            other columns
    """
    block = as_text_block(batch, sources.first)
    blank = blank_rows(block) if sources.others else np.empty(0, np.int64)
    if not len(blank):
        return block
    texts, moved, (n_bad, n_bytes) = _found(others(blank), sources, blank)
    if sources.named:
        return block._replace(n_elsewhere=len(texts))
    if not texts:
        return block
    nulls = null_rows(batch, sources.first)
    return replaced(block, texts)._replace(
        n_null=block.n_null - int(nulls[sorted(texts)].sum()),
        n_undecodable=block.n_undecodable + n_bad,
        undecodable_bytes=block.undecodable_bytes + n_bytes,
        moved=tuple(sorted(moved.items())),
    )


def _found(
    batch: pa.RecordBatch, sources: TextColumns, rows: NDArray[np.int64]
) -> tuple[dict[int, bytes], Counter[str], tuple[int, int]]:
    """Return the texts by row, how many each column gave, and what was undecodable in them."""
    texts: dict[int, bytes] = {}
    moved: Counter[str] = Counter()
    n_bad = n_bytes = 0
    left = np.arange(len(rows))
    for ref in sources.others:
        if not len(left):
            break
        block = as_text_block(taken(batch, left), ref)
        blank = blank_rows(block)
        have = np.setdiff1d(np.arange(len(left)), blank)
        for i in have.tolist():
            begin, end = block.offsets[i : i + 2]
            texts[int(rows[left[i]])] = block.data[begin:end].tobytes()
        if len(have):
            moved[ref.dotted] = len(have)
        n_bad += block.n_undecodable
        n_bytes += block.undecodable_bytes
        left = left[blank]
    return texts, moved, (n_bad, n_bytes)


class RowReader:
    """Rows of consecutive batches, asked for in ascending order, each batch read once.

    batches  gives (first row, batch), at least up to the one that holds the row it is given
    """

    def __init__(self, batches: Callable[[int], Iterator[tuple[int, pa.RecordBatch]]]) -> None:
        self._open = batches
        self._stream: Iterator[tuple[int, pa.RecordBatch]] | None = None
        self._last: tuple[int, pa.RecordBatch] | None = None

    def take(self, first_row: int, offsets: NDArray[np.int64]) -> pa.RecordBatch:
        """Return the rows at `first_row + offsets` as one batch.

        Raises ValueError when one is not there.
        """
        rows = offsets + first_row
        found: list[pa.RecordBatch] = []
        n_found = 0
        while n_found < len(rows):
            row = int(rows[n_found])
            if self._last is None or row >= self._last[0] + self._last[1].num_rows:
                self._last = self._next(row)
                continue
            begin, batch = self._last
            if row < begin:
                raise ValueError(f"row {row} is missing in some columns")
            for _, part in take_rows([batch], begin, rows[n_found:].tolist()):
                found.append(part)
                n_found += part.num_rows
        return pa.Table.from_batches(found).combine_chunks().to_batches()[0]

    def _next(self, row: int) -> tuple[int, pa.RecordBatch]:
        entry = next(self._stream, None) if self._stream else None
        if entry is None:
            self._stream = self._open(row)
            entry = next(self._stream, None)
        if entry is None:
            raise ValueError(f"row {row} is missing in some columns")
        return entry
