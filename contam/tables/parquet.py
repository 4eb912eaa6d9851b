"""Read Parquet shards, and write them again without some rows or with other text in them.

The library writes row group by row group, with the schema, metadata, codecs, about the levels,
dictionaries, statistics and sorting of the old file. What it cannot keep is said.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from os import SEEK_END
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contam.errors import COPY_AGAIN, Plain, ShardError
from contam.files.addresses import is_address
from contam.files.disk import output_errors
from contam.files.listed import ListedPath, opened, state_of
from contam.files.single import created
from contam.tables import edits
from contam.tables.arrow_file import arrow_file, shard_errors
from contam.tables.columns import ColumnRef, describe
from contam.tables.edits import Rewrite, Rewritten, edited_batch, plain_type
from contam.tables.fields import RowReader, filled_block, take_rows, wanted_leaves
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
    from pathlib import Path

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


BLOOM: Final = "Bloom filters"
SORTING: Final = "the note that rows are sorted, where the text that sorted them changed"
INT96: Final = "less than a microsecond of INT96 times"
TYPES: Final = "the exact Parquet types of some columns"

#: Levels that are tried, on so much of a column.
_LEVELS: Final = {"gzip": (1, 6, 9), "brotli": (1, 5, 9, 11), "zstd": (1, 3, 9, 15, 19)}
_TRIED_BYTES: Final = 1 << 20
#: What is written for codecs that the library names otherwise, or reads but does not name.
_WRITTEN: Final = {"uncompressed": "none", "unknown": "lz4"}
_DICTIONARIES: Final = frozenset(("PLAIN_DICTIONARY", "RLE_DICTIONARY"))
#: About so much is decoded at once: in less, columns take longer; what is compared stays in cache.
_WRITE_BYTES, _WRITE_ROWS = 16 << 20, 1 << 16
_COMPARE_BYTES, _COMPARE_ROWS = 2 << 20, 4096


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
    path: str, sources: TextColumns, groups: Sequence[int] | None, max_bytes: int
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
            hint=COPY_AGAIN,
        )  # fmt: skip


def value_rows(
    path: str, refs: Sequence[ColumnRef], rows: Sequence[int], *, whole: bool
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    """Yield what `refs` need of some rows (ascending, distinct).

    Reads only row groups that hold some;  whole  everything inside the columns, not texts alone
    """
    every = dict.fromkeys(".".join(part.column) for ref in refs for part in ref.single)
    columns = list(every) if whole else _leaves_of(path, refs)
    begin = 0
    for index, size in enumerate(_row_groups(path, columns, None)):
        low = bisect_left(rows, begin)
        inside = rows[low : bisect_left(rows, begin + size.n_rows, lo=low)]
        if inside:
            batches = _batches(path, columns, [index], _batch_rows([size], _DECODE_BYTES))
            yield from take_rows(batches, begin, inside)
        begin += size.n_rows


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


def rewrite(source: str, target: Path, how: Rewrite) -> Rewritten:
    """Write a Parquet shard again, see `contam.corpus.formats.base.CorpusFormat`.

    A row group is held in memory, and becomes a row group; one that loses all its rows goes.
    """
    begin = n_after = 0
    not_kept: set[str] = set()
    with shard_errors(source), _opened_whole(source) as file, created(target) as out:
        # Its own metadata say again what were dictionaries and views.
        schema = pa.schema([one.with_type(plain_type(one.type)) for one in file.schema_arrow])
        options = _types(file, not_kept)
        with _library_errors(source, target):
            made = _written(schema, options)
        options |= _packing(file, made, not_kept)
        roots = [file.schema.column(at).path.partition(".")[0] for at in range(len(made))]
        sorting = [roots[by.column_index] for by in options.get("sorting_columns") or ()]
        if any(not edit.drop for edit in how.edits) and not how.texts.isdisjoint(sorting):
            options["sorting_columns"] = None
            not_kept.add(SORTING)
        with _library_errors(source, target):
            writer = pq.ParquetWriter(out, schema, **options)
        with _closing(writer, source, target):
            for index, group in enumerate(footer(source).layout.groups):
                end = begin + group.n_rows
                batches = _batches_of(file, source, [index], _WRITE_BYTES, _WRITE_ROWS)
                table = _edited(batches, schema, how.of_rows(begin, end))
                if table.num_rows:
                    with _library_errors(source, target):
                        writer.write_table(table, row_group_size=table.num_rows)
                n_after += table.num_rows
                begin = end
            how.refuse_beyond(begin)
            if file.metadata.metadata:
                writer.add_key_value_metadata(file.metadata.metadata)
    return Rewritten(begin, n_after, tuple(sorted(not_kept)))


def count_same(source: str, new: str, how: Rewrite) -> int:
    """How many rows are the same in a shard that was written again; see `CorpusFormat.count_same`.

    The library reads both files, and all columns are compared row by row.
    """
    with (
        shard_errors(source),
        _opened_whole(source) as old,
        shard_errors(new),
        _opened_whole(new) as made,
    ):
        if not made.schema_arrow.equals(old.schema_arrow):
            raise ValueError("what was written has other columns")
        if made.metadata.metadata != old.metadata.metadata:
            raise ValueError("what was written has other metadata")
        before, after = (
            _batches_of(file, path, range(file.num_row_groups), _COMPARE_BYTES, _COMPARE_ROWS)
            for file, path in ((old, source), (made, new))
        )
        return edits.count_same(before, after, how, new)


@contextmanager
def _opened_whole(path: str) -> Iterator[pq.ParquetFile]:
    """A shard whose footer was found sound. Raises ShardError."""
    meta = footer(path).meta
    with (
        arrow_file(path) as source,
        pq.ParquetFile(
            source,
            metadata=meta,
            # In nanoseconds, times before 1678 and after 2261 wrap around.
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
            buffer_size=1 << 20,
            pre_buffer=False,
        ) as file,
    ):
        yield file


@contextmanager
def _library_errors(source: str, target: Path) -> Iterator[None]:
    """Tell what the library cannot write from what the system does not let it write."""
    try:
        with output_errors(target):
            yield
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())[:300]
        raise ShardError(
            "{shard}: pyarrow cannot write it again: {}", Plain(reason), shard=source,
            hint="leave the file out",
        ) from error  # fmt: skip


@contextmanager
def _closing(writer: pq.ParquetWriter, source: str, target: Path) -> Iterator[None]:
    """End a file when the block ends well; else only let go of it."""
    try:
        yield
    except BaseException:
        with suppress(OSError, pa.ArrowException):
            writer.close()
        raise
    with _library_errors(source, target):
        writer.close()


def _batches_of(
    file: pq.ParquetFile, path: str, groups: Sequence[int], n_bytes: int, most_rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups, about so much at a time."""
    every = footer(path).layout.groups
    for index in groups:
        group = every[index]
        average = max(1, sum(group.sizes) // max(1, group.n_rows))
        with shard_errors(path):
            n_rows = 0
            for batch in file.iter_batches(
                max(1, min(most_rows, n_bytes // average)), row_groups=[index], use_threads=False
            ):
                n_rows += batch.num_rows
                yield batch
            if n_rows != group.n_rows:
                raise ValueError(f"{n_rows} rows where its footer promises {group.n_rows}")


def _edited(batches: Iterator[pa.RecordBatch], schema: pa.Schema, how: Rewrite) -> pa.Table:
    """A row group, whose first row is 0, without what its edits take out."""
    left, begin = [], 0
    for batch in batches:
        end = begin + batch.num_rows
        plain = batch if batch.schema.equals(schema) else batch.cast(schema)
        left.append(edited_batch(plain, how.of_rows(begin, end)))
        begin = end
    return pa.Table.from_batches(left, schema)


def _types(file: pq.ParquetFile, not_kept: set[str]) -> dict[str, Any]:
    """How a file stores values, as options of the library; adds to `not_kept`."""
    leaves = [file.schema.column(leaf) for leaf in range(len(file.schema))]
    kinds = {(leaf.physical_type, str(leaf.logical_type).partition("(")[0]) for leaf in leaves}
    if ("INT96", "None") in kinds:
        not_kept.add(INT96)
    decimals = {physical for physical, annotation in kinds if annotation == "Decimal"}
    return {
        "store_schema": False,
        "use_compliant_nested_type": False,
        "use_deprecated_int96_timestamps": ("INT96", "None") in kinds
        and not any(annotation == "Timestamp" for _, annotation in kinds),
        "store_decimal_as_integer": bool(decimals) and decimals <= {"INT32", "INT64"},
        "write_page_checksum": True,
    }


def _written(schema: pa.Schema, options: dict[str, Any]) -> pq.ParquetSchema:
    """The columns that the library makes of a schema."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink, **options)
    return pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema


def _packing(file: pq.ParquetFile, made: pq.ParquetSchema, not_kept: set[str]) -> dict[str, Any]:
    """How the columns of a file were packed, as options of the library; adds to `not_kept`.

    made  its columns as the library writes them
    """
    meta = file.metadata
    if len(made) != len(file.schema):
        raise ValueError("it is not written with as many columns as it has")
    if not made.equals(file.schema):
        not_kept.add(TYPES)
    groups = [n for n in range(meta.num_row_groups) if meta.row_group(n).num_rows]
    if not groups:
        return {}
    # Of a column that it does not understand, the library raises an error where it reads it, but
    # ends the process where its metadata are asked for.
    next(file.iter_batches(1, row_groups=groups[:1], use_threads=False), None)
    group = meta.row_group(groups[0])
    chunks = {made.column(at).path: group.column(at) for at in range(len(made))}
    codecs = {name: chunk.compression.lower() for name, chunk in chunks.items()}
    levels = {}
    for codec in sorted(set(codecs.values()) & _LEVELS.keys()):
        alike = (chunk for name, chunk in chunks.items() if codecs[name] == codec)
        largest = max(alike, key=lambda chunk: chunk.total_uncompressed_size)
        levels[codec] = _level(file, groups[0], largest, codec)
    not_kept |= {f"the exact {codec} level" for codec in levels}
    if any(getattr(chunk, "bloom_filter_offset", None) for chunk in chunks.values()):
        not_kept.add(BLOOM)
    return {
        "compression": {name: _WRITTEN.get(codec, codec) for name, codec in codecs.items()},
        "compression_level": {n: levels[codec] for n, codec in codecs.items() if codec in levels}
        or None,
        "use_dictionary": [
            n for n, chunk in chunks.items() if _DICTIONARIES & set(chunk.encodings)
        ],
        "write_statistics": [name for name, chunk in chunks.items() if chunk.is_stats_set],
        "write_page_index": any(chunk.has_offset_index for chunk in chunks.values()),
        "sorting_columns": _sorting(file, groups) or None,
    }


def _sorting(file: pq.ParquetFile, groups: Sequence[int]) -> list[pq.SortingColumn]:
    """The columns that all row groups are sorted by; none unless they agree."""
    every = {file.metadata.row_group(index).sorting_columns for index in groups}
    return list(every.pop()) if len(every) == 1 else []


def _level(file: pq.ParquetFile, group: int, chunk: pq.ColumnChunkMetaData, codec: str) -> int:
    """About the level that a column of a row group was compressed with, which no file tells."""
    n_rows, size = file.metadata.row_group(group).num_rows, max(1, chunk.total_uncompressed_size)
    wanted = chunk.total_compressed_size / size
    batch = next(
        file.iter_batches(
            max(1, n_rows * _TRIED_BYTES // size),
            row_groups=[group],
            columns=[chunk.path_in_schema],
            use_threads=False,
        )
    )
    schema = pa.schema([one.with_type(plain_type(one.type)) for one in batch.schema])
    table = pa.Table.from_batches([batch.cast(schema)])
    dictionary = bool(set(chunk.encodings) & _DICTIONARIES)

    def off(level: int) -> float:
        sink = pa.BufferOutputStream()
        pq.write_table(
            table, sink, compression=codec, compression_level=level, use_dictionary=dictionary
        )
        made = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0).column(0)
        return abs(float(made.total_compressed_size / made.total_uncompressed_size - wanted))

    return min(_LEVELS[codec], key=off)
