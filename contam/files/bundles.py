"""Many small files of text in one folder, read as one shard: `FOLDER/FIRST..LAST`.

Which files these are follows from the name and the folder, so that nobody has to keep a list.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import Final, NamedTuple

from contam.files.disk import FileState

TEXT_SUFFIXES: Final = (".txt", ".md", ".tex", ".rst")
_ABOUT: Final = frozenset(
    ("readme", "license", "licence", "changelog", "notice", "copying", "contributing")
)
_TO: Final = ".."
#: In a folder with fewer files each is a shard of its own.
LEAST: Final = 256
_MOST: Final = 4096
_MOST_BYTES: Final = 32 << 20
_LARGEST: Final = 1 << 20
#: About so many files are in a bundle; names decide where it ends, so that most stay where they are
#: when a file is added.
_USUAL: Final = 1024


class Bundle(NamedTuple):
    """The files of a folder whose names lie between two."""

    folder: str
    first: str
    last: str

    @classmethod
    def at(cls, path: str) -> Bundle | None:
        """What a path names, where no file is there; None where it names no bundle."""
        folder, _, name = path.rpartition("/")
        first, to, last = name.partition(_TO)
        fits = to and first.lower().endswith(TEXT_SUFFIXES) and last.lower().endswith(TEXT_SUFFIXES)
        return cls(folder, first, last) if fits else None

    @property
    def path(self) -> str:
        """What `at` understands."""
        return f"{self.folder}/{self.first}{_TO}{self.last}"

    def names(self) -> list[str]:
        """The names of its files, in order. Raises OSError."""
        files = _files_of(self.folder)
        begin, end = bisect_left(files, (self.first,)), bisect_right(files, (self.last, _LARGEST))
        return [name for name, _ in files[begin:end]]

    def state(self) -> FileState:
        """The state of all its files together, now. Raises OSError."""
        same, here = hashlib.sha256(), hashlib.sha256()
        total = latest = 0
        for name in self.names():
            found = os.stat(f"{self.folder}/{name}")  # noqa: PTH116 - a path object costs as much
            total += found.st_size
            latest = max(latest, found.st_mtime_ns)
            same.update(f"{name}\n{found.st_size},{found.st_mtime_ns}\n".encode())
            here.update(b"%d,%d\n" % (found.st_ctime_ns, found.st_ino))
        changed = int.from_bytes(here.digest()[:7], "big")
        return FileState(total, latest, changed, version=f"files-sha256:{same.hexdigest()[:32]}")


def bundles_in(folder: str) -> list[Bundle]:
    """The bundles of a folder; none where it has few small files of text. Raises OSError."""
    found: list[Bundle] = []
    names: list[str] = []
    n_bytes = 0
    files = _files_of(folder)
    for name, size in files if len(files) >= LEAST else ():
        if n_bytes + size > _MOST_BYTES or len(names) == _MOST:
            found.append(Bundle(folder, names[0], names[-1]))
            names, n_bytes = [], 0
        names.append(name)
        n_bytes += size
        if zlib.crc32(name.encode()) % _USUAL == 0:
            found.append(Bundle(folder, names[0], names[-1]))
            names, n_bytes = [], 0
    if names:
        found.append(Bundle(folder, names[0], names[-1]))
    return found


def is_about(name: str) -> bool:
    """Whether a file of text tells of its folder: `README.md`."""
    return name.lower().partition(".")[0] in _ABOUT


def _files_of(folder: str) -> list[tuple[str, int]]:
    return _small_texts(folder, os.stat(folder).st_mtime_ns)  # noqa: PTH116 - see `Bundle.state`


@lru_cache(maxsize=1)
def _small_texts(folder: str, modified_ns: int) -> list[tuple[str, int]]:
    """The files of a folder that bundles hold, by name, and their bytes.

    modified_ns  when a name in the folder changed last
    """
    del modified_ns  # what is remembered was read then
    with os.scandir(folder) as entries:
        found = []
        for entry in entries:
            name = entry.name
            if _TO in name or not name.isprintable():
                return []
            if not name.lower().endswith(TEXT_SUFFIXES) or name.startswith((".", "_")):
                continue
            if is_about(name) or not entry.is_file(follow_symlinks=False):
                continue
            state = entry.stat(follow_symlinks=False)
            if state.st_nlink == 1 and state.st_size <= _LARGEST:
                found.append((name, state.st_size))
    return sorted(found)
