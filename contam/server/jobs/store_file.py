"""The file of the job store, looked at from outside: a connection reads much from its memory.

A file that is overwritten, cut, removed or replaced under an open connection is not noticed by it:
jobs would be accepted that nobody finds again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import TYPE_CHECKING, Final

from contam.server.jobs.model import StoreError
from contam.server.jobs.store_errors import damaged

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC: Final = b"SQLite format 3\0"
#: What SQLite keeps beside a store: the last changes, and where in them each page is.
_BESIDE: Final = ("", "-wal", "-shm")
SUM: Final = (
    "SELECT count(*), max(number), sum(attempts), count(finished), "
    "(SELECT count(*) FROM idempotency), (SELECT max(seconds) FROM clock) FROM jobs"
)
"""A query whose answer is another one whenever a job was accepted, begun or ended."""


class StoreFile:
    """One file and those beside it. To be opened before any connection, and closed after it."""

    def __init__(self, path: Path, *, busy_s: float) -> None:
        self._path = path
        self._busy_s = busy_s
        self._known: dict[str, tuple[int, int]] = {}
        # Held open: closing any handle of a file ends all locks that SQLite has on it.
        try:
            self._held = path.open("rb", buffering=0)
        except OSError as error:
            raise StoreError(
                "the job store cannot be opened", hint="the operator must look at jobs.db"
            ) from error

    def note(self) -> None:
        """From now on, these are the files."""
        self._known = {suffix: self._identity(suffix) for suffix in _BESIDE}

    def close(self) -> None:
        """Close the file; it may be closed already."""
        self._held.close()

    def check(self, summed: tuple[object, ...] | None, job_id: str | None, *, whole: bool) -> None:
        """Read the store as a service that starts now would. Raises StoreDamagedError.

        summed  what SUM answered after the last change
        job_id  a job that has to be there
        whole   look at every page

        Raises sqlite3.Error for what SQLite itself finds wrong.
        """
        for suffix, identity in self._known.items():
            if self._identity(suffix) != identity:
                raise damaged()
        # Of an empty file SQLite would throw away the changes that lie beside it.
        if os.pread(self._held.fileno(), len(_MAGIC), 0) != _MAGIC:
            raise damaged()
        with contextlib.closing(self._fresh()) as other:
            if whole and other.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise damaged()
            if other.execute(SUM).fetchone() != summed:
                raise damaged()
            if (
                job_id is not None
                and not other.execute("SELECT 1 FROM jobs WHERE id = ?", (job_id,)).fetchone()
            ):
                raise damaged()

    def _fresh(self) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=ro",
            uri=True,
            timeout=self._busy_s,
            isolation_level=None,
        )

    def _identity(self, suffix: str) -> tuple[int, int]:
        try:
            found = self._path.with_name(self._path.name + suffix).stat()
        except OSError as error:
            raise damaged() from error
        return found.st_dev, found.st_ino
