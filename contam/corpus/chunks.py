"""Cut shards into chunks that threads process one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.corpus.formats.base import FileChunk
from contam.corpus.shards import errors_named

if TYPE_CHECKING:
    from contam.corpus.columns import Selection
    from contam.corpus.offsets import ByteSpan
    from contam.corpus.shards import Shard

CHUNK_BYTES = 32 << 20
"""Small neighbouring row groups are merged up to this size (bytes of text, uncompressed); JSONL and
Arrow files without compression of the whole file are cut into pieces of about this size."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of one shard.

    shard  index into the list of shards; the others are those of its `FileChunk`
    """

    shard: int
    row_groups: tuple[int, ...] | None
    first_row: int | None
    n_rows: int | None
    n_bytes: int
    span: ByteSpan | None = None

    @property
    def in_file(self) -> FileChunk:
        """The unit as its format knows it."""
        return FileChunk(self.row_groups, self.first_row, self.n_rows, self.n_bytes, self.span)


def cut_shard(number: int, shard: Shard, selection: Selection) -> tuple[Chunk, ...]:
    """Cut the shard with this number into chunks, in row order. Raises ShardError."""
    if selection.text is None:
        return ()
    with errors_named(shard):
        found = shard.kind.chunks(shard.path, selection.text, shard.size_bytes, CHUNK_BYTES)
        return tuple(Chunk(number, *chunk) for chunk in found)
