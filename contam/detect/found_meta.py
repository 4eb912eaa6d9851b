"""Keep what is known of documents in which something was found, from when they were read.

Only formats whose records are read whole give it for nothing: id, url and date are then at hand
while the text is matched. Of all other documents, and of those that were let go here, it is read
from the shard once the search is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.corpus.documents import meta_of
from contam.detect.sources import named_documents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.corpus.batches import DocBatch
    from contam.corpus.columns import Selections
    from contam.corpus.documents import DocumentMeta
    from contam.detect.match.collect import Collection
    from contam.detect.model import Int64s

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
