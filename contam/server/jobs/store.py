"""Store jobs in one table of an SQLite file, so that none is lost or run twice."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from contam.errors import ConfigError
from contam.server.problems import RequestError

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["check", "rescore"]
State = Literal["queued", "running", "done", "failed", "cancelled"]

ENDED: Final = frozenset({"done", "failed", "cancelled"})
"""States that nothing follows."""

MOST_ATTEMPTS: Final = 3
MOST_LISTED: Final = 500

_FORMAT: Final = 2
_BUSY_S: Final = 2.0
_TABLE: Final = """
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued',
    about TEXT NOT NULL,
    idempotency TEXT UNIQUE,
    fingerprint TEXT NOT NULL,
    created REAL NOT NULL,
    started REAL,
    finished REAL,
    attempts INTEGER NOT NULL DEFAULT 0,
    code TEXT NOT NULL DEFAULT ''
) STRICT
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A row of the table. It holds nothing of what was uploaded.

    number       counts up in the order of acceptance
    owner        id of the key that made it
    about        indexes, policies, numbers of items and bytes
    idempotency  digest of the owner and the request's Idempotency-Key
    fingerprint  digest of the request and its files
    created, started, finished  seconds since 1970
    attempts     how often it was started;  code  why it failed, empty otherwise
    """

    number: int
    id: str
    owner: str
    kind: Kind
    state: State
    about: dict[str, Any]
    idempotency: str | None
    fingerprint: str
    created: float
    started: float | None
    finished: float | None
    attempts: int
    code: str

    @property
    def ended(self) -> bool:
        """Whether its state is final."""
        return self.state in ENDED


_COLUMNS: Final = ", ".join(field.name for field in fields(StoredJob))


class StoreError(RequestError):
    """The job store does not take or give anything now; accepted jobs are still in it."""

    def __init__(self) -> None:
        super().__init__(
            503, "the job store cannot be used now", code="store",
            hint="the operator must look at jobs.db and its disk", headers={"Retry-After": "5"},
        )  # fmt: skip


class JobStore:
    """Jobs on disk. Every method may be called from any thread, and raises StoreError."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises ConfigError when it cannot be used."""
        self._lock = threading.RLock()
        try:
            self._db = sqlite3.connect(
                path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(path)
            except BaseException:
                self._db.close()
                raise
        except sqlite3.Error as error:
            raise ConfigError(
                f"the job store {path} cannot be used: {error}",
                hint="restore it, or give the service another --data",
            ) from error

    def _prepare(self, path: Path) -> None:
        (found,) = self._db.execute("PRAGMA user_version").fetchone()
        if not found and not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
            self._db.execute(_TABLE)
            self._db.execute(f"PRAGMA user_version = {_FORMAT}")
        elif found != _FORMAT:
            raise ConfigError(
                f"{path} was written by another version of contam",
                hint="give the service another --data, or remove the file and its jobs",
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def add(self, *, most_queued: int, **row: Any) -> StoredJob | None:  # noqa: ANN401 - columns
        """Accept a job: when this returns, it is on disk. None: its idempotency key has one.

        row  the columns id, owner, kind, about, idempotency and fingerprint

        Raises RequestError, 503, when `most_queued` wait already.
        """
        row |= {"about": json.dumps(row["about"]), "created": time.time()}
        with self._lock:
            if row["idempotency"] is not None and self.of_key(row["idempotency"]):
                return None
            self.refuse(most_queued)
            return self._one(
                f"INSERT INTO jobs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608 - our own names
                *row.values(),
            )

    def refuse(self, most_queued: int) -> None:
        """Raise RequestError, 503, when no further job would be taken."""
        if self.states().get("queued", 0) >= most_queued:
            raise RequestError(
                503, f"{most_queued} jobs are waiting already", code="queue-full",
                headers={"Retry-After": "30"},
            )  # fmt: skip

    def claim(self) -> StoredJob | None:
        """Take the oldest queued job; it is then running."""
        return self._one(
            "UPDATE jobs SET state = 'running', started = ?, attempts = attempts + 1 "
            "WHERE number = (SELECT min(number) FROM jobs WHERE state = 'queued')",
            time.time(),
        )

    def give_back(self, job_id: str, *, counted: bool) -> StoredJob | None:
        """Queue a running job again; returns it, None when it is not running.

        counted  whether the attempt counts: it may not have been the job's fault
        """
        return self._one(
            "UPDATE jobs SET state = 'queued', started = NULL, attempts = attempts - ? "
            "WHERE id = ? AND state = 'running'",
            0 if counted else 1,
            job_id,
        )

    def finish(self, job_id: str, state: State, code: str = "") -> StoredJob | None:
        """End a job that has not ended; returns it, None when it had ended or is gone."""
        return self._one(
            "UPDATE jobs SET state = ?, code = ?, finished = ? "
            "WHERE id = ? AND state IN ('queued', 'running')",
            state,
            code,
            time.time(),
            job_id,
        )

    def get(self, job_id: str) -> StoredJob | None:
        """A job by its id."""
        return next(iter(self._found("WHERE id = ?", job_id)), None)

    def of_key(self, idempotency: str) -> StoredJob | None:
        """The job that an idempotency key made."""
        return next(iter(self._found("WHERE idempotency = ?", idempotency)), None)

    def running(self) -> list[StoredJob]:
        """Jobs that a killed service left running."""
        return self._found("WHERE state = 'running'")

    def outlived(self, retention_s: float) -> list[StoredJob]:
        """Jobs that ended so many seconds ago or earlier."""
        return self._found("WHERE finished <= ? ORDER BY number", time.time() - retention_s)

    def listed(self, owner: str | None) -> list[StoredJob]:
        """The newest jobs of an owner (None: of all), the newest first."""
        return self._found(
            "WHERE ?1 IN (owner, '') ORDER BY number DESC LIMIT ?2", owner or "", MOST_LISTED
        )

    def states(self) -> dict[str, int]:
        """How many jobs are in each state."""
        return dict(self._all("SELECT state, count(*) FROM jobs GROUP BY state"))

    def forget(self, job_id: str) -> None:
        """Drop an ended job and its idempotency key."""
        self._all("DELETE FROM jobs WHERE id = ? AND finished IS NOT NULL", job_id)

    def _one(self, statement: str, *values: Any) -> StoredJob | None:  # noqa: ANN401 - of SQL
        rows = self._all(f"{statement} RETURNING {_COLUMNS}", *values)
        return _job_of(rows[0]) if rows else None

    def _found(self, where: str, *values: Any) -> list[StoredJob]:  # noqa: ANN401 - of SQL
        return [_job_of(row) for row in self._all(f"SELECT {_COLUMNS} FROM jobs {where}", *values)]  # noqa: S608 - ours

    def _all(self, statement: str, *values: Any) -> list[Any]:  # noqa: ANN401 - of SQL
        try:
            with self._lock:
                return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError from error


def _job_of(row: tuple[Any, ...]) -> StoredJob:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    return StoredJob(**{**values, "about": json.loads(values["about"])})
