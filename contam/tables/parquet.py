"""Read Parquet shards: footers, and text columns in small batches."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache, partial
from os import SEEK_END
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contam.errors import ShardError
from contam.files.addresses import is_address
from contam.files.listed import ListedPath, opened, state_of
from contam.tables.columns import ColumnRef, describe
from contam.tables.fields import RowReader, filled_block, take_rows, wanted_leaves
from contam.tables.lookup import arrow_file, shard_errors
from contam.tables.parquet_footer import (
    ENCRYPTED_MAGIC,
    MAGIC,
    TAIL_BYTES,
    EncryptedError,
    Layout,
    layout_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.files.disk import FileState
    from contam.tables.blocks import TextBlock
    from contam.tables.columns import TextColumns

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
#: Footers that are kept: more than there are threads that open shards.
_FOOTERS = 48


class RowGroup(NamedTuple):
    """Rows of one row group, and the uncompressed bytes of the column asked about."""

    n_rows: int
    n_bytes: int


class Footer(NamedTuple):
    """The metadata of a file: the library's view, for reading, and ours, for sizes."""

    meta: pq.FileMetaData
    layout: Layout


def footer(path: str) -> Footer:
    """Return the file's metadata; recent ones are cached, since every chunk of a shard needs them.

    Raises ShardError for a file that is damaged or encrypted. Of `meta`, ask for no row group: for
    what the library cannot decrypt or understand there, it ends the process.
    """
    with shard_errors(path):
        return _footer(path, state_of(path))


@lru_cache(maxsize=_FOOTERS)
def _footer(path: str, state: FileState) -> Footer:
    with opened(path if isinstance(path, ListedPath) else ListedPath(path, state)) as file:
        size = file.seek(0, SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        tail = file.read(TAIL_BYTES)
        length, magic = int.from_bytes(tail[:4], "little"), tail[4:]
        if magic == ENCRYPTED_MAGIC:
            raise _encrypted(path)
        if magic != MAGIC:
            raise ValueError("not a Parquet file, or cut off")
        if length > size - TAIL_BYTES - len(MAGIC):
            raise ValueError("its footer is longer than the file")
        file.seek(size - TAIL_BYTES - length)
        raw = file.read(length)
    try:
        layout = layout_of(raw)
    except EncryptedError as error:
        raise _encrypted(path) from error
    # The very bytes that were found sound.
    meta = pq.read_metadata(pa.BufferReader(b"".join((MAGIC, raw, tail))))
    schema = [meta.schema.column(i) for i in range(len(meta.schema))]
    leaves = tuple((leaf.path, leaf.physical_type) for leaf in schema)
    if layout.groups and layout.leaves != leaves:
        raise ValueError("its first row group has other columns than its schema")
    if any(len(group.sizes) != len(leaves) for group in layout.groups):
        raise ValueError("its row groups have other columns than its schema")
    return Footer(meta, layout)


def _encrypted(path: str) -> ShardError:
    return ShardError(
        "{shard}: the file is encrypted, whole or in some columns", shard=path,
        hint="no keys are taken: write it again without encryption, or leave it out",
    )  # fmt: skip


def promised(path: str) -> tuple[int, int]:
    """Tell the rows of a file and the bytes its columns unpack to, as its footer has them."""
    layout = footer(path).layout
    return layout.n_rows, sum(group.n_bytes for group in layout.groups)


def columns(path: str) -> tuple[ColumnRef, ...]:
    """List the columns of a Parquet file."""
    with shard_errors(path):
        return describe(footer(path).meta.schema.to_arrow_schema())


def n_batches(path: str) -> int:
    """Count the row groups of a file."""
    return len(footer(path).layout.groups)


def row_groups(
    path: str, ref: ColumnRef, groups: Sequence[int] | None = None
) -> tuple[RowGroup, ...]:
    """Tell the rows, and the size of column `ref`, of some row groups of a file, or of all."""
    return _row_groups(path, wanted_leaves(leaves(path), ref), groups)


def text_blocks(
    path: str, sources: TextColumns, groups: Sequence[int] | None, *, max_bytes: int
) -> Iterator[TextBlock]:
    """Yield the documents of `sources`, rows in order, about `max_bytes` at a time.

    groups  row groups to read, in order; None reads them all
    """
    every = leaves(path)
    columns = wanted_leaves(every, sources.first)
    others = [leaf for ref in sources.others for leaf in wanted_leaves(every, ref)]
    chosen = range(len(footer(path).layout.groups)) if groups is None else groups
    sizes = _row_groups(path, columns, chosen)
    rows = _batch_rows(_row_groups(path, [*columns, *others], chosen), max_bytes)
    reader = RowReader(partial(_batches_at, path, others, chosen, rows))
    seen = 0
    for batch in _batches(path, columns, chosen, rows):
        with shard_errors(path):
            block = filled_block(batch, sources, partial(reader.take, seen))
        seen += len(block.offsets) - 1
        yield block
    expected = sum(size.n_rows for size in sizes)
    if seen != expected:
        raise ShardError(
            "{shard}: {} rows read where its footer promises {}", seen, expected, shard=path,
            hint="the file may be truncated or corrupt: copy it again, or leave it out",
        )  # fmt: skip


def _wanted_rows(
    path: str, columns: Sequence[str], wanted: Sequence[int]
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    """Yield the wanted rows (ascending, distinct), reading only row groups that hold some.

    columns  leaf columns, or columns with everything below them
    """
    begin = 0
    for index, size in enumerate(_row_groups(path, columns, None)):
        low = bisect_left(wanted, begin)
        inside = wanted[low : bisect_left(wanted, begin + size.n_rows, lo=low)]
        if inside:
            batches = _batches(path, columns, [index], _batch_rows([size], _DECODE_BYTES))
            yield from take_rows(batches, begin, inside)
        begin += size.n_rows


def value_rows(
    path: str, refs: Sequence[ColumnRef], rows: Sequence[int], *, whole: bool
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    """Yield what `refs` need of some rows, see `contam.tables.lookup.TableReader`."""
    every = dict.fromkeys(".".join(part.column) for ref in refs for part in ref.single)
    return _wanted_rows(path, list(every) if whole else _leaves_of(path, refs), rows)


def value_batches(
    path: str, refs: Sequence[ColumnRef], groups: Sequence[int] | None
) -> Iterator[pa.RecordBatch]:
    """Yield what `refs` need of some row groups, or of all, a few thousand rows at a time."""
    columns = _leaves_of(path, refs)
    chosen = range(len(footer(path).layout.groups)) if groups is None else groups
    sizes = _row_groups(path, columns, chosen)
    return _batches(path, columns, chosen, _batch_rows(sizes, _DECODE_BYTES))


def _leaves_of(path: str, refs: Sequence[ColumnRef]) -> list[str]:
    known = leaves(path)
    return list(dict.fromkeys(leaf for ref in refs for leaf in wanted_leaves(known, ref)))


def leaves(path: str) -> tuple[str, ...]:
    """List the dotted paths of the file's leaf columns, as Parquet writes them."""
    with shard_errors(path):
        schema = footer(path).meta.schema
        return tuple(schema.column(i).path for i in range(len(schema)))


def _batches_at(
    path: str, columns: Sequence[str], groups: Sequence[int], rows: int, row: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (first row, batch) of the row group that holds `row`; rows count from `groups[0]`."""
    begin = 0
    for group, size in zip(groups, _row_groups(path, columns, groups), strict=True):
        if begin <= row < begin + size.n_rows:
            for batch in _batches(path, columns, [group], rows):
                yield begin, batch
                begin += batch.num_rows
            return
        begin += size.n_rows


def _row_groups(
    path: str, columns: Sequence[str], groups: Sequence[int] | None
) -> tuple[RowGroup, ...]:
    below = tuple(column + "." for column in columns)
    indices = [
        i for i, leaf in enumerate(leaves(path)) if leaf in columns or leaf.startswith(below)
    ]
    every = footer(path).layout.groups
    if groups and max(groups) >= len(every):
        raise ShardError(
            "{shard}: a row group is gone", shard=path, hint="the file was replaced: begin again"
        )
    chosen = every if groups is None else [every[index] for index in groups]
    return tuple(
        RowGroup(group.n_rows, sum(group.sizes[index] for index in indices)) for group in chosen
    )


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
    path: str, columns: Sequence[str], groups: Sequence[int], rows: int
) -> Iterator[pa.RecordBatch]:
    if not groups:
        return
    with (
        shard_errors(path),
        arrow_file(path) as source,
        pq.ParquetFile(
            source,
            metadata=footer(path).meta,
            # Columns of a row group in few large requests; of a file, more memory for nothing.
            pre_buffer=is_address(path),
            buffer_size=_READ_BUFFER,
            page_checksum_verification=True,
        ) as file,
    ):
        yield from file.iter_batches(
            batch_size=rows, row_groups=list(groups), columns=list(columns), use_threads=False
        )
