"""Cut shards into units of work that threads can take one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.corpus.columns import Selections, selection_of
from contam.corpus.coverage import ShardFailure
from contam.corpus.shards import errors_named
from contam.errors import ShardError
from contam.tables import parquet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.corpus.shards import Shard

UNIT_BYTES = 32 << 20
"""Small neighbouring row groups are merged up to this size (bytes of text, uncompressed)."""


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """Consecutive rows of one shard.

    shard       index into the list of shards
    row_groups  Parquet row groups, or None for a whole shard
    first_row   row of the shard the unit starts at
    n_rows      rows, None when only reading can tell
    n_bytes     estimate for progress: bytes of the text column uncompressed, else of the file
    """

    shard: int
    row_groups: tuple[int, ...] | None
    first_row: int
    n_rows: int | None
    n_bytes: int


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
        if shard.format != "parquet":
            units.append(WorkUnit(index, None, 0, None, shard.size_bytes))
            continue
        try:
            with errors_named(shard):
                groups = parquet.row_groups(shard.uri, chosen.text)
        except ShardError as error:
            failures.append(ShardFailure(index, shard.name, error.message, error.hint))
        else:
            units += _merged(index, groups)
    return units, failures


def _merged(shard: int, groups: Sequence[parquet.RowGroup]) -> list[WorkUnit]:
    units: list[WorkUnit] = []
    chosen: list[int] = []
    first_row = n_rows = n_bytes = 0
    for index, group in enumerate(groups):
        if chosen and n_bytes + group.n_bytes > UNIT_BYTES:
            units.append(WorkUnit(shard, tuple(chosen), first_row, n_rows, n_bytes))
            first_row += n_rows
            chosen, n_rows, n_bytes = [], 0, 0
        chosen.append(index)
        n_rows += group.n_rows
        n_bytes += group.n_bytes
    if chosen and n_rows:
        units.append(WorkUnit(shard, tuple(chosen), first_row, n_rows, n_bytes))
    return units
