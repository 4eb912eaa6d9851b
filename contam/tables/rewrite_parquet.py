"""Write a Parquet shard again without some rows, or with other text in them.

Row groups without an edit keep their bytes. Where text is cut or masked, only the columns that hold
it are encoded anew, and where rows go, all columns of their row group: with the codec, dictionary,
page version, checksums, page index and statistics that they had.
"""

from __future__ import annotations

import contextlib
import inspect
import io
from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contam.files.listed import opened
from contam.files.single import created
from contam.tables import parquet_splice as splice
from contam.tables.edit_columns import edited_batch, edited_texts
from contam.tables.edits import Edit, Rewritten
from contam.tables.parquet import footer
from contam.tables.parquet_footer import MAGIC
from contam.tables.parquet_levels import LEVELLED, level_of
from contam.tables.parquet_pages import Packing
from contam.tables.parquet_splice import Output, ParquetBytes, Splicer, chunks_of, number
from contam.tables.parquet_texts import Change, are_long, with_change
from contam.tables.shard_errors import arrow_file, shard_errors
from contam.tables.thrift import STRUCT, Value, write_struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.tables.columns import TextColumns
    from contam.tables.thrift import Struct

_CODECS: Final = ("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4")
_OLD_LZ4: Final = 5
_OLD_DICTIONARY: Final = 2
_DICTIONARIES: Final = frozenset((_OLD_DICTIONARY, 8))
_ENCODINGS: Final = {
    5: "DELTA_BINARY_PACKED",
    6: "DELTA_LENGTH_BYTE_ARRAY",
    7: "DELTA_BYTE_ARRAY",
    9: "BYTE_STREAM_SPLIT",
}
#: Codecs, by number, of which pages are changed here, as `pyarrow.Codec` names them.
_PACKINGS: Final = {0: "none", 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
#: Annotations of texts and bytes that order them by their bytes.
_TEXTS: Final = ("NONE", "UTF8", "JSON")
#: What is said of integers of which nothing need be said.
_PLAIN_INTEGERS: Final = {"None", *(f"Int(bitWidth={n}, isSigned=true)" for n in (32, 64))}
#: Columns of a row group are decoded together up to so many bytes.
_TOGETHER: Final = 64 << 20

_BATCH_ROWS: Final = 4096
_KNOWS_BLOOM: Final = (
    "bloom_filter_options" in inspect.signature(pq.ParquetWriter.__init__).parameters
)
#: A Bloom filter of a byte is made for so many values, of which so many are found wrongly.
_DISTINCT_A_BYTE: Final = 1.1
_FALSE_HITS: Final = 0.05

LEVEL: Final = "the exact compression level of what was compressed anew"
BLOOM: Final = "the Bloom filters of what was written anew"
LZ4: Final = "the old LZ4 framing, which is written as LZ4_RAW"
SORTING: Final = "the note that rows are sorted by a column whose text changed"
EMPTY: Final = "row groups that had no rows"
NANOSECONDS: Final = (
    "less than a microsecond of INT96 times, where one is before 1678 or after 2261"
)


def rewrite(
    source: str,
    target: Path,
    edits: Sequence[Edit],
    sources: TextColumns,
    *,
    replacement: str | None,
) -> Rewritten:
    """Write a Parquet shard again, see `contam.tables.edits.Rewriter`."""
    with shard_errors(source), opened(source) as file, created(target) as out:
        writing = _Rewriter(source, ParquetBytes.of(file), sources, replacement)
        return writing.write(Splicer(Output(out, target)), edits)


@dataclass(frozen=True, slots=True)
class Column:
    """A top-level column.

    leaves   its leaf columns, by number
    special  which option of the writer it needs, that would change other columns
    """

    name: str
    leaves: range
    special: str = ""


class _Rewriter:
    def __init__(
        self, path: str, source: ParquetBytes, sources: TextColumns, replacement: str | None
    ) -> None:
        self._path = path
        self._source = source
        self._sources = sources
        self._replacement = replacement
        self._meta = plain_metadata(source.footer)
        self._schema = self._meta.schema
        self._arrow_schema = self._schema.to_arrow_schema()
        self._columns = columns_of(source.footer, self._schema)
        self._not_kept: set[str] = set()
        self._levels: dict[str, int] = {}
        self._packings: dict[int, Packing] = {}

    def write(self, splicer: Splicer, edits: Sequence[Edit]) -> Rewritten:
        splicer.begin()
        rows = [edit.row for edit in edits]
        begin = 0
        for index, group in enumerate(self._source.groups):
            end = begin + number(group, splice.GROUP_ROWS)
            inside = edits[bisect_left(rows, begin) : bisect_left(rows, end)]
            self._write_group(
                splicer, index, group, [e._replace(row=e.row - begin) for e in inside]
            )
            begin = end
        if rows and rows[-1] >= begin:
            raise ValueError(f"it has no row {rows[-1]}")
        splicer.end(self._source.footer)
        return Rewritten(begin, splicer.n_rows, tuple(sorted(self._not_kept)))

    def _write_group(
        self, splicer: Splicer, index: int, group: Struct, edits: Sequence[Edit]
    ) -> None:
        """Write a row group; the rows of the edits count from its first."""
        n_rows = number(group, splice.GROUP_ROWS)
        if not n_rows:
            self._not_kept.add(EMPTY)
            return
        chunks = [(self._source, chunk) for chunk in chunks_of(group)]
        keep = np.ones(n_rows, np.bool_)
        keep[[edit.row for edit in edits if edit.drop]] = False
        if not keep.any():
            return
        changed = [edit for edit in edits if not edit.drop and edit.spans]
        texts = self._text_columns() if changed else []
        done = self._by_page(chunks, keep, changed, texts)
        if any(chunks[column.leaves[0]][0] is not self._source for column in texts):
            group = self._unsorted(group, texts)
        others = self._columns if not keep.all() else []
        sets = [texts] if set(texts) - done else []
        sets += self._together(index, [one for one in others if one not in {*texts, *done}])
        for columns in sets:
            old = new = self._read(index, columns)
            fresh = columns
            if columns is texts:
                new = self._edited(old, changed)
                fresh = [one for one in texts if not keep.all() or new[one.name] != old[one.name]]
                group = self._unsorted(group, fresh)
            del old  # what is encoded next takes its memory
            if fresh:
                new = new.select([column.name for column in fresh])
                new = new if keep.all() else new.filter(pa.array(keep))
                self._replace(chunks, fresh, new, group)
        splicer.add(group, int(keep.sum()), chunks)

    def _by_page(
        self,
        chunks: list[tuple[ParquetBytes, Struct]],
        keep: NDArray[np.bool_],
        changed: Sequence[Edit],
        texts: Sequence[Column],
    ) -> set[Column]:
        """Change columns of long texts page by page; returns those that this was possible for."""
        done = set()
        every = [chunk for _, chunk in chunks]
        for column in texts if keep.all() else self._columns:
            leaf = column.leaves[0]
            alone = column not in texts or len(texts) == 1
            if not (alone and self._is_flat(column) and are_long(every[leaf])):
                continue
            codec = number(every[leaf][splice.CHUNK_META].value, splice.META_CODEC)
            if codec not in _PACKINGS:
                continue
            level = self._level(_CODECS[codec], every) if _CODECS[codec] in LEVELLED else None
            edits = {edit.row: edit for edit in changed} if column in texts else {}
            packing = self._packings.setdefault(codec, Packing(_PACKINGS[codec], level))
            change = Change(keep, list(edits), partial(self._edited_texts, column, edits))
            is_nullable = self._schema.column(leaf).max_definition_level > 0
            # The library may read what looks damaged here: some writers pad their pages.
            with contextlib.suppress(ValueError, LookupError):
                chunks[leaf] = with_change(
                    self._source, every[leaf], change, packing, is_nullable=is_nullable
                )
                done.add(column)
        return done

    def _is_flat(self, column: Column) -> bool:
        """Whether a column has a text, or bytes, or nothing in each row."""
        leaf = self._schema.column(column.leaves[0])
        return bool(
            leaf.path == column.name
            and leaf.physical_type == "BYTE_ARRAY"
            and leaf.converted_type in _TEXTS
            and leaf.max_repetition_level == 0
        )

    def _edited_texts(
        self, column: Column, edits: Mapping[int, Edit], rows: Sequence[int], texts: Sequence[bytes]
    ) -> list[bytes]:
        """Texts of some rows of a column, changed."""
        return edited_texts(
            texts,
            self._arrow_schema.field(column.name),
            self._sources,
            [edits[row] for row in rows],
            self._replacement,
        )

    def _unsorted(self, group: Struct, fresh: Sequence[Column]) -> Struct:
        """A row group in which some columns changed, of which it then says no order."""
        if not _is_sorted_by(group, fresh):
            return group
        self._not_kept.add(SORTING)
        return {key: group[key] for key in group if key != splice.GROUP_SORTING}

    def _replace(
        self,
        chunks: list[tuple[ParquetBytes, Struct]],
        columns: Sequence[Column],
        table: pa.Table,
        group: Struct,
    ) -> None:
        """Put columns that were encoded anew in place of those that a row group had."""
        for special in sorted({column.special for column in columns}):
            some = [column for column in columns if column.special == special]
            numbers = [leaf for column in some for leaf in column.leaves]
            made = self._encoded(table.select([column.name for column in some]), numbers, group)
            for leaf, chunk in zip(numbers, chunks_of(made.groups[0]), strict=True):
                # Writers name the levels of a list differently; the schema stays, so do its names.
                meta = {
                    **chunk[splice.CHUNK_META].value,
                    splice.META_NAMES: chunks[leaf][1][splice.CHUNK_META].value[splice.META_NAMES],
                }
                chunk[splice.CHUNK_META] = Value(STRUCT, meta)
                chunks[leaf] = (made, chunk)

    def _text_columns(self) -> list[Column]:
        """The columns that may hold text."""
        names = {part.path[0] for ref in self._sources.every for part in ref.single}
        return [column for column in self._columns if column.name in names]

    def _together(self, index: int, columns: Sequence[Column]) -> list[list[Column]]:
        """The columns, few enough at a time that their values fit in memory."""
        sizes = footer(self._path).layout.groups[index].sizes
        found: list[list[Column]] = []
        held = 0
        for column in columns:
            size = sum(sizes[leaf] for leaf in column.leaves)
            if not found or held + size > _TOGETHER:
                found.append([])
                held = 0
            found[-1].append(column)
            held += size
        return found

    def _read(self, index: int, columns: Sequence[Column]) -> pa.Table:
        """Some columns of a row group."""
        numbers = [leaf for column in columns for leaf in column.leaves]
        names = [self._schema.column(leaf).path for leaf in numbers]
        table = self._decoded(index, names, "ns")
        if any(self._schema.column(leaf).physical_type == "INT96" for leaf in numbers):
            # In nanoseconds, times before 1678 and after 2261 wrap around.
            exact = self._decoded(index, names, "us")
            if not table.cast(exact.schema, safe=False).equals(exact):
                self._not_kept.add(NANOSECONDS)
                table = exact
        if table.column_names != [column.name for column in columns]:
            raise ValueError("two of its columns have one name")
        return table

    def _decoded(self, index: int, names: Sequence[str], unit: str) -> pa.Table:
        with (
            arrow_file(self._path) as source,
            pq.ParquetFile(
                source,
                metadata=self._meta,
                coerce_int96_timestamp_unit=unit,
                page_checksum_verification=True,
            ) as file,
        ):
            return file.read_row_group(index, columns=list(names), use_threads=False)

    def _edited(self, table: pa.Table, edits: Sequence[Edit]) -> pa.Table:
        """The table with its texts changed, batch by batch."""
        rows = [edit.row for edit in edits]
        found = []
        begin = 0
        for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
            end = begin + batch.num_rows
            moved = [
                edit._replace(row=edit.row - begin)
                for edit in edits[bisect_left(rows, begin) : bisect_left(rows, end)]
            ]
            found.append(
                edited_batch(batch, self._sources, moved, self._replacement) if moved else batch
            )
            begin = end
        return pa.Table.from_batches(found, table.schema)

    def _encoded(self, table: pa.Table, numbers: Sequence[int], group: Struct) -> ParquetBytes:
        """A file of one row group with these leaf columns, encoded as those of a row group were."""
        every = chunks_of(group)
        version, names = self._version(table, numbers, every)
        options = self._options(
            dict(zip(names, (every[leaf] for leaf in numbers), strict=True)), every
        )
        made = io.BytesIO()
        with pq.ParquetWriter(
            made, table.schema, version=version, **options, **self._special_options(numbers)
        ) as writer:
            writer.write_table(table, row_group_size=len(table))
        return ParquetBytes.of(made)

    def _special_options(self, numbers: Sequence[int]) -> dict[str, bool]:
        kinds = {_special(self._schema.column(leaf)) for leaf in numbers} - {""}
        return dict.fromkeys(kinds, True)

    def _version(
        self, table: pa.Table, numbers: Sequence[int], chunks: Sequence[Struct]
    ) -> tuple[str, list[str]]:
        """A version of the format that fits columns, and the paths of these under it.

        The first one encodes dictionaries as older readers need them, but lacks some types.
        """
        metas = (chunks[leaf][splice.CHUNK_META].value for leaf in numbers)
        if any(_OLD_DICTIONARY in meta[splice.META_ENCODINGS].value.entries for meta in metas):
            with contextlib.suppress(ValueError):
                return "1.0", self._matching_names(table, numbers, "1.0")
        return "2.6", self._matching_names(table, numbers, "2.6")

    def _matching_names(self, table: pa.Table, numbers: Sequence[int], version: str) -> list[str]:
        """The dotted paths that the library gives the leaf columns of a table.

        Raises ValueError where it would store a value in another way than the schema says.
        """
        empty = io.BytesIO()
        options = {"version": version, "store_schema": False, **self._special_options(numbers)}
        pq.write_table(table.schema.empty_table(), empty, **options)
        schema = pq.read_metadata(pa.BufferReader(empty.getvalue())).schema
        if len(schema) != len(numbers):
            raise ValueError("a column cannot be encoded as it was")
        for place, leaf in enumerate(numbers):
            if not _alike(schema.column(place), old := self._schema.column(leaf)):
                raise ValueError(f"its column {old.path} cannot be encoded as it was")
        return [schema.column(place).path for place in range(len(numbers))]

    def _options(self, chunks: dict[str, Struct], every: Sequence[Struct]) -> dict[str, object]:
        """How columns were encoded, as options of the library.

        chunks  by dotted path;  every  those of the whole row group
        """
        metas = {name: chunk[splice.CHUNK_META].value for name, chunk in chunks.items()}
        codecs = {name: number(meta, splice.META_CODEC) for name, meta in metas.items()}
        compression = {name: _CODECS[codec] for name, codec in codecs.items()}
        levels = {
            name: self._level(codec, every)
            for name, codec in compression.items()
            if codec in LEVELLED
        }
        if _OLD_LZ4 in codecs.values():
            self._not_kept.add(LZ4)
        encodings = {
            name: set(meta[splice.META_ENCODINGS].value.entries) for name, meta in metas.items()
        }
        other = {
            name: _ENCODINGS[known[0]]
            for name, used in encodings.items()
            if not used & _DICTIONARIES and (known := sorted(used & _ENCODINGS.keys()))
        }
        pages = [self._source.first_page(chunk) for chunk in chunks.values()]
        return {
            "store_schema": False,
            "compression": compression,
            "compression_level": levels or None,
            "use_dictionary": [name for name, used in encodings.items() if used & _DICTIONARIES],
            "column_encoding": other or None,
            "write_statistics": [
                name for name, meta in metas.items() if splice.META_STATISTICS in meta
            ],
            "data_page_version": "2.0" if pages[0][0] else "1.0",
            "write_page_checksum": pages[0][1],
            "write_page_index": any(splice.OFFSETS_AT in chunk for chunk in chunks.values()),
            **self._bloom(metas),
        }

    def _level(self, codec: str, chunks: Sequence[Struct]) -> int:
        """The level of a codec, as the first row group that is written anew shows it."""
        if codec not in self._levels:
            alike = [
                chunk
                for chunk in chunks
                if _CODECS[number(chunk[splice.CHUNK_META].value, splice.META_CODEC)] == codec
            ]
            self._levels[codec], is_sure = level_of(codec, self._source, alike)
            if not is_sure:
                self._not_kept.add(LEVEL)
        return self._levels[codec]

    def _bloom(self, metas: dict[str, Struct]) -> dict[str, object]:
        """Bloom filters as large as they were."""
        filtered = {name: meta for name, meta in metas.items() if splice.META_BLOOM_AT in meta}
        if not filtered:
            return {}
        if not _KNOWS_BLOOM:
            self._not_kept.add(BLOOM)
            return {}
        sizes = {
            name: number(self._source.header(number(meta, splice.META_BLOOM_AT))[0], 1)
            for name, meta in filtered.items()
        }
        return {
            "bloom_filter_options": {
                name: {"ndv": max(1, int(_DISTINCT_A_BYTE * size)), "fpp": _FALSE_HITS}
                for name, size in sizes.items()
            }
        }


def plain_metadata(whole: Struct) -> pq.FileMetaData:
    """A footer for the library without the types that its writer had in memory.

    Those would have values converted, and encoded in another unit than the schema says.
    """
    struct = {key: value for key, value in whole.items() if key != splice.FILE_FACTS}
    raw = write_struct(struct)
    return pq.read_metadata(pa.BufferReader(MAGIC + raw + len(raw).to_bytes(4, "little") + MAGIC))


def _is_sorted_by(group: Struct, columns: Sequence[Column]) -> bool:
    """Whether rows are said to be sorted by one of these columns."""
    if splice.GROUP_SORTING not in group:
        return False
    leaves = {leaf for column in columns for leaf in column.leaves}
    return any(number(by, 1) in leaves for by in group[splice.GROUP_SORTING].value.entries)


def columns_of(whole: Struct, schema: pq.ParquetSchema) -> list[Column]:
    """The top-level columns, in order."""
    elements = whole[splice.FILE_SCHEMA].value.entries
    found = []
    at, leaf = 1, 0
    while at < len(elements):
        name = elements[at][4].value.decode()
        open_children, first = 1, leaf
        while open_children:
            children = number(elements[at], 5)
            open_children += children - 1
            leaf += not children
            at += 1
        leaves = range(first, leaf)
        special = "".join(sorted({_special(schema.column(one)) for one in leaves}))
        found.append(Column(name, leaves, special))
    return found


def _special(column: pq.ColumnSchema) -> str:
    """The option of the library that a leaf column needs, and other columns must not have."""
    if column.physical_type == "INT96":
        return "use_deprecated_int96_timestamps"
    decimal = column.converted_type == "DECIMAL" or "Decimal" in str(column.logical_type)
    if decimal and column.physical_type in ("INT32", "INT64"):
        return "store_decimal_as_integer"
    return ""


def _alike(new: pq.ColumnSchema, old: pq.ColumnSchema) -> bool:
    """Whether values of two leaf columns are the same bytes."""
    same = bool(
        new.physical_type == old.physical_type
        and (new.length == old.length or old.physical_type != "FIXED_LEN_BYTE_ARRAY")
        and new.max_definition_level == old.max_definition_level
        and new.max_repetition_level == old.max_repetition_level
    )
    if old.physical_type not in ("INT32", "INT64"):
        return same
    # The unit of a time is in its type alone.
    said = {str(one.logical_type) for one in (new, old)}
    is_same = len(said) == 1 or said <= _PLAIN_INTEGERS
    return same and (is_same or new.converted_type == old.converted_type)
