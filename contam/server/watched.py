"""Files of open indexes, looked at so that nothing is answered from what somebody wrote into them.

A map shows what is written into its file, and blocks that were found good are not summed up again.
A file that is removed or replaced goes on to be mapped as it was: that is no harm.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.errors import IndexDamageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Watched:
    """Files as they were before anything was read from them."""

    stamps: dict[str, _Stamp]

    @classmethod
    def of(cls, folders: Iterable[Path]) -> Watched:
        """The files of the segments below these folders of indexes."""
        stamps = {}
        for folder in folders:
            for path in folder.glob("segments/*/*"):
                stamp = _stamp(str(path))
                if stamp is not None:
                    stamps[str(path)] = stamp
        return cls(stamps)

    def check(self) -> None:
        """Make sure that nobody has written into them. Raises IndexDamageError."""
        for path, before in self.stamps.items():
            now = _stamp(path)
            if now is not None and now != before and now[:2] == before[:2]:
                raise IndexDamageError(
                    f"{path} was written to while it was in use",
                    file=path,
                    hint="restore the index, then reload it: POST /v1/indexes/NAME/reload",
                )


def _stamp(path: str) -> _Stamp | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - a path object costs as much as the call
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
