"""Bytes of a benchmark file, unpacked; what packed them is seen from the bytes, not the name."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import zstandard

from contam.errors import BenchmarkError
from contam.tables.files import open_file, read_file
from contam.tables.lfs import LFS_FACT, LFS_HEAD, LFS_HINT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SUFFIXES = frozenset({".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz"})
# Corpora and benchmarks packed with `zstd --long=31` need the widest window there is.
_ZSTD_WINDOW = 1 << 31


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A whole file: its unpacked bytes, the digest and size of what is on disk, and the codec."""

    data: bytes
    sha256: str
    size: int
    codec: str


def read_unpacked(path: Path) -> FileBytes:
    """Read and unpack a file. Raises BenchmarkError when it is unreadable, damaged or cut off."""
    try:
        raw = read_file(path)
    except OSError as error:
        raise unreadable(path, error) from error
    if raw.startswith(LFS_HEAD):
        raise lfs_pointer(path)
    digest = hashlib.sha256(raw).hexdigest()
    for magic, (codec, unpack) in _CODECS.items():
        if raw.startswith(magic):
            try:
                return FileBytes(unpack(raw), digest, len(raw), codec)
            except _DAMAGE as error:
                raise BenchmarkError(
                    f"{path}: the {codec} data is damaged or ends early ({error})",
                    hint="fetch the file again",
                ) from error
    return FileBytes(raw, digest, len(raw), "")


def lfs_pointer(path: Path) -> BenchmarkError:
    """The error for a file that a clone without Git LFS left a pointer of."""
    return BenchmarkError(f"{path} {LFS_FACT}", hint=LFS_HINT)


def refuse_pointer(path: Path) -> None:
    """Raise `lfs_pointer` for a pointer, and `unreadable` for what cannot be opened."""
    try:
        with open_file(path) as file:
            start = file.read(len(LFS_HEAD))
    except OSError as error:
        raise unreadable(path, error) from error
    if start == LFS_HEAD:
        raise lfs_pointer(path)


def unreadable(path: Path, error: OSError) -> BenchmarkError:
    """The error for a file that the system does not let us read."""
    reason = error.strerror or type(error).__name__
    return BenchmarkError(f"cannot read {path}: {reason}", hint="check the path and its rights")


def _unpack_zstd(raw: bytes) -> bytes:
    """All frames of a file; unlike the stream reader this notices a frame that is cut off."""
    pieces = []
    while raw:
        frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        pieces.append(frame.decompress(raw))
        if not frame.eof:
            raise EOFError("the last frame is not complete")
        raw = frame.unused_data
    return b"".join(pieces)


_CODECS: dict[bytes, tuple[str, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": ("gzip", gzip.decompress),
    b"\x28\xb5\x2f\xfd": ("zstd", _unpack_zstd),
    b"BZh": ("bzip2", bz2.decompress),
    b"\xfd7zXZ\x00": ("xz", lzma.decompress),
}
_DAMAGE = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
