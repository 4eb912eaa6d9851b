"""Recognise files that are not what their names say: UTF-16 text, pointers of Git LFS."""

from __future__ import annotations

from typing import Final

from contam.errors import ShardError
from contam.files.listed import opened

_MARKS: Final = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_SEEN: Final = 64
_FEWEST: Final = 4


def wide_encoding(head: bytes) -> str:
    """`UTF-16` or `UTF-32`, known by a byte order mark or by the NULs of Latin letters; else ""."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    begin = head[: min(len(head), _SEEN) & ~3]
    if len(begin) < _FEWEST or not any(begin):
        return ""
    if any(not any(begin[at::4]) and not any(begin[at + 1 :: 4]) for at in (0, 2)):
        return "UTF-32"
    even, odd = begin[::2].count(0), begin[1::2].count(0)
    return "UTF-16" if min(even, odd) == 0 and max(even, odd) * 2 >= len(begin) // 2 else ""


LFS_HEAD: Final = b"version https://git-lfs.github.com/spec/v1"
"""What a pointer begins with."""

LFS_FACT: Final = "is a Git LFS pointer, not the file itself"


def is_pointer(path: str) -> bool:
    """Whether a file is a pointer; False when it cannot be read."""
    try:
        with opened(path) as file:
            return file.read(len(LFS_HEAD)) == LFS_HEAD
    except (OSError, ShardError):
        return False
