"""Take pages of texts in a Parquet file apart, and put them together with other texts.

Only pages of columns that are not nested, whose texts are written in full or by their number in a
dictionary. What pages look like: https://github.com/apache/parquet-format, README and Encodings.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from contam.tables.parquet_splice import DATA_PAGE_V2, PAGE_CRC, PAGE_TYPE, number
from contam.tables.thrift import FALSE, I32, STRUCT, TRUE, Struct, Value, read_struct, write_struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from contam.tables.parquet_splice import Raw

DATA_PAGE, DICTIONARY_PAGE = 0, 2
PLAIN: Final = 0
BY_DICTIONARY: Final = (2, 8)

_SIZE, _PACKED = 2, 3
#: Where the header of a page says more, by the kind of the page.
_MORE: Final = {DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_V2: 8}
#: Fields there: of all kinds the first is the number of values.
_N_VALUES, _ENCODING, _LEVELS_ENCODING, _STATISTICS = 1, 2, 3, 5
_V2_NULLS, _V2_ROWS, _V2_ENCODING, _V2_DEFINED, _V2_REPEATED, _V2_IS_PACKED, _V2_STATISTICS = range(
    2, 9
)
_IS_SORTED: Final = 3
_RLE: Final = 3
#: A length that is written before what it is of.
_LENGTH: Final = struct.Struct("<I")
LENGTH_BYTES: Final = _LENGTH.size
_VARINT_BITS: Final = 7


class UnfitError(ValueError):
    """Pages, or what is said of them, of a kind that is left to the library."""


class Packing:
    """A codec of a level, named as in `pyarrow.Codec`; "none" leaves bytes as they are."""

    def __init__(self, codec: str, level: int | None = None) -> None:
        self._codec = None if codec == "none" else pa.Codec(codec, compression_level=level)
        self._held = bytearray()

    def pack(self, pieces: Sequence[Raw]) -> tuple[bytes, int]:
        """Compress pieces as one; returns this, and how many bytes they are."""
        size = sum(map(len, pieces))
        if self._codec is None or not size:
            return b"".join(pieces), size
        # Put together where others were: memory that is new takes longer than what is copied.
        if size > len(self._held):
            self._held = bytearray(size)
        held, at = memoryview(self._held), 0
        for piece in pieces:
            held[at : at + len(piece)] = piece
            at += len(piece)
        packed: bytes = self._codec.compress(held[:size], asbytes=True)
        return packed, size

    def unpack(self, raw: Raw, size: int) -> memoryview:
        """Decompress to so many bytes."""
        made = raw if self._codec is None else self._codec.decompress(raw, size)
        # Bytes of the library's buffers have signs.
        found = memoryview(made).cast("B")
        if len(found) != size:
            raise ValueError("a page has another size than its header says")
        return found


_UNPACKED: Final = Packing("none")


class Page(NamedTuple):
    """A page as it is stored: its header, the same as bytes, and what follows it."""

    header: Struct
    head: Raw
    body: Raw

    @property
    def kind(self) -> int:
        """One of those that `contam.tables.parquet_pages` has names for."""
        return number(self.header, PAGE_TYPE)

    @property
    def more(self) -> Struct:
        """What its header says by its kind."""
        found: Struct = self.header[_MORE[self.kind]].value
        return found

    @property
    def encoding(self) -> int:
        """How its values are written."""
        return number(self.more, _V2_ENCODING if self.kind == DATA_PAGE_V2 else _ENCODING)

    @property
    def n_values(self) -> int:
        """Its rows; of a dictionary, its texts."""
        return number(self.more, _N_VALUES)

    @property
    def statistics(self) -> Struct | None:
        """Those in its header."""
        said = self.more.get(_V2_STATISTICS if self.kind == DATA_PAGE_V2 else _STATISTICS)
        return None if said is None or self.kind == DICTIONARY_PAGE else said.value

    @property
    def size(self) -> int:
        """Bytes with the header, unpacked."""
        return len(self.head) + number(self.header, _SIZE)

    def remade(self, body: bytes, size: int, more: Struct) -> Page:
        """The page with another body, which unpacks to so many bytes."""
        header = {
            **self.header,
            _SIZE: Value(I32, size),
            _PACKED: Value(I32, len(body)),
            _MORE[self.kind]: Value(STRUCT, more),
        }
        if PAGE_CRC in header:
            header[PAGE_CRC] = Value(I32, _signed(zlib.crc32(body)))
        return Page(header, write_struct(header), body)


def _signed(crc: int) -> int:
    return crc - (1 << 32) if crc >> 31 else crc


def pages_of(raw: bytes) -> Iterator[Page]:
    """The pages of a column chunk; raises UnfitError for those of an unknown kind."""
    view, at = memoryview(raw), 0
    while at < len(raw):
        header, begin = read_struct(view, at)
        end = begin + number(header, _PACKED)
        kind = number(header, PAGE_TYPE)
        if kind not in _MORE or _MORE[kind] not in header:
            raise UnfitError("a page of another kind")
        if not begin <= end <= len(raw):
            raise ValueError("a page ends behind its column")
        yield Page(header, view[at:begin], view[begin:end])
        at = end


def checked(page: Page) -> Page:
    """The page; raises ValueError where its checksum is another."""
    if PAGE_CRC in page.header and page.header[PAGE_CRC].value != _signed(zlib.crc32(page.body)):
        raise ValueError("a page has another checksum than its header says")
    return page


class Values(NamedTuple):
    """What a data page holds.

    present  which rows have a value;  raw  the values as they are encoded
    """

    present: NDArray[np.bool_]
    raw: memoryview


def values_of(page: Page, packing: Packing, *, is_nullable: bool) -> Values:
    """Take a data page apart. Raises UnfitError."""
    page, more, n_rows = checked(page), page.more, page.n_values
    size = number(page.header, _SIZE)
    if page.kind == DATA_PAGE_V2:
        n_levels = number(more, _V2_DEFINED)
        if number(more, _V2_REPEATED) or number(more, _V2_ROWS) != n_rows:
            raise UnfitError("a page of a nested column")
        levels, raw = memoryview(page.body)[:n_levels], memoryview(page.body)[n_levels:]
        if raw and (_V2_IS_PACKED not in more or more[_V2_IS_PACKED].kind == TRUE):
            raw = packing.unpack(raw, size - n_levels)
    else:
        raw, levels = packing.unpack(page.body, size), memoryview(b"")
        if is_nullable:
            if number(more, _LEVELS_ENCODING) != _RLE:
                raise UnfitError("levels of another encoding")
            n_levels = LENGTH_BYTES + int.from_bytes(raw[:LENGTH_BYTES], "little")
            levels, raw = raw[LENGTH_BYTES:n_levels], raw[n_levels:]
    if not is_nullable:
        return Values(np.ones(n_rows, np.bool_), raw)
    return Values(read_numbers(levels, 1, n_rows).astype(np.bool_), raw)


def data_page(
    like: Page,
    present: NDArray[np.bool_],
    values: Sequence[Raw],
    statistics: Struct | None,
    packing: Packing,
    *,
    is_nullable: bool,
) -> Page:
    """Put a data page together; all that is not given is as in another one."""
    n_rows = len(present)
    levels = written_numbers(present.astype(np.int64), 1) if is_nullable else b""
    more = {**like.more, _N_VALUES: Value(I32, n_rows)}
    at = _V2_STATISTICS if like.kind == DATA_PAGE_V2 else _STATISTICS
    if statistics is not None:
        more[at] = Value(STRUCT, statistics)
    if like.kind == DATA_PAGE:
        before = [_LENGTH.pack(len(levels)), levels] if is_nullable else []
        return like.remade(*packing.pack([*before, *values]), more)
    is_packed = any(values) and (_V2_IS_PACKED not in more or more[_V2_IS_PACKED].kind == TRUE)
    body, size = packing.pack(values) if is_packed else _UNPACKED.pack(values)
    more |= {
        _V2_NULLS: Value(I32, n_rows - int(present.sum())),
        _V2_ROWS: Value(I32, n_rows),
        _V2_DEFINED: Value(I32, len(levels)),
        _V2_IS_PACKED: Value(TRUE if is_packed else FALSE, None),
    }
    return like.remade(levels + body, len(levels) + size, more)


def dictionary_page(like: Page, texts: Sequence[Raw], n_texts: int, packing: Packing) -> Page:
    """Put a dictionary together of texts, each behind its length."""
    more = {**like.more, _N_VALUES: Value(I32, n_texts)}
    if _IS_SORTED in more:
        more[_IS_SORTED] = Value(FALSE, None)
    return like.remade(*packing.pack(texts), more)


def dictionary_of(page: Page, packing: Packing) -> memoryview:
    """The texts of a dictionary, each behind its length."""
    return packing.unpack(checked(page).body, number(page.header, _SIZE))


def after_length(text: bytes) -> bytes:
    """A text behind its length."""
    return _LENGTH.pack(len(text)) + text


def places_of(raw: memoryview, n_texts: int) -> list[int]:
    """Where each text of a row of them begins with its length, and where the last one ends."""
    places, at, length = [0], 0, _LENGTH.unpack_from
    try:
        for _ in range(n_texts):
            at += LENGTH_BYTES + length(raw, at)[0]
            places.append(at)
    except struct.error:
        at = -1
    if at != len(raw):
        raise ValueError("a page ends before its last text, or behind it")
    return places


def read_numbers(raw: Raw, width: int, n_numbers: int) -> NDArray[np.int64]:
    """Numbers of so many bits, in runs of equal ones or packed: int64[n_numbers]."""
    found = np.zeros(n_numbers, np.int64)
    done = at = 0
    while done < n_numbers and width:
        head, at = _varint(raw, at)
        n_run = head >> 1
        if head & 1:
            packed = np.frombuffer(raw[at : at + n_run * width], np.uint8)
            flat = np.unpackbits(packed, bitorder="little")
            bits = flat[: len(flat) // width * width].reshape(-1, width)
            run = bits[: n_numbers - done] @ (1 << np.arange(width, dtype=np.int64))
            at += n_run * width
        else:
            n_bytes = -(-width // 8)
            value = int.from_bytes(raw[at : at + n_bytes], "little")
            run = np.full(min(n_run, n_numbers - done), value)
            at += n_bytes
        if not len(run) or at > len(raw):
            raise ValueError("the levels or numbers of a page end too early")
        found[done : done + len(run)] = run
        done += len(run)
    return found


def written_numbers(numbers: NDArray[np.int64], width: int) -> bytes:
    """The same the other way: one run."""
    if not len(numbers):
        return b""
    if (numbers == numbers[0]).all():
        return _as_varint(len(numbers) << 1) + int(numbers[0]).to_bytes(-(-width // 8), "little")
    n_groups = -(-len(numbers) // 8)
    whole = np.zeros(n_groups * 8, np.int64)
    whole[: len(numbers)] = numbers
    bits = (whole[:, None] >> np.arange(width)).astype(np.uint8) & 1
    return _as_varint(n_groups << 1 | 1) + np.packbits(bits, bitorder="little").tobytes()


def _varint(raw: Raw, at: int) -> tuple[int, int]:
    found = shift = 0
    for place in range(at, len(raw)):
        found |= (raw[place] & 127) << shift
        if raw[place] < 1 << _VARINT_BITS:
            return found, place + 1
        shift += _VARINT_BITS
    raise ValueError("the levels or numbers of a page end too early")


def _as_varint(number: int) -> bytes:
    made = bytearray()
    while number >> _VARINT_BITS:
        made.append(number & 127 | 128)
        number >>= _VARINT_BITS
    made.append(number)
    return bytes(made)
