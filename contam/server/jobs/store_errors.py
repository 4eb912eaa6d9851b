"""What SQLite says of the job store, as our own errors."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

from contam.server.jobs.model import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


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
            raise StoreBusyError(
                "the job store is locked by another process", hint="try again in a moment"
            ) from error
        if primary == sqlite3.SQLITE_FULL:
            raise StoreFullError(
                "the disk of the job store is full", hint="the operator must free some space"
            ) from error
        if primary in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise damaged() from error
        raise StoreError(
            "the job store cannot be used", hint="the operator must look at jobs.db"
        ) from error
