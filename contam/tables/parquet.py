"""Parquet shards: footers, and text columns streamed in small batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contam.errors import ShardError
from contam.tables.blocks import TextBlock
from contam.tables.columns import ColumnRef, describe
from contam.tables.fields import as_text_block, wanted_leaves
from contam.tables.guard import shard_errors

# Decoding about 2 MB at a time keeps pages, output and whoever reads it next in cache: measured,
# it beats reading whole row groups by a fifth.
_DECODE_BYTES = 2 << 20
# The average hides long documents and repeated (dictionary-encoded) ones: rows are capped too,
# harder in giant row groups, where one batch of long documents could fill the memory.
_MAX_ROWS = 4096
_MAX_ROWS_GIANT = 512
_GIANT_BYTES = 256 << 20
# Column chunks are read through a buffer of this size instead of whole.
_READ_BUFFER = 1 << 20


class RowGroup(NamedTuple):
    """Rows of one row group, and the uncompressed bytes of the column asked about."""

    n_rows: int
    n_bytes: int


def footer(path: str) -> Any:
    """Return the file's metadata; recent ones are kept, since every unit of a shard needs them."""
    with shard_errors(path):
        status = os.stat(path)
        return _footer(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=16)
def _footer(path: str, size: int, mtime_ns: int) -> Any:  # noqa: ARG001 - part of the cache key
    return pq.read_metadata(path)


def columns(path: str) -> tuple[ColumnRef, ...]:
    """List the columns of a Parquet file."""
    with shard_errors(path):
        return describe(footer(path).schema.to_arrow_schema())


def row_groups(path: str, ref: ColumnRef) -> tuple[RowGroup, ...]:
    """List the row groups of a Parquet file with the size of column `ref`."""
    with shard_errors(path):
        meta = footer(path)
        chosen = set(wanted_leaves(_leaves(meta), ref))
        wanted = [i for i, leaf in enumerate(_leaves(meta)) if leaf in chosen]
        groups = []
        for index in range(meta.num_row_groups):
            group = meta.row_group(index)
            n_bytes = sum(group.column(i).total_uncompressed_size for i in wanted)
            groups.append(RowGroup(group.num_rows, n_bytes))
        return tuple(groups)


def text_blocks(
    path: str, ref: ColumnRef, groups: Sequence[int] | None, *, max_bytes: int
) -> Iterator[TextBlock]:
    """Yield the documents of column `ref`, rows in order, about `max_bytes` at a time.

    groups  row groups to read, in order; None reads them all
    """
    sizes = row_groups(path, ref)
    chosen = range(len(sizes)) if groups is None else groups
    n_rows = sum(sizes[i].n_rows for i in chosen)
    rows = _batch_rows([sizes[i] for i in chosen], max_bytes)
    seen = 0
    for batch in _batches(path, wanted_leaves(_leaves(footer(path)), ref), chosen, rows):
        with shard_errors(path):
            block = as_text_block(batch, ref)
        seen += len(block.offsets) - 1
        yield block
    if seen != n_rows:
        raise ShardError(
            f"{path}: {seen} rows read where its footer promises {n_rows}",
            shard=path,
            hint="the file is damaged: copy it again, or leave it out",
        )


def _leaves(meta: Any) -> tuple[str, ...]:
    schema = meta.schema
    return tuple(schema.column(i).path for i in range(len(schema)))


def _batch_rows(sizes: Sequence[RowGroup], max_bytes: int) -> int:
    target = min(max_bytes, _DECODE_BYTES)
    rows = _MAX_ROWS
    for size in sizes:
        if size.n_rows == 0:
            continue
        if size.n_bytes > _GIANT_BYTES:
            rows = min(rows, _MAX_ROWS_GIANT)
        average = max(1, size.n_bytes // size.n_rows)
        rows = min(rows, max(1, target // average))
    return rows


def _batches(
    path: str, leaves: Sequence[str], groups: Sequence[int], rows: int
) -> Iterator[pa.RecordBatch]:
    if not groups:
        return
    with (
        shard_errors(path),
        pq.ParquetFile(
            path,
            metadata=footer(path),
            pre_buffer=False,
            buffer_size=_READ_BUFFER,
            page_checksum_verification=True,
        ) as file,
    ):
        yield from file.iter_batches(
            batch_size=rows, row_groups=list(groups), columns=list(leaves), use_threads=False
        )
