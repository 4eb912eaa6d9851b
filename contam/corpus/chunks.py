"""Cut shards into chunks that threads process one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.corpus.columns import Selections, selection_of
from contam.corpus.coverage import ShardFailure
from contam.corpus.each import of_each
from contam.corpus.formats.base import FileChunk
from contam.corpus.shards import errors_named
from contam.errors import ShardError

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def plan_chunks(
    shards: Sequence[Shard], selection: Selections
) -> tuple[list[Chunk], list[ShardFailure]]:
    """Cut shards into units, in shard and row order; shards that cannot be opened are failures.

    A shard without a selection is left out: it has failed before.
    """

    def cut(index: int, shard: Shard) -> list[Chunk] | ShardError:
        chosen = selection_of(selection, index)
        if chosen is None or chosen.text is None:
            return []
        try:
            with errors_named(shard):
                chunks = shard.kind.chunks(shard.path, chosen.text, shard.size_bytes, CHUNK_BYTES)
                return [Chunk(index, *chunk) for chunk in chunks]
        except ShardError as error:
            return error

    found = of_each(cut, shards)
    chunks = [chunk for one in found if isinstance(one, list) for chunk in one]
    return chunks, [
        ShardFailure.of(index, shards[index].name, one)
        for index, one in enumerate(found)
        if isinstance(one, ShardError)
    ]
