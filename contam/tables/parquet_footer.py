"""Parse and check a Parquet footer before the library sees it.

The library ends the whole process over metadata of a column that it cannot decrypt or does not
understand. So what we need of the layout is read here, in Python, and nothing of it is asked of
the library.

Format: Thrift's compact protocol, https://github.com/apache/thrift/tree/master/doc/specs, and the
numbers of the fields, https://github.com/apache/parquet-format/tree/master/src/main/thrift
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC: Final = b"PAR1"
ENCRYPTED_MAGIC: Final = b"PARE"
TAIL_BYTES: Final = 8
"""The length of the footer, and the magic word that ends the file."""

# Types of the compact protocol; true and false are types of their own.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_NUMBERS: Final = (_I16, _I32, _I64)
_LISTS: Final = (_LIST, _SET)
# Bytes of values that always take as many.
_FIXED: Final = {_BYTE: 1, _DOUBLE: 8}
_LONG_LIST: Final = 15
_MOST_VARINT_BITS: Final = 63
_MOST_DEPTH: Final = 32
# Below it, the number of a field follows its type; from it on, the length of a text has two bytes.
_LONG_STEP: Final = 16
_LONG_TEXT: Final = 128

# Numbers of the fields that matter here.
_FILE_ROWS, _FILE_GROUPS, _FILE_ENCRYPTION = 3, 4, 8
_GROUP_CHUNKS, _GROUP_BYTES, _GROUP_ROWS = 1, 2, 3
_CHUNK_META, _CHUNK_CRYPTO, _CHUNK_ENCRYPTED_META = 3, 8, 9
_META_TYPE, _META_PATH, _META_UNCOMPRESSED = 1, 3, 6
_TYPES: Final = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)


class FooterError(ValueError):
    """A footer that is damaged or contradicts itself."""


class EncryptedError(FooterError):
    """A file that is encrypted, whole or in some of its columns."""


class FooterGroup(NamedTuple):
    """One row group.

    n_rows   its rows
    n_bytes  bytes that its columns unpack to, together
    sizes    bytes that each leaf column unpacks to, in the order of the schema
    """

    n_rows: int
    n_bytes: int
    sizes: tuple[int, ...]


class Layout(NamedTuple):
    """The rows of a file and its row groups.

    leaves  the leaf columns, as its first row group has them: dotted path and type; none without
            a row group
    """

    n_rows: int
    groups: tuple[FooterGroup, ...]
    leaves: tuple[tuple[str, str], ...]


def layout_of(footer: bytes) -> Layout:
    """Read a footer, given without its length and magic word.

    Raises FooterError when it is damaged, EncryptedError where anything is encrypted.
    """
    try:
        return _Reader(footer).file()
    except IndexError:
        raise FooterError("its footer ends too early") from None


class _Reader:
    """Reads one footer from its beginning. Raises FooterError, and IndexError past its end."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0
        self._leaves: list[tuple[str, str]] = []
        self._is_first = True

    def file(self) -> Layout:
        n_rows: int | None = None
        groups: list[FooterGroup] | None = None
        for field, kind in self._fields():
            if field == _FILE_ROWS:
                n_rows = self._count(kind)
            elif field == _FILE_GROUPS:
                groups = [self._group() for _ in range(self._n_listed(kind, _STRUCT))]
            elif field == _FILE_ENCRYPTION:
                raise EncryptedError
            else:
                self._skip(kind, 0)
        if n_rows is None or groups is None:
            raise FooterError("its footer does not tell its rows")
        if sum(group.n_rows for group in groups) != n_rows:
            raise FooterError("its footer tells of more or fewer rows than its row groups have")
        return Layout(n_rows, tuple(groups), tuple(self._leaves))

    def _group(self) -> FooterGroup:
        n_rows = n_bytes = -1
        sizes: tuple[int, ...] | None = None
        for field, kind in self._fields():
            if field == _GROUP_CHUNKS:
                sizes = tuple(self._chunk() for _ in range(self._n_listed(kind, _STRUCT)))
            elif field == _GROUP_BYTES:
                n_bytes = self._count(kind)
            elif field == _GROUP_ROWS:
                n_rows = self._count(kind)
            else:
                self._skip(kind, 0)
        if n_rows < 0 or n_bytes < 0 or sizes is None:
            raise FooterError("a row group lacks its rows, its size or its columns")
        self._is_first = False
        return FooterGroup(n_rows, n_bytes, sizes)

    def _chunk(self) -> int:
        size: int | None = None
        for field, kind in self._fields():
            if field == _CHUNK_META and kind == _STRUCT:
                size = self._size()
            elif field in (_CHUNK_CRYPTO, _CHUNK_ENCRYPTED_META):
                raise EncryptedError
            else:
                self._skip(kind, 0)
        if size is None:
            raise FooterError("a column of a row group is not described")
        return size

    def _size(self) -> int:
        path, type_number = "", -1
        for field, kind in self._fields():
            if field == _META_UNCOMPRESSED:
                size = self._count(kind)
                self._skip_struct(0)
                if self._is_first:
                    self._leaves.append((path, _type_name(type_number)))
                return size
            if field == _META_TYPE:
                type_number = self._count(kind)
            elif field == _META_PATH and self._is_first:
                path = self._path(kind)
            else:
                self._skip(kind, 0)
        raise FooterError("a column of a row group has no size")

    def _path(self, kind: int) -> str:
        steps = []
        for _ in range(self._n_listed(kind, _BINARY)):
            length = self._varint()
            steps.append(self._raw[self._at : self._at + length])
            self._at += length
        return b".".join(steps).decode("utf-8", "replace")

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct, whose value the caller has to take."""
        field = 0
        while head := self._raw[self._at]:
            self._at += 1
            step = head >> 4
            field = field + step if step else self._number()
            yield field, head & 15
        self._at += 1

    def _n_listed(self, kind: int, entry: int) -> int:
        """Entries of a list that has to be one of type `entry`."""
        if kind != _LIST:
            raise FooterError("its footer has something else where a list belongs")
        n_entries, inner = self._list_head()
        if n_entries and inner != entry:
            raise FooterError("its footer has a list of something else")
        return n_entries

    def _list_head(self) -> tuple[int, int]:
        """Entries of a list and their type."""
        head = self._raw[self._at]
        self._at += 1
        n_entries = head >> 4
        if n_entries == _LONG_LIST:
            n_entries = self._varint()
        if n_entries > len(self._raw) - self._at:
            raise FooterError("its footer has a list that is longer than itself")
        return n_entries, head & 15

    def _count(self, kind: int) -> int:
        """A number of something."""
        if kind not in _NUMBERS:
            raise FooterError("its footer has something else where a number belongs")
        number = self._number()
        if number < 0:
            raise FooterError("its footer has a count below zero")
        return number

    def _number(self) -> int:
        zigzag = self._varint()
        return (zigzag >> 1) ^ -(zigzag & 1)

    def _varint(self) -> int:
        raw, at = self._raw, self._at
        found = shift = 0
        while (byte := raw[at]) & 128:
            found |= (byte & 127) << shift
            shift += 7
            at += 1
            if shift > _MOST_VARINT_BITS:
                raise FooterError("its footer has a number of more than 64 bits")
        self._at = at + 1
        return found | byte << shift

    def _skip(self, kind: int, depth: int, *, listed: bool = False) -> None:
        """Pass over a value; truth values take a byte only where they are `listed`."""
        if kind in _NUMBERS:
            raw, at = self._raw, self._at
            while raw[at] & 128:
                at += 1
            self._at = at + 1
        elif kind == _BINARY:
            length = self._varint()
            self._at += length
        elif kind in (_TRUE, _FALSE):
            self._at += listed
        elif kind in _FIXED:
            self._at += _FIXED[kind]
        elif depth == _MOST_DEPTH:
            raise FooterError("its footer is nested too deeply")
        elif kind == _STRUCT:
            self._skip_struct(depth)
        elif kind in _LISTS:
            n_entries, inner = self._list_head()
            for _ in range(n_entries):
                self._skip(inner, depth + 1, listed=True)
        elif kind == _MAP:
            self._skip_map(depth)
        else:
            raise FooterError("its footer has a value of an unknown type")
        if self._at > len(self._raw):
            raise FooterError("its footer ends too early")

    def _skip_struct(self, depth: int) -> None:
        # Most of a footer are short numbers and texts in structs: they are skipped in place.
        raw, at = self._raw, self._at
        while head := raw[at]:
            kind = head & 15
            at += 1
            if head < _LONG_STEP:
                while raw[at] & 128:
                    at += 1
                at += 1
            if kind in _NUMBERS:
                while raw[at] & 128:
                    at += 1
                at += 1
            elif kind == _BINARY and raw[at] < _LONG_TEXT:
                at += 1 + raw[at]
            elif kind > _FALSE:
                self._at = at
                self._skip(kind, depth + 1)
                at = self._at
        self._at = at + 1

    def _skip_map(self, depth: int) -> None:
        n_entries = self._varint()
        if not n_entries:
            return
        kinds = self._raw[self._at]
        self._at += 1
        if n_entries > len(self._raw) - self._at:
            raise FooterError("its footer has a map that is longer than itself")
        for _ in range(n_entries):
            self._skip(kinds >> 4, depth + 1, listed=True)
            self._skip(kinds & 15, depth + 1, listed=True)


def _type_name(number: int) -> str:
    if not 0 <= number < len(_TYPES):
        raise FooterError("a column has a type that is not known")
    return _TYPES[number]
