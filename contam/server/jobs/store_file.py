"""Check the job store's file from outside, past what a connection has cached.

A file that is overwritten, cut, removed or replaced under an open connection is not noticed by it:
jobs would be accepted that nobody finds again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from typing import TYPE_CHECKING, Any, Final

from contam.server.jobs.model import (
    StoreBusyError,
    StoreDamagedError,
    StoredJob,
    StoreError,
    StoreFullError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_MAGIC: Final = b"SQLite format 3\0"
#: Files of a store: itself, the last changes, and where in them each page is.
_BESIDE: Final = ("", "-wal", "-shm")
SUM: Final = (
    "SELECT count(*), max(number), sum(attempts), count(finished), "
    "(SELECT count(*) FROM idempotency), (SELECT max(seconds) FROM clock) FROM jobs"
)
"""A query whose answer is another one whenever a job was accepted, begun or ended."""


class StoreFile:
    """The files of a store. To be opened before any connection, and closed after it."""

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
        # If the file is empty, SQLite throws the changes in the other file away.
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


def damaged() -> StoreDamagedError:
    """The error of a store whose file is not what was written."""
    return StoreDamagedError(
        "the job store is damaged",
        hint="restore jobs.db or choose another data folder, and start the service again",
    )


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise damaged() from error
    except sqlite3.Error as error:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise StoreBusyError("the job store is locked by another process") from error
        if primary == sqlite3.SQLITE_FULL:
            raise StoreFullError("the disk of the job store is full") from error
        if primary in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise damaged() from error
        raise StoreError(
            "the job store cannot be used", hint="the operator must look at jobs.db"
        ) from error


FORMAT: Final = 1
COLUMNS: Final = (
    "number, id, owner, kind, state, about, created, started, finished, attempts, code, kept_until"
)
SCHEMA: Final = """
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    about TEXT NOT NULL,
    created REAL NOT NULL,
    started REAL,
    finished REAL,
    attempts INTEGER NOT NULL DEFAULT 0,
    code TEXT NOT NULL DEFAULT '',
    kept_until REAL
);
CREATE INDEX jobs_by_state ON jobs (state, number);
CREATE INDEX jobs_by_owner ON jobs (owner, number);
CREATE TABLE idempotency (name TEXT PRIMARY KEY, fingerprint TEXT, job TEXT);
CREATE INDEX idempotency_by_job ON idempotency (job);
CREATE TABLE clock (seconds REAL NOT NULL);
INSERT INTO clock VALUES (0);
"""


def job_of(row: tuple[Any, ...]) -> StoredJob:
    """A job by its row. Raises StoreDamagedError."""
    values = dict(zip(COLUMNS.split(", "), row, strict=True))
    try:
        about = json.loads(values["about"])
    except (TypeError, ValueError) as error:
        raise damaged() from error
    return StoredJob(**{**values, "about": about})
