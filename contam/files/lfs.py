"""Recognise Git LFS pointers, which a clone without LFS leaves in place of files."""

from __future__ import annotations

from typing import Final

from contam.errors import ShardError
from contam.files.listed import opened

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
