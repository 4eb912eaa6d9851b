"""Find out how strongly the pages of a Parquet file were compressed, which it does not say.

Pages are compressed again: a level that gives their very bytes is the one they had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from contam.tables import parquet_splice as splice
from contam.tables.parquet_splice import number
from contam.tables.thrift import FALSE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.tables.parquet_splice import ParquetBytes
    from contam.tables.thrift import Struct

#: Codecs that have levels, and these from fast to strong. Those of zstd below 1 are hardly used.
_LEVELS: Final = {"gzip": range(1, 10), "brotli": range(12), "zstd": range(1, 23)}
LEVELLED: Final = frozenset(_LEVELS)

#: So many bytes may be compressed to try some levels on a page, and on so many pages.
_QUICK_BYTES: Final = 3 << 20
_MOST_QUICK: Final = 8
#: Shorter pages are the same at most levels.
_TELLING_BYTES: Final = 1 << 10
#: A stronger level may give a few bytes more: so many are tried behind the first that is enough.
_MORE_LEVELS: Final = 2

_HEADER_SIZE, _HEADER_PACKED, _HEADER_V2 = 2, 3, 8
_V2_DEFINED, _V2_REPEATED, _V2_IS_PACKED = 5, 6, 7


class _Page(NamedTuple):
    """A page without what is never compressed in it: its bytes, and how many they unpack to."""

    packed: bytes
    size: int


class Level(NamedTuple):
    """A level of a codec.

    is_sure  whether pages that it compresses are the same bytes; else they are about as long
    """

    level: int
    is_sure: bool


def level_of(codec: str, source: ParquetBytes, chunks: Sequence[Struct]) -> Level:
    """The level of column chunks that were compressed with one codec, a name in `LEVELLED`.

    What is small is looked at first, and what is large only if it must be: the cost is that of
    compressing a few pages.
    """
    pages = sorted(
        (page for chunk in _chosen(chunks) for page in _pages(source, chunk)),
        key=lambda page: page.size,
    )
    if not pages:
        return Level(pa.Codec(codec).compression_level, is_sure=True)
    levels = list(_LEVELS[codec])
    for page in pages:
        if page.size * len(levels) > _QUICK_BYTES:
            break
        raw = _codec(codec, levels[0]).decompress(page.packed, page.size)
        levels = [level for level in levels if _packed(codec, level, raw) == page.packed]
        if len(levels) == 1:
            return Level(levels[0], is_sure=True)
        if not levels:
            break
    return _by_size(codec, pages[-1], levels or list(_LEVELS[codec]))


def _chosen(chunks: Sequence[Struct]) -> list[Struct]:
    """Some small chunks that tell something, and the largest one."""
    by_size = sorted(chunks, key=_size)
    telling = [chunk for chunk in by_size if _size(chunk) >= _TELLING_BYTES] or by_size
    return [*telling[:_MOST_QUICK], *telling[_MOST_QUICK:][-1:]]


def _size(chunk: Struct) -> int:
    return number(chunk[splice.CHUNK_META].value, splice.META_SIZE)


def _pages(source: ParquetBytes, chunk: Struct) -> Iterator[_Page]:
    """The dictionary of a chunk and its first data page, as far as they are compressed."""
    meta = chunk[splice.CHUNK_META].value
    for key in (splice.META_DICTIONARY_AT, splice.META_DATA_AT):
        if not (at := number(meta, key)):
            continue
        header, length = source.header(at)
        bare = 0
        if _HEADER_V2 in header:
            head: Struct = header[_HEADER_V2].value
            if _V2_IS_PACKED in head and head[_V2_IS_PACKED].kind == FALSE:
                continue
            bare = number(head, _V2_DEFINED) + number(head, _V2_REPEATED)
        size, packed = number(header, _HEADER_SIZE) - bare, number(header, _HEADER_PACKED) - bare
        if size > 0:
            yield _Page(source.read(at + length + bare, packed), size)


def _by_size(codec: str, page: _Page, levels: Sequence[int]) -> Level:
    """The level of some, from fast to strong, that makes a page about as long as it is."""
    raw = _codec(codec, levels[0]).decompress(page.packed, page.size)
    best, least, more = levels[0], len(raw), _MORE_LEVELS
    for level in levels:
        made = _packed(codec, level, raw)
        if made == page.packed:
            return Level(level, is_sure=True)
        off = abs(len(made) - len(page.packed))
        if off < least:
            best, least = level, off
        if len(made) <= len(page.packed):
            if not more:
                break
            more -= 1
    return Level(best, is_sure=False)


def _packed(codec: str, level: int, raw: bytes) -> bytes:
    return bytes(_codec(codec, level).compress(raw, asbytes=True))


def _codec(name: str, level: int) -> pa.Codec:
    return pa.Codec(name, compression_level=level)
