"""Write a file of records again, packed as it was."""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import TYPE_CHECKING, Final, Protocol

import zstandard

from contam.corpus.streams import unreadable
from contam.files.compression import codec_of
from contam.files.disk import output_errors
from contam.files.listed import opened
from contam.files.single import created

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


_SKIPPABLE = b"\x2a\x4d\x18"


def write_again(
    path: str, target: Path, records: Iterable[bytes], *, members: bool
) -> tuple[str, ...]:
    """Write what becomes of the records of a file; returns what of its packing was not kept.

    members  whether each record of a packed file is a member of its own

    Raises ShardError when the file cannot be read, OutputError when the target cannot be written.
    """
    head = _head(path)
    codec = codec_of(head)
    with created(target) as out:
        for piece in _packed(codec, head, records, members=members) if codec else records:
            with output_errors(target):
                out.write(piece)
    return (f"the exact {codec} level and members",) if codec else ()


def _packed(codec: str, head: bytes, records: Iterable[bytes], *, members: bool) -> Iterator[bytes]:
    if not members:
        yield from pack(codec, head, records)
        return
    found = iter(records)
    # Without a record, a member of no bytes: an empty file would count as damaged.
    yield from pack(codec, head, (next(found, b""),))
    for record in found:
        yield from pack(codec, head, (record,))


def _head(path: str) -> bytes:
    """The first bytes of a file, or of its first frame of zstd that holds data."""
    try:
        with opened(path) as file:
            head = file.read(HEAD_BYTES)
            while head[1:4] == _SKIPPABLE:
                file.seek(int.from_bytes(head[4:8], "little") + 8 - len(head), 1)
                head = file.read(HEAD_BYTES)
            return head
    except OSError as error:
        raise unreadable(path, error) from error


HEAD_BYTES: Final = 18
"""As many first bytes of a member as say how it was packed."""

_ZSTD_LEVEL: Final = 3
_XZ_PRESET: Final = 6
# A frame of zstd says its size first. Longer ones would not fit the memory a worker may use.
_MOST_SIZED: Final = 64 << 20
_GZIP_LEVELS: Final = {2: 9, 4: 1}


class _Packer(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def pack(codec: str, head: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """One member of these bytes, made as far as possible as the one that began with `head`."""
    size = None
    if codec == "zstd" and _states_size(head):
        pieces, size = _sized(pieces)
    packer = _packer(codec, head, size)
    for piece in pieces:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


def _packer(codec: str, head: bytes, size: int | None) -> _Packer:
    if codec == "gzip":
        # The header tells the highest and the lowest level from all others.
        return zlib.compressobj(_GZIP_LEVELS.get(head[8], 6), zlib.DEFLATED, 31)
    if codec == "zstd":
        return zstandard.ZstdCompressor(
            level=_ZSTD_LEVEL,
            write_checksum=zstandard.get_frame_parameters(head).has_checksum,
            write_content_size=size is not None,
        ).compressobj(size=-1 if size is None else size)
    if codec == "bz2":
        return bz2.BZ2Compressor(head[3] - ord("0"))
    return lzma.LZMACompressor(lzma.FORMAT_XZ, check=head[7] & 15, preset=_XZ_PRESET)


def _states_size(head: bytes) -> bool:
    size = zstandard.get_frame_parameters(head).content_size
    return bool(size != zstandard.CONTENTSIZE_UNKNOWN)


def _sized(pieces: Iterable[bytes]) -> tuple[Iterable[bytes], int | None]:
    """The pieces and how many bytes they have; None when they are too many to be counted first."""
    rest = iter(pieces)
    first, size = [], 0
    for piece in rest:
        first.append(piece)
        size += len(piece)
        if size > _MOST_SIZED:
            return _chained(first, rest), None
    return first, size


def _chained(first: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    yield from first
    yield from rest
