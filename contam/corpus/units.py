"""Cut shards into units of work that threads can take one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.corpus.columns import Selections, selection_of
from contam.corpus.coverage import ShardFailure
from contam.corpus.formats.base import Chunk
from contam.corpus.shards import errors_named
from contam.errors import ShardError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.corpus.offsets import Span
    from contam.corpus.shards import Shard

UNIT_BYTES = 32 << 20
"""Small neighbouring row groups are merged up to this size (bytes of text, uncompressed); JSONL and
Arrow files without compression of the whole file are cut into pieces of about this size."""


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """Consecutive rows of one shard.

    shard  index into the list of shards; the others are those of its `Chunk`
    """

    shard: int
    row_groups: tuple[int, ...] | None
    first_row: int | None
    n_rows: int | None
    n_bytes: int
    span: Span | None = None

    @property
    def chunk(self) -> Chunk:
        """The unit as its format knows it."""
        return Chunk(self.row_groups, self.first_row, self.n_rows, self.n_bytes, self.span)


def plan_units(
    shards: Sequence[Shard], selection: Selections
) -> tuple[list[WorkUnit], list[ShardFailure]]:
    """Cut shards into units, in shard and row order; shards that cannot be opened are failures.

    A shard without a selection is left out: it has failed before.
    """
    units: list[WorkUnit] = []
    failures: list[ShardFailure] = []
    for index, shard in enumerate(shards):
        chosen = selection_of(selection, index)
        if chosen is None or chosen.text is None:
            continue
        try:
            with errors_named(shard):
                chunks = shard.kind.chunks(shard.path, chosen.text, shard.size_bytes, UNIT_BYTES)
                units += [WorkUnit(index, *chunk) for chunk in chunks]
        except ShardError as error:
            failures.append(ShardFailure(index, shard.name, error.message, error.hint))
    return units, failures
