"""Write a Parquet shard again without some rows, or with other text in them, and compare the two.

The library writes it, row group by row group, with the schema, metadata, codecs, about the levels,
dictionaries, encodings, statistics and sorting of the old file. What it cannot keep is said.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from contam.errors import Plain, ShardError
from contam.files.disk import output_errors
from contam.files.single import created
from contam.tables import same_rows
from contam.tables.edits import Rewrite, Rewritten, edited_batch, plain_type
from contam.tables.lookup import arrow_file, shard_errors
from contam.tables.parquet import footer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.tables.columns import TextColumns

BLOOM: Final = "Bloom filters"
SORTING: Final = "the note that rows are sorted, where the text that sorted them changed"
EMPTY: Final = "row groups without rows"
LZ4: Final = "the old LZ4 framing"
INT96: Final = "less than a microsecond of INT96 times"

#: For each codec the level that is tried first, and those that may be tried, up to four of them.
_LEVELS: Final = {
    "gzip": (6, (1, 2, 4, 6, 7, 8, 9)),
    "brotli": (5, (1, 3, 5, 7, 9, 11)),
    "zstd": (3, (1, 3, 6, 9, 12, 15, 19)),
}
#: So many stretches of a column, about so long, are compressed to try a level.
_STRETCHES, _STRETCH_BYTES = 4, 1 << 20
#: The library ends a page after so many rows, however long they are.
_PAGE_ROWS: Final = 1024
#: A size that is off by no more than this share is near enough.
_CLOSE: Final = 0.02
#: What is written for codecs that the library names otherwise, or reads but does not name.
_WRITTEN: Final = {"uncompressed": "none", "unknown": "lz4"}
_DICTIONARIES: Final = frozenset(("PLAIN_DICTIONARY", "RLE_DICTIONARY"))
_ENCODINGS: Final = frozenset(
    ("DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
)
#: About so much is decoded at once: in less, columns take longer; what is compared stays in cache.
_WRITE_BYTES, _WRITE_ROWS = 16 << 20, 1 << 16
_COMPARE_BYTES, _COMPARE_ROWS = 2 << 20, 4096
_NAMED: Final = 5


def rewrite(source: str, target: Path, how: Rewrite) -> Rewritten:
    """Write a Parquet shard again, see `contam.corpus.formats.base.CorpusFormat`.

    A row group is held in memory, and becomes a row group; one that loses all its rows goes.
    """
    begin = n_after = 0
    not_kept: set[str] = set()
    with shard_errors(source), _opened(source) as file, created(target) as out:
        # Its own metadata say again what were dictionaries and views.
        schema = pa.schema([one.with_type(plain_type(one.type)) for one in file.schema_arrow])
        options = _types(file, not_kept)
        with _library_errors(source, target):
            columns = _written(schema, options)
        options |= _packing(file, columns, not_kept)
        if any(not edit.drop for edit in how.edits):
            _forget_order(options, file, how.sources, not_kept)
        with _library_errors(source, target):
            writer = pq.ParquetWriter(out, schema, **options)
        with _closing(writer, source, target):
            for index, group in enumerate(footer(source).layout.groups):
                end = begin + group.n_rows
                batches = _batches(file, source, [index], _WRITE_BYTES, _WRITE_ROWS)
                table = _edited(batches, schema, how.of_rows(begin, end))
                if table.num_rows:
                    with _library_errors(source, target):
                        writer.write_table(table, row_group_size=table.num_rows)
                elif not group.n_rows:
                    not_kept.add(EMPTY)
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
    with shard_errors(source), _opened(source) as old, shard_errors(new), _opened(new) as made:
        if not made.schema_arrow.equals(old.schema_arrow):
            raise ValueError("what was written has other columns")
        if made.metadata.metadata != old.metadata.metadata:
            raise ValueError("what was written has other metadata")
        before, after = (
            _batches(file, path, range(file.num_row_groups), _COMPARE_BYTES, _COMPARE_ROWS)
            for file, path in ((old, source), (made, new))
        )
        return same_rows.count_same(before, after, how, new)


@contextmanager
def _opened(path: str) -> Iterator[pq.ParquetFile]:
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


def _batches(
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
    kinds = {(leaf.physical_type, _annotation(leaf).partition("(")[0]) for leaf in leaves}
    if ("INT96", "") in kinds:
        not_kept.add(INT96)
    decimals = {physical for physical, annotation in kinds if annotation == "Decimal"}
    return {
        "store_schema": False,
        "use_compliant_nested_type": False,
        "use_deprecated_int96_timestamps": ("INT96", "") in kinds
        and not any(annotation == "Timestamp" for _, annotation in kinds),
        "store_decimal_as_integer": bool(decimals) and decimals <= {"INT32", "INT64"},
        "write_page_checksum": True,
    }


def _written(schema: pa.Schema, options: dict[str, Any]) -> list[pq.ColumnSchema]:
    """The leaf columns that the library makes of a schema."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink, **options)
    made = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return [made.column(leaf) for leaf in range(len(made))]


def _packing(
    file: pq.ParquetFile, columns: Sequence[pq.ColumnSchema], not_kept: set[str]
) -> dict[str, Any]:
    """How the columns of a file were packed, as options of the library; adds to `not_kept`.

    columns  its leaf columns as the library writes them
    """
    meta = file.metadata
    if len(columns) != len(file.schema):
        raise ValueError("it is not written with as many columns as it has")
    others = [
        column.path
        for leaf, column in enumerate(columns)
        if _stored(column) != _stored(file.schema.column(leaf))
    ]
    if others:
        more = f" and {len(others) - _NAMED} others" if len(others) > _NAMED else ""
        not_kept.add(f"the exact Parquet types of {', '.join(others[:_NAMED])}{more}")
    groups = [n for n in range(meta.num_row_groups) if meta.row_group(n).num_rows]
    if not groups:
        return {}
    # Of a column that it does not understand, the library raises an error where it reads it, but
    # ends the process where its metadata are asked for.
    next(file.iter_batches(1, row_groups=groups[:1], use_threads=False), None)
    group = meta.row_group(groups[0])
    chunks = {leaf.path: group.column(at) for at, leaf in enumerate(columns)}
    codecs = {name: chunk.compression.lower() for name, chunk in chunks.items()}
    levels = {}
    for codec in sorted(set(codecs.values()) & _LEVELS.keys()):
        alike = (chunk for name, chunk in chunks.items() if codecs[name] == codec)
        largest = max(alike, key=lambda chunk: chunk.total_uncompressed_size)
        levels[codec] = _level(file, groups[0], largest, codec)
    not_kept |= {f"the exact {codec} level" for codec in levels}
    if "unknown" in codecs.values():
        not_kept.add(LZ4)
    if any(getattr(chunk, "bloom_filter_offset", None) for chunk in chunks.values()):
        not_kept.add(BLOOM)
    encodings = {name: set(chunk.encodings) for name, chunk in chunks.items()}
    return {
        "compression": {name: _WRITTEN.get(codec, codec) for name, codec in codecs.items()},
        "compression_level": {n: levels[codec] for n, codec in codecs.items() if codec in levels}
        or None,
        "use_dictionary": [name for name, used in encodings.items() if used & _DICTIONARIES],
        "column_encoding": {
            name: min(used & _ENCODINGS)
            for name, used in encodings.items()
            if used & _ENCODINGS and not used & _DICTIONARIES
        }
        or None,
        "write_statistics": [name for name, chunk in chunks.items() if chunk.is_stats_set],
        "write_page_index": any(chunk.has_offset_index for chunk in chunks.values()),
        "sorting_columns": _sorting(file, groups) or None,
    }


def _forget_order(
    options: dict[str, Any], file: pq.ParquetFile, sources: TextColumns, not_kept: set[str]
) -> None:
    """Say no more that rows are sorted by a text that changes; adds to `not_kept`."""
    texts = {part.path[0] for ref in sources.every for part in ref.single}
    names = [file.schema.column(leaf).path.partition(".")[0] for leaf in range(len(file.schema))]
    if any(names[by.column_index] in texts for by in options.get("sorting_columns") or ()):
        options["sorting_columns"] = None
        not_kept.add(SORTING)


def _annotation(leaf: pq.ColumnSchema) -> str:
    said = str(leaf.logical_type)
    # What says nothing of an integer, and what old writers say in another field.
    if said in ("None", "Int(bitWidth=32, isSigned=true)", "Int(bitWidth=64, isSigned=true)"):
        return "" if leaf.converted_type != "INTERVAL" else "INTERVAL"
    return said.partition(", is_from_converted_type")[0]


def _stored(leaf: pq.ColumnSchema) -> tuple[object, ...]:
    """How a column stores a value."""
    fixed = leaf.physical_type == "FIXED_LEN_BYTE_ARRAY"
    levels = leaf.max_definition_level, leaf.max_repetition_level
    return leaf.path, leaf.physical_type, _annotation(leaf), fixed and leaf.length, *levels


def _sorting(file: pq.ParquetFile, groups: Sequence[int]) -> list[pq.SortingColumn]:
    """The columns that all row groups are sorted by; none unless they agree."""
    every = {file.metadata.row_group(index).sorting_columns for index in groups}
    return list(every.pop()) if len(every) == 1 else []


def _level(file: pq.ParquetFile, group: int, chunk: pq.ColumnChunkMetaData, codec: str) -> int:
    """About the level that a column of a row group was compressed with, which no file tells."""
    n_rows = file.metadata.row_group(group).num_rows
    wanted = chunk.total_compressed_size / max(1, chunk.total_uncompressed_size)
    # Of a large chunk a few stretches of whole pages: it need not be alike all over.
    size = max(1, chunk.total_uncompressed_size)
    rows = max(_PAGE_ROWS, n_rows * _STRETCH_BYTES // size)
    n_batches = -(-n_rows // rows)
    most = max(1, min(_STRETCHES, 2 * _STRETCHES * _STRETCH_BYTES * n_rows // (size * rows)))
    chosen = {n_batches * n // most for n in range(most)}
    batches = file.iter_batches(
        rows, row_groups=[group], columns=[chunk.path_in_schema], use_threads=False
    )
    found = [batch for n, batch in enumerate(batches) if n in chosen or n_batches <= most]
    if not found:
        raise ValueError("a row group has no rows")
    schema = pa.schema([one.with_type(plain_type(one.type)) for one in found[0].schema])
    table = pa.Table.from_batches([batch.cast(schema) for batch in found])

    def off(level: int) -> float:
        sink = pa.BufferOutputStream()
        pq.write_table(
            table,
            sink,
            compression=codec,
            compression_level=level,
            use_dictionary=bool(set(chunk.encodings) & _DICTIONARIES),
        )
        made = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0).column(0)
        return float(made.total_compressed_size / made.total_uncompressed_size / wanted - 1)

    level, levels = _LEVELS[codec]
    tried: dict[int, float] = {}
    while True:
        tried[level] = off(level)
        # What is smaller than it was is compressed more strongly.
        stronger = tried[level] >= 0
        levels = tuple(one for one in levels if one != level and (one > level) == stronger)
        if not levels or abs(tried[level]) < _CLOSE:
            return min(tried, key=lambda one: (abs(tried[one]), one))
        level = levels[len(levels) // 3]
