"""Read a long JSON-lines file line by line, in little memory."""

from __future__ import annotations

import hashlib
import os
from itertools import islice
from typing import TYPE_CHECKING, Final

from contam.benchmark.compressed import unreadable
from contam.benchmark.jsonrows import BOM, is_whole, row_of
from contam.errors import BenchmarkError, Public, Remedy
from contam.files.addresses import Address
from contam.files.compression import codec_of
from contam.files.lfs import LFS_HEAD
from contam.files.listed import FileState, difference
from contam.files.single import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from pathlib import Path

    from contam.benchmark.fields import Row

#: Shorter files are read as a whole.
_LONG_BYTES: Final = 64 << 20


class LongLines:
    """The rows of a long file, to be read once, and its digest and size when all were read."""

    def __init__(self, path: Path) -> None:
        """Read this file, for which `is_long_lines` said yes."""
        self._path = path
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        """Hex digest of the lines read."""
        return self._digest.hexdigest()

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Rows and their lines.

        Raises BenchmarkError for what is no JSON object, and for a file that is written to.
        """
        try:
            with open_file(self._path) as file:
                listed = FileState.of(os.fstat(file.fileno()))
                for line, text in enumerate(file, 1):
                    self._digest.update(text)
                    self.size += len(text)
                    data = text.removeprefix(BOM) if line == 1 else text
                    if data.strip():
                        yield line, row_of(self._path, data.removesuffix(b"\n"), line)
                states = FileState.of(os.fstat(file.fileno())), FileState.at(str(self._path))
        except OSError as error:
            raise unreadable(self._path, error) from error
        if fact := difference(listed, states[0]) or difference(listed, states[1]):
            raise BenchmarkError(
                "{}: {} while it was read", self._path, Public(fact),
                remedy=Remedy.LET_NOBODY_WRITE_TO_IT,
            )  # fmt: skip


def is_long_lines(path: Path) -> bool:
    """Whether a file is long and, by its beginning, JSON lines that are not compressed.

    Whatever is not, or cannot be opened, is for `read_unpacked`.
    """
    if isinstance(path, Address):
        return False
    try:
        if path.stat().st_size < _LONG_BYTES:
            return False
        with open_file(path) as file:
            head = file.peek(len(LFS_HEAD))
            if codec_of(head) or head.startswith(LFS_HEAD):
                return False
            return _are_lines(file)
    except OSError:
        return False


def _are_lines(file: BufferedReader) -> bool:
    """Whether a second line that is not blank follows a first that is an object on its own."""
    lines = (text if at else text.removeprefix(BOM) for at, text in enumerate(file))
    first = list(islice((text for text in lines if text.strip()), 2))
    return len(first) > 1 and first[0].lstrip()[:1] != b"[" and is_whole(first[0])
