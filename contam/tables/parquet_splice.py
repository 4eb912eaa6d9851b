"""Put a Parquet file together from column chunks of others, bytes as they are.

A column chunk is moved with its page index and Bloom filter; only the places that the footer gives
for them change. Numbers of fields:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import SEEK_END
from typing import TYPE_CHECKING, BinaryIO, Final

from contam.files.publish import output_errors
from contam.tables.parquet_footer import MAGIC, TAIL_BYTES
from contam.tables.thrift import (
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    Listed,
    Struct,
    ThriftError,
    Value,
    read_struct,
    write_struct,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

#: Bytes, of a file or as a part of others.
Raw = bytes | memoryview

_PIECE: Final = 4 << 20
#: Bytes in which the header of a page or a Bloom filter lies, unless its statistics are long.
_HEADER_BYTES: Final = 1 << 16

FILE_SCHEMA, FILE_ROWS, FILE_GROUPS, FILE_FACTS = 2, 3, 4, 5
GROUP_CHUNKS, GROUP_BYTES, GROUP_ROWS, GROUP_SORTING, GROUP_OFFSET, GROUP_PACKED, GROUP_ORDINAL = (
    range(1, 8)
)
CHUNK_PATH, CHUNK_OFFSET, CHUNK_META, OFFSETS_AT, OFFSETS_LENGTH, COLUMNS_AT, COLUMNS_LENGTH = (
    range(1, 8)
)
META_TYPE, META_ENCODINGS, META_NAMES, META_CODEC, META_VALUES, META_SIZE, META_PACKED = range(1, 8)
META_DATA_AT, META_INDEX_AT, META_DICTIONARY_AT, META_STATISTICS, META_PAGES = 9, 10, 11, 12, 13
META_BLOOM_AT, META_BLOOM_LENGTH, META_SIZES = 14, 15, 16
_PAGE_PLACES, _PLACE_OFFSET = 1, 1
PAGE_TYPE, PAGE_CRC = 1, 4
DATA_PAGE_V2: Final = 3


@dataclass(frozen=True, slots=True)
class ParquetBytes:
    """A file with its footer as a struct."""

    file: BinaryIO
    footer: Struct

    @classmethod
    def of(cls, file: BinaryIO) -> ParquetBytes:
        """The file; raises ValueError when it has no footer."""
        end = file.seek(0, SEEK_END) - TAIL_BYTES
        file.seek(max(end, 0))
        tail = file.read(TAIL_BYTES)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MAGIC or length > end - len(MAGIC):
            raise ValueError("not a Parquet file, or cut off")
        file.seek(end - length)
        return cls(file, read_struct(file.read(length))[0])

    @property
    def groups(self) -> list[Struct]:
        """The row groups."""
        found: list[Struct] = self.footer[FILE_GROUPS].value.entries
        return found

    def read(self, at: int, length: int) -> bytes:
        """Bytes of the file. Raises ValueError past its end."""
        self.file.seek(at)
        found = self.file.read(length)
        if len(found) != length:
            raise ValueError("a column ends behind the file")
        return found

    def pieces(self, at: int, length: int) -> Iterator[bytes]:
        """The same, some megabytes at a time."""
        for begin in range(at, at + length, _PIECE):
            yield self.read(begin, min(_PIECE, at + length - begin))

    def chunk(self, chunk: Struct) -> Iterator[Raw]:
        """The pages of a column chunk, some megabytes at a time."""
        meta: Struct = chunk[CHUNK_META].value
        yield from self.pieces(_start(meta), number(meta, META_PACKED))

    def whole(self, chunk: Struct) -> bytes:
        """The same as one."""
        meta: Struct = chunk[CHUNK_META].value
        return self.read(_start(meta), number(meta, META_PACKED))

    def header(self, at: int) -> tuple[Struct, int]:
        """The struct that begins there, and its length."""
        size = _HEADER_BYTES
        end = self.file.seek(0, SEEK_END)
        while True:
            self.file.seek(at)
            try:
                return read_struct(self.file.read(size))
            except ThriftError:
                if at + size >= end:
                    raise
                size *= 16

    def first_page(self, chunk: Struct) -> tuple[bool, bool]:
        """Of a chunk's first data page: whether it is of version 2, and has a checksum."""
        header, _ = self.header(chunk[CHUNK_META].value[META_DATA_AT].value)
        return header[PAGE_TYPE].value == DATA_PAGE_V2, PAGE_CRC in header


def chunks_of(group: Struct) -> list[Struct]:
    """The column chunks of a row group, in the order of the leaves."""
    found: list[Struct] = group[GROUP_CHUNKS].value.entries
    return found


def _start(meta: Struct) -> int:
    """Where the pages of a column chunk begin."""
    dictionary_at, data_at = number(meta, META_DICTIONARY_AT), number(meta, META_DATA_AT)
    # Some writers give 0 where there is no dictionary.
    return dictionary_at if 0 < dictionary_at < data_at else data_at


def number(struct: Struct, key: int) -> int:
    """A number in a struct; 0 where there is none."""
    return int(struct[key].value) if key in struct else 0


@dataclass(slots=True)
class Output:
    """A file that is written from its beginning; a refusal of the disk is an OutputError."""

    file: BinaryIO
    path: Path
    _at: int = 0

    def write(self, data: Raw) -> None:
        """Write at the end."""
        with output_errors(self.path):
            self.file.write(data)
        self._at += len(data)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._at


@dataclass(slots=True)
class _Indexes:
    """What belongs to a chunk and lies behind all row groups."""

    chunk: Struct
    source: ParquetBytes
    old: Struct
    shift: int


@dataclass(slots=True)
class Splicer:
    """Writes a file of chunks of other files; call `begin`, `add` for each row group, `end`."""

    out: Output
    _groups: list[Struct] = field(default_factory=list)
    _indexes: list[_Indexes] = field(default_factory=list)
    n_rows: int = 0

    def begin(self) -> None:
        """Write what a file begins with."""
        self.out.write(MAGIC)

    def add(
        self, like: Struct, n_rows: int, chunks: Sequence[tuple[ParquetBytes, Struct]]
    ) -> Struct:
        """Write a row group like another one, but with these rows and chunks."""
        start = self.out.tell()
        placed = [self._place(source, chunk) for source, chunk in chunks]
        metas = [chunk[CHUNK_META].value for chunk in placed]
        group = dict(like)
        group[GROUP_CHUNKS] = Value(LIST, Listed(STRUCT, placed))
        group[GROUP_BYTES] = Value(I64, sum(number(meta, META_SIZE) for meta in metas))
        group[GROUP_ROWS] = Value(I64, n_rows)
        if GROUP_OFFSET in like:
            group[GROUP_OFFSET] = Value(I64, start)
        if GROUP_PACKED in like:
            group[GROUP_PACKED] = Value(I64, sum(number(meta, META_PACKED) for meta in metas))
        if GROUP_ORDINAL in like:
            group[GROUP_ORDINAL] = Value(I16, len(self._groups))
        self._groups.append(group)
        self.n_rows += n_rows
        return group

    def end(self, footer: Struct) -> None:
        """Write Bloom filters, page indexes and the footer, which is like the one given."""
        for each in self._indexes:
            self._bloom(each)
        for each in self._indexes:
            if COLUMNS_AT in each.old:
                at, length = number(each.old, COLUMNS_AT), number(each.old, COLUMNS_LENGTH)
                self._index(each.chunk, COLUMNS_AT, each.source.read(at, length))
        for each in self._indexes:
            if OFFSETS_AT in each.old:
                self._index(each.chunk, OFFSETS_AT, _moved_offsets(each))
        whole = dict(footer)
        whole[FILE_ROWS] = Value(I64, self.n_rows)
        whole[FILE_GROUPS] = Value(LIST, Listed(STRUCT, self._groups))
        raw = write_struct(whole)
        self.out.write(raw + len(raw).to_bytes(4, "little") + MAGIC)

    def _place(self, source: ParquetBytes, old: Struct) -> Struct:
        if CHUNK_PATH in old:
            raise ValueError("a column lies in another file")
        meta: Struct = dict(old[CHUNK_META].value)
        shift = self.out.tell() - _start(meta)
        for piece in source.chunk(old):
            self.out.write(piece)
        for key in (META_DATA_AT, META_INDEX_AT, META_DICTIONARY_AT):
            if number(meta, key):
                meta[key] = Value(I64, meta[key].value + shift)
        chunk = dict(old)
        chunk[CHUNK_META] = Value(STRUCT, meta)
        if number(old, CHUNK_OFFSET):
            chunk[CHUNK_OFFSET] = Value(I64, old[CHUNK_OFFSET].value + shift)
        self._indexes.append(_Indexes(chunk, source, old, shift))
        return chunk

    def _bloom(self, each: _Indexes) -> None:
        meta: Struct = each.chunk[CHUNK_META].value
        at, length = number(meta, META_BLOOM_AT), number(meta, META_BLOOM_LENGTH)
        if META_BLOOM_AT not in meta:
            return
        if not length:
            header, size = each.source.header(at)
            length = size + number(header, 1)
        meta[META_BLOOM_AT] = Value(I64, self.out.tell())
        for piece in each.source.pieces(at, length):
            self.out.write(piece)

    def _index(self, chunk: Struct, key: int, raw: bytes) -> None:
        chunk[key] = Value(I64, self.out.tell())
        chunk[key + 1] = Value(I32, len(raw))
        self.out.write(raw)


def _moved_offsets(each: _Indexes) -> bytes:
    """A chunk's offset index for its new place."""
    at, length = number(each.old, OFFSETS_AT), number(each.old, OFFSETS_LENGTH)
    index, _ = read_struct(each.source.read(at, length))
    for page in index[_PAGE_PLACES].value.entries:
        page[_PLACE_OFFSET] = Value(I64, page[_PLACE_OFFSET].value + each.shift)
    return write_struct(index)
