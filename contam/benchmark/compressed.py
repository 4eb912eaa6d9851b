"""Unpack benchmark files; the bytes, not the name, determine the compression."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.errors import BenchmarkError, Public, Remedy
from contam.files.compression import DamagedError, codec_of, unpack
from contam.files.lfs import LFS_FACT, LFS_HEAD
from contam.files.single import open_file, read_file

if TYPE_CHECKING:
    from pathlib import Path

SUFFIXES = frozenset({".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz"})
#: As results and messages have always called the codecs.
_NAMES = {"gzip": "gzip", "zstd": "zstd", "bz2": "bzip2", "xz": "xz"}


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
    if codec := codec_of(raw):
        name = _NAMES[codec]
        try:
            return FileBytes(unpack(codec, raw), digest, len(raw), name)
        except DamagedError as error:
            raise BenchmarkError(
                "{}: the {} data is damaged or ends early ({})", path, Public(name), Public(error),
                remedy=Remedy.COPY_AGAIN,
            ) from error  # fmt: skip
    return FileBytes(raw, digest, len(raw), "")


def lfs_pointer(path: Path) -> BenchmarkError:
    """The error for a file that a clone without Git LFS left a pointer of."""
    return BenchmarkError("{} {}", path, Public(LFS_FACT), remedy=Remedy.RUN_GIT_LFS_PULL)


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
    return BenchmarkError(
        "cannot read {}: {}", path, Public(reason), remedy=Remedy.CHECK_PATH_AND_RIGHTS
    )
