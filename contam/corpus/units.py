"""Cut shards into units of work that threads can take one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.corpus.columns import Selections, selection_of
from contam.corpus.coverage import ShardFailure
from contam.corpus.offsets import Span
from contam.corpus.shards import errors_named
from contam.corpus.streams import is_plain
from contam.errors import ShardError
from contam.tables import ipc, parquet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.corpus.shards import Shard
    from contam.tables.columns import ColumnRef

UNIT_BYTES = 32 << 20
"""Small neighbouring row groups are merged up to this size (bytes of text, uncompressed); JSONL and
Arrow files without compression of the whole file are cut into pieces of about this size."""


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """Consecutive rows of one shard.

    shard       index into the list of shards
    row_groups  Parquet row groups or Arrow record batches, or None for a whole shard or a span
    first_row   row of the shard the unit starts at, None when only reading can tell
    n_rows      rows, None when only reading can tell
    n_bytes     estimate for progress: bytes of the text column uncompressed, else of the file
    span        the bytes of a JSONL file in which the unit's lines begin, None for other units
    """

    shard: int
    row_groups: tuple[int, ...] | None
    first_row: int | None
    n_rows: int | None
    n_bytes: int
    span: Span | None = None


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
                units += _units_of(index, shard, chosen.text)
        except ShardError as error:
            failures.append(ShardFailure(index, shard.name, error.message, error.hint))
    return units, failures


def _units_of(index: int, shard: Shard, text: ColumnRef) -> list[WorkUnit]:
    if shard.format == "parquet":
        return _merged(index, parquet.row_groups(shard.path, text))
    n_pieces = -(-shard.size_bytes // UNIT_BYTES)
    if shard.format == "arrow" and n_pieces > 1:
        n_batches = ipc.n_batches(shard.path)
        if n_batches is not None and n_batches > 1:
            return _of_batches(index, shard.size_bytes, n_batches)
    if shard.format == "jsonl" and n_pieces > 1 and is_plain(shard.path):
        return [
            _span_unit(index, Span(at, min(at + UNIT_BYTES, shard.size_bytes)))
            for at in range(0, shard.size_bytes, UNIT_BYTES)
        ]
    return [WorkUnit(index, None, 0, None, shard.size_bytes)]


def _span_unit(shard: int, span: Span) -> WorkUnit:
    return WorkUnit(shard, None, None if span.begin else 0, None, span.end - span.begin, span)


def _of_batches(shard: int, size_bytes: int, n_batches: int) -> list[WorkUnit]:
    step = max(1, n_batches * UNIT_BYTES // size_bytes)
    units = []
    for begin in range(0, n_batches, step):
        end = min(begin + step, n_batches)
        n_bytes = size_bytes * end // n_batches - size_bytes * begin // n_batches
        first_row = None if begin else 0
        units.append(WorkUnit(shard, tuple(range(begin, end)), first_row, None, n_bytes))
    return units


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
