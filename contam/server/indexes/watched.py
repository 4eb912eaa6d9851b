"""Watch the files of open indexes, so that altered files never answer.

A map shows what is written into its file, and blocks that were found good are not summed up again.
A file that is removed or replaced goes on to be mapped as it was: that is no harm.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contam.errors import IndexDamageError
from contam.index.manifest import SEGMENTS, index_id, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

Stamp = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Watched:
    """Files as they were before anything was read from them.

    digests  SHA-256 of each as the manifest has it
    states   of each index, by its manifest
    """

    stamps: dict[str, Stamp]
    digests: dict[str, str]
    states: tuple[str, ...]

    @classmethod
    def of(cls, folders: Iterable[Path]) -> Watched:
        """The files of the segments below these folders of indexes.

        Raises UsageError or IndexDamageError when one has no manifest that can be read.
        """
        stamps: dict[str, Stamp] = {}
        digests: dict[str, str] = {}
        states = []
        for folder in folders:
            manifest = read_manifest(folder)
            states.append(index_id(manifest))
            for segment in manifest.segments:
                for file in segment.files:
                    path = folder / SEGMENTS / segment.id / file.name
                    digests[str(path)] = file.sha256
                    if file.checks is not None:
                        digests[str(path.with_suffix(".crc"))] = file.checks
                # Others may be written just now.
                for path in (folder / SEGMENTS / segment.id).glob("*"):
                    stamp = stamp_of(str(path))
                    if stamp is not None:
                        stamps[str(path)] = stamp
        return cls(stamps, digests, tuple(states))

    def check(self) -> None:
        """Make sure that nobody has written into them. Raises IndexDamageError.

        A file of which only the time of its last change is another is read whole: its rights or
        links may have changed, or somebody wrote into it and set the other time back.
        """
        for path, before in list(self.stamps.items()):
            now = stamp_of(path)
            if now is None or now == before or now[:2] != before[:2]:
                continue
            if now[:-1] != before[:-1] or not self._is_whole(path):
                raise IndexDamageError(
                    f"{path} was written to while it was in use",
                    file=path,
                    hint="restore the index, then reload it: POST /v1/indexes/NAME/reload",
                )
            self.stamps[path] = now

    def _is_whole(self, path: str) -> bool:
        try:
            with Path(path).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.digests.get(path)
        except OSError:
            return False


def stamp_of(path: str) -> Stamp | None:
    """What another file, or a change of this one, changes; None for a file that is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a path object costs as much as the call
    except OSError:
        return None
    return (
        *(found.st_dev, found.st_ino, found.st_size),
        *(found.st_mtime_ns, found.st_ctime_ns),
    )
