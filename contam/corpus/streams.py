"""Compressed byte streams: bounded memory, every member, and no quiet end in the middle."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from contam.errors import ShardError

READ_BYTES = 1 << 20
_MIN_FEED = 1 << 10
# Published corpora use windows up to 2 GiB (`zstd --long=31`); common readers refuse above 128 MiB.
_MAX_WINDOW = 1 << 31
_UNSUPPORTED = ((b"\x04\x22\x4d\x18", "lz4"), (b"PK\x03\x04", "zip"), (b"\xff\x06\x00\x00s", "snappy"))
_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".xz": "xz"}


def chunks(path: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in pieces of a few megabytes at most.

    The compression is told by the file's first bytes; a name that promises another one is an
    error. Raises ShardError when the file cannot be opened, is cut off or is corrupt.
    """
    try:
        with Path(path).open("rb") as file:
            kind = _kind(path, file)
            file.seek(0)
            if kind == "":
                while piece := file.read(READ_BYTES):
                    yield piece
            else:
                yield from _members(path, file, _FACTORIES[kind], kind)
    except OSError as error:
        raise ShardError(
            f"{path}: cannot be read: {error.strerror or error}", shard=path
        ) from error


def _kind(path: str, file: BinaryIO) -> str:
    head = file.read(8)
    promised = _SUFFIXES.get(Path(path).suffix.lower(), "")
    found = ""
    if head[:2] == b"\x1f\x8b":
        found = "gzip"
    elif head[:4] == b"\x28\xb5\x2f\xfd" or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        found = "zstd"
    elif head[:3] == b"BZh":
        found = "bz2"
    elif head[:6] == b"\xfd7zXZ\x00":
        found = "xz"
    for magic, name in _UNSUPPORTED:
        if head.startswith(magic):
            raise ShardError(
                f"{path}: {name} compression is not supported",
                shard=path,
                hint="recompress it as .gz, .zst, .bz2 or .xz",
            )
    if promised and not found and not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        what = "empty" if not head else f"not {promised}"
        raise ShardError(
            f"{path}: named as {promised} but {what}", shard=path, hint="copy the file again"
        )
    return found


def _members(
    path: str, file: BinaryIO, factory: Callable[[], Any], kind: str
) -> Iterator[bytes]:
    """Decompress members one after another; zero padding may follow the last."""
    feed = _MIN_FEED * 4
    decoder: Any = None
    pending = b""
    while True:
        data = pending or file.read(feed)
        pending = b""
        if not data:
            break
        if decoder is None:
            if not data.strip(b"\0"):
                continue
            decoder = factory()
        try:
            out = decoder.decompress(data)
        except (zlib.error, OSError, lzma.LZMAError, zstandard.ZstdError, ValueError) as error:
            raise ShardError(
                f"{path}: corrupt {kind} data: {error}",
                shard=path,
                hint="copy the file again, or leave it out",
            ) from error
        if decoder.eof:
            pending = decoder.unused_data
            decoder = None
        # Highly repetitive text unpacks a thousandfold: feed less when much comes out.
        if len(out) > 4 * READ_BYTES:
            feed = max(_MIN_FEED, feed // 4)
        elif len(out) < READ_BYTES:
            feed = min(READ_BYTES, feed * 2)
        if out:
            yield out
    if decoder is not None:
        raise ShardError(
            f"{path}: {kind} data ends in the middle",
            shard=path,
            hint="the file is truncated: copy it again, or leave it out",
        )


def _zstd() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()


_FACTORIES: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "zstd": _zstd,
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
}
