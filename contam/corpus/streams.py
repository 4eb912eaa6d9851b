"""Compressed byte streams: bounded memory, every member, and no quiet end in the middle."""

from __future__ import annotations

import bz2
import lzma
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

import zstandard

from contam.errors import ShardError
from contam.tables.listed import opened, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE_BYTES = 1 << 20
_FEED_BYTES = 256 << 10
# Published corpora use windows up to 2 GiB (`zstd --long=31`); common readers stop at 128 MiB.
_MAX_WINDOW = 1 << 31
_MAX_XZ_MEMORY = 512 << 20
# The zstd binding cannot bound its output, and repetitive text unpacks thirty-thousandfold: it is
# fed small steps, smaller ones while much comes out.
_ZSTD_STEP = 4 << 10
_ZSTD_MIN_STEP = 256
_ZSTD_FULL_OUTPUT = 256 << 10

_UNSUPPORTED = (
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PK\x03\x04", "zip"),
    (b"\xff\x06\x00\x00s", "snappy"),
)
_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".xz": "xz"}


def pieces(path: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file, about a megabyte at a time.

    The file's first bytes tell its compression; a name that promises another one is an error.
    Raises ShardError when the file cannot be opened, ends in the middle, is corrupt or is not as it
    was listed.
    """
    try:
        with opened(path) as file:
            kind = _compression(path, file.read(8))
            file.seek(0)
            if kind:
                yield from _members(path, file, kind)
            else:
                while piece := file.read(PIECE_BYTES):
                    yield piece
            _check_all_read(path, file)
    except OSError as error:
        raise ShardError(
            f"{path}: cannot be read: {error.strerror or error}",
            shard=path,
            hint="check that the file is there and may be read",
        ) from error


def is_plain(path: str) -> bool:
    """Say whether a file is not compressed; False, too, when it cannot be opened."""
    try:
        with opened(path) as file:
            return not _compression(path, file.read(8))
    except (OSError, ShardError):
        return False


class _Decoder(Protocol):
    """What the loop below needs; the standard library's bz2 and xz decoders have it."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Gzip:
    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._decoder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)


class _Zstd:
    def __init__(self) -> None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
        self._decoder = decompressor.decompressobj()
        self._input = b""
        self._position = 0
        self._step = _ZSTD_STEP

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return self._position >= len(self._input)

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data + self._input[self._position :]

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if data:
            self._input = self._input[self._position :] + data
            self._position = 0
        found = []
        size = 0
        while not self.needs_input and not self.eof and size < max_length:
            end = self._position + self._step
            out = self._decoder.decompress(self._input[self._position : end])
            self._position = min(end, len(self._input))
            full = len(out) > _ZSTD_FULL_OUTPUT
            self._step = _ZSTD_MIN_STEP if full else min(_ZSTD_STEP, self._step * 2)
            found.append(out)
            size += len(out)
        return b"".join(found)


def _xz() -> _Decoder:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_XZ_MEMORY)


_DECODERS: dict[str, Callable[[], _Decoder]] = {
    "gzip": _Gzip,
    "zstd": _Zstd,
    "bz2": bz2.BZ2Decompressor,
    "xz": _xz,
}


def _compression(path: str, head: bytes) -> str:
    for magic, name in _UNSUPPORTED:
        if head.startswith(magic):
            raise ShardError(
                f"{path}: {name} compression is not supported",
                shard=path,
                hint="recompress it as .gz, .zst, .bz2 or .xz",
            )
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd") or _is_skippable_frame(head):
        return "zstd"
    if head.startswith(b"BZh"):
        return "bz2"
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    promised = _SUFFIXES.get(Path(path).suffix.lower())
    if promised and not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        raise ShardError(
            f"{path}: named as {promised} but {'not that' if head else 'empty'}",
            shard=path,
            hint="copy the file again, or leave it out",
        )
    return ""


def _check_all_read(path: str, file: BinaryIO) -> None:
    """Raise ShardError when the system told the end of a file before its last byte."""
    n_read, size = file.tell(), state_of(path).size
    if n_read != size:
        raise ShardError(
            f"{path}: {n_read:,} of its {size:,} bytes could be read",
            shard=path,
            hint="check the disk or the network it lies on, or copy it again",
        )


def _is_skippable_frame(head: bytes) -> bool:
    # Parallel and seekable zstd writers put such a frame first.
    return head[1:4] == b"\x2a\x4d\x18" and head[:1] in b"PQRSTUVWXYZ[\\]^_"


def _members(path: str, file: BinaryIO, kind: str) -> Iterator[bytes]:
    """Decompress members one after another; zero padding may stand between and after them."""
    decoder: _Decoder | None = None
    rest = b""
    while True:
        data = b""
        if decoder is None or decoder.needs_input:
            data = rest or file.read(_FEED_BYTES)
            rest = b""
            if not data:
                break
        if decoder is None:
            data = data.lstrip(b"\0")
            if not data:
                continue
            decoder = _DECODERS[kind]()
        try:
            out = decoder.decompress(data, PIECE_BYTES)
        except (zlib.error, OSError, EOFError, lzma.LZMAError, zstandard.ZstdError) as error:
            raise ShardError(
                f"{path}: corrupt {kind} data: {error}",
                shard=path,
                hint="copy the file again, or leave it out",
            ) from error
        if out:
            yield out
        if decoder.eof:
            rest = decoder.unused_data
            decoder = None
    if decoder is not None:
        raise ShardError(
            f"{path}: {kind} data ends in the middle",
            shard=path,
            hint="the file is truncated: copy it again, or leave it out",
        )
