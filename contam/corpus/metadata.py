"""Stream a chunk's document metadata, row by row, along with its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from contam.corpus.columns import METADATA_NAMES, MetadataField
from contam.corpus.documents import as_text
from contam.corpus.shards import errors_named
from contam.errors import ShardError

if TYPE_CHECKING:
    from contam.corpus.chunks import Chunk
    from contam.corpus.columns import Selection
    from contam.corpus.shards import Shard

MetaColumns: TypeAlias = dict[MetadataField, list[str | None]]
"""Field of METADATA_NAMES -> its value for each document, None where there is none."""


class MetadataStream:
    """The metadata of a chunk's documents, in row order, `take(n)` after `take(n)`.

    Gives for every document what `read_metadata` gives. Reads no text column, and nothing at
    all of a shard without metadata.
    """

    def __init__(self, chunk: Chunk, shard: Shard, selection: Selection) -> None:
        self._shard = shard
        self._choices = {
            name: refs for name in METADATA_NAMES if (refs := selection.metadata.get(name))
        }
        refs = tuple(dict.fromkeys(ref for some in self._choices.values() for ref in some))
        self._blocks = shard.kind.metadata(shard.path, refs, chunk.in_file) if refs else None
        self._held: MetaColumns = {name: [] for name in self._choices}

    def take(self, n: int) -> MetaColumns:
        """The next n documents. Raises ShardError when the shard has no more or cannot be read."""
        if self._blocks is None:
            return {name: [None] * n for name in METADATA_NAMES}
        held = self._held
        while len(next(iter(held.values()))) < n:
            with errors_named(self._shard):
                block = next(self._blocks, None)
            if block is None:
                raise ShardError(
                    "{shard}: its metadata ends before its text",
                    shard=self._shard.name,
                    hint="the file may be truncated or corrupt: copy it again, or leave it out",
                )
            for name, refs in self._choices.items():
                held[name] += _first_texts([block[ref] for ref in refs])
        taken: MetaColumns = {name: [None] * n for name in METADATA_NAMES if name not in held}
        for name, values in held.items():
            taken[name] = values[:n]
            del values[:n]
        return taken


def _first_texts(columns: list[list[object]]) -> list[str | None]:
    """The first value that is not empty, row by row; `columns` have the same length."""
    found = [as_text(value) or None for value in columns[0]]
    for column in columns[1:]:
        if all(text is not None for text in found):
            break
        found = [
            text if text is not None else as_text(value) or None
            for text, value in zip(found, column, strict=True)
        ]
    return found
