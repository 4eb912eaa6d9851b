"""Store jobs in one SQLite file, so that none is lost or run twice."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

from contam.server.jobs.intake.reception import make_private
from contam.server.jobs.model import (
    KeyInUseError,
    KeyReusedError,
    QueueFullError,
    StoreBusyError,
    StoreDamagedError,
    StoredJob,
)
from contam.server.jobs.store_file import (
    COLUMNS,
    FORMAT,
    SCHEMA,
    SUM,
    StoreFile,
    damaged,
    job_of,
    translated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from contam.server.jobs.model import Kind, State


class JobStore:
    """Jobs on disk. Every method may be called from any thread and raises StoreError subclasses.

    Retention counts the seconds that a store was open: nobody can set that clock, and what waits
    for its end waits longer while the service is down, never shorter.

    clock   seconds that never go back
    busy_s  seconds that a lock held by another process is waited for
    """

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.monotonic, busy_s: float = 2.0
    ) -> None:
        self._path = path
        self._clock = clock
        self._began_s = 0.0
        self._lock = threading.Lock()
        self._busy_s = busy_s
        self._is_damaged = False
        self._summed: tuple[Any, ...] | None = None
        with translated():
            make_private(path)
            self._file = StoreFile(path, busy_s=busy_s)
            self._db = sqlite3.connect(
                path, timeout=busy_s, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
                self._file.note()
            except BaseException:
                self._db.close()
                self._file.close()
                raise

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        # What is deleted is overwritten, too.
        self._db.execute("PRAGMA secure_delete = ON")
        # An accepted job must outlive a power cut: the answer is sent after the commit.
        self._db.execute("PRAGMA synchronous = FULL")
        with self._writing():
            (found,) = self._db.execute("PRAGMA user_version").fetchone()
            if found == 0:
                for statement in filter(str.strip, SCHEMA.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {FORMAT}")
            elif found != FORMAT:
                raise StoreDamagedError(
                    f"{self._path} is a job store of format {found}, this contam writes {FORMAT}",
                    hint="use the contam that wrote it, or another data folder",
                )
            # Nobody can still be sending it: the service that received it is gone.
            self._db.execute("DELETE FROM idempotency WHERE job IS NULL")
            self._began_s = self._clock() - self._noted()
        (verdict,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise damaged()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()
            self._file.close()

    def probe(self) -> None:
        """Read and write: raises what would keep a job from being accepted."""
        with self._turn(), translated():
            self._look(whole=True)
            with self._writing():
                self._tick()

    # -- accepting ------------------------------------------------------------------------------

    def reserve(self, name: str) -> StoredJob | None:
        """Reserve an idempotency key for a request that is now received; its job if it has one.

        Raises KeyInUseError when the same key is being received already.
        """
        with self._changing():
            row = self._db.execute("SELECT job FROM idempotency WHERE name = ?", (name,)).fetchone()
            if row is None:
                self._db.execute("INSERT INTO idempotency VALUES (?, NULL, NULL)", (name,))
                return None
            if row[0] is None:
                raise KeyInUseError("a request with this Idempotency-Key is being received")
            return self._one(row[0])

    def release(self, name: str) -> None:
        """Give back a reserved key of which no job came."""
        with self._changing():
            self._db.execute("DELETE FROM idempotency WHERE name = ? AND job IS NULL", (name,))

    def check_same(self, name: str, fingerprint: str) -> None:
        """Raise KeyReusedError unless the key's earlier request was this very one."""
        with self._reading():
            row = self._db.execute(
                "SELECT fingerprint FROM idempotency WHERE name = ?", (name,)
            ).fetchone()
        if row is not None and row[0] != fingerprint:
            raise KeyReusedError("this Idempotency-Key came with another request before")

    def add(
        self,
        job_id: str,
        *,
        owner: str,
        kind: Kind,
        about: dict[str, Any],
        most_queued: int,
        idempotency: tuple[str, str] | None = None,
    ) -> StoredJob:
        """Accept a job: when this returns, it is on disk.

        idempotency  the reserved key and the fingerprint of the request

        Raises QueueFullError when `most_queued` wait already.
        """
        with self._turn(), translated():
            with self._writing():
                self._refuse_full(most_queued)
                self._db.execute(
                    "INSERT INTO jobs (id, owner, kind, state, about, created) "
                    "VALUES (?,?,?,?,?,?)",
                    (job_id, owner, kind, "queued", json.dumps(about), time.time()),
                )
                if idempotency is not None:
                    name, fingerprint = idempotency
                    self._db.execute(
                        "INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?)",
                        (name, fingerprint, job_id),
                    )
                job = self._one(job_id)
            # An accepted job must be found again, after a restart as well.
            self._look(job_id)
        assert job is not None  # noqa: S101 - for the type checker: it was written above
        return job

    def refuse(self, most_queued: int) -> None:
        """Raise QueueFullError or StoreError when no further job would be taken."""
        with self._reading():
            self._look()
            self._refuse_full(most_queued)

    def _refuse_full(self, most_queued: int) -> None:
        if self._count("queued") >= most_queued:
            raise QueueFullError(f"{most_queued} jobs wait already")

    # -- working --------------------------------------------------------------------------------

    def claim(
        self, kind: Kind, barred: Iterable[str] = (), *, up_to: int | None = None
    ) -> StoredJob | None:
        """Take the oldest queued job of a kind that is not `barred`; it is then running.

        up_to  the highest number that it may have
        """
        with self._changing():
            row = self._db.execute(
                "SELECT id FROM jobs WHERE state = 'queued' AND kind = ? "
                "AND id NOT IN (SELECT value FROM json_each(?)) AND (? IS NULL OR number <= ?) "
                "ORDER BY number LIMIT 1",
                (kind, json.dumps(list(barred)), up_to, up_to),
            ).fetchone()
            if row is None:
                return None
            self._db.execute(
                "UPDATE jobs SET state = 'running', started = ?, attempts = attempts + 1 "
                "WHERE id = ?",
                (time.time(), row[0]),
            )
            return self._one(row[0])

    def newest(self, kind: Kind, barred: Iterable[str] = ()) -> int | None:
        """The highest number of a queued job of a kind that is not `barred`; None without one."""
        with self._reading():
            (number,) = self._db.execute(
                "SELECT max(number) FROM jobs WHERE state = 'queued' AND kind = ? "
                "AND id NOT IN (SELECT value FROM json_each(?))",
                (kind, json.dumps(list(barred))),
            ).fetchone()
        return None if number is None else int(number)

    def give_back(self, job_id: str, *, counted: bool) -> None:
        """Queue a running job again; an attempt that is not `counted` was not the job's fault."""
        with self._changing():
            self._db.execute(
                "UPDATE jobs SET state = 'queued', started = NULL, attempts = attempts - ? "
                "WHERE id = ? AND state = 'running'",
                (0 if counted else 1, job_id),
            )

    def recover(self, most_attempts: int) -> list[StoredJob]:
        """Queue again what was running when the service was killed: it may be what killed it.

        Returns the jobs that were begun `most_attempts` times; they stay running, to be ended.
        """
        with self._changing():
            self._db.execute(
                "UPDATE jobs SET state = 'queued', started = NULL "
                "WHERE state = 'running' AND attempts < ?",
                (most_attempts,),
            )
            rows = self._db.execute(
                f"SELECT {COLUMNS} FROM jobs WHERE state = 'running'"  # noqa: S608 - a constant
            ).fetchall()
        return [job_of(row) for row in rows]

    def finish(
        self, job_id: str, state: State, *, retention_s: float, code: str = ""
    ) -> StoredJob | None:
        """End a job that has not ended; returns it as it is now, None when there is none."""
        with self._changing():
            now = self._tick()
            self._db.execute(
                "UPDATE jobs SET state = ?, code = ?, finished = ?, kept_until = ? "
                "WHERE id = ? AND state IN ('queued', 'running')",
                (state, code, time.time(), now + retention_s, job_id),
            )
            return self._one(job_id)

    # -- looking --------------------------------------------------------------------------------

    def get(self, job_id: str) -> StoredJob | None:
        """A job by its id."""
        with self._reading():
            return self._one(job_id)

    def listed(self, owner: str | None, *, before: int | None, limit: int) -> list[StoredJob]:
        """Jobs of an owner (None: of all), the newest first.

        before  only those with a lower number
        """
        with self._reading():
            rows = self._db.execute(
                f"SELECT {COLUMNS} FROM jobs WHERE (? IS NULL OR owner = ?) "  # noqa: S608 - a constant
                "AND (? IS NULL OR number < ?) ORDER BY number DESC LIMIT ?",
                (owner, owner, before, before, limit),
            ).fetchall()
        return [job_of(row) for row in rows]

    def states(self) -> dict[str, int]:
        """How many jobs are in each state."""
        with self._reading():
            rows = self._db.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall()
        return dict(rows)

    def known(self) -> set[str]:
        """Ids of all jobs."""
        with self._reading():
            return {row[0] for row in self._db.execute("SELECT id FROM jobs")}

    def seconds_left(self, job: StoredJob) -> float | None:
        """Seconds until a job is deleted; None while it has not ended."""
        if job.kept_until is None:
            return None
        with self._reading():
            return max(0.0, job.kept_until - self._now())

    # -- forgetting -----------------------------------------------------------------------------

    def outlived(self) -> list[StoredJob]:
        """Jobs whose retention is over."""
        with self._changing():
            now = self._tick()
            rows = self._db.execute(
                f"SELECT {COLUMNS} FROM jobs WHERE kept_until <= ? ORDER BY number",  # noqa: S608 - a constant
                (now,),
            ).fetchall()
        return [job_of(row) for row in rows]

    def forget(self, job_ids: Sequence[str]) -> None:
        """Drop ended jobs and their idempotency keys."""
        with self._changing():
            for job_id in job_ids:
                self._db.execute("DELETE FROM idempotency WHERE job = ?", (job_id,))
                self._db.execute(
                    "DELETE FROM jobs WHERE id = ? AND kept_until IS NOT NULL", (job_id,)
                )

    # -- inside ---------------------------------------------------------------------------------

    def _one(self, job_id: str) -> StoredJob | None:
        row = self._db.execute(
            f"SELECT {COLUMNS} FROM jobs WHERE id = ?",  # noqa: S608 - a constant
            (job_id,),
        ).fetchone()
        return None if row is None else job_of(row)

    def _count(self, state: State) -> int:
        (number,) = self._db.execute(
            "SELECT count(*) FROM jobs WHERE state = ?", (state,)
        ).fetchone()
        return int(number)

    def _noted(self) -> float:
        """Seconds that the store was open before."""
        row = self._db.execute("SELECT seconds FROM clock").fetchone()
        if row is None:
            raise damaged()
        return float(row[0])

    def _now(self) -> float:
        """Seconds that the store was open, in all."""
        return self._clock() - self._began_s

    def _tick(self) -> float:
        """Note the seconds, so that a restart goes on from them."""
        now = self._now()
        self._db.execute("UPDATE clock SET seconds = ?", (now,))
        return now

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        with self._turn(), translated():
            yield

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with self._turn(), translated(), self._writing():
            yield

    def _look(self, job_id: str | None = None, *, whole: bool = False) -> None:
        """Make sure that the file has what was written into it."""
        try:
            with translated():
                self._file.check(self._summed, job_id, whole=whole)
        except StoreDamagedError:
            self._is_damaged = True
            raise

    def _refuse_changed(self) -> None:
        """Nobody else writes: the store is as the last change left it, or it is another."""
        if self._summed is not None and self._summed != self._db.execute(SUM).fetchone():
            self._is_damaged = True
            raise damaged()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        # What is still in memory is not what a restart would find.
        if self._is_damaged:
            raise damaged()
        # Behind a locked store threads would wait for one another without end.
        if not self._lock.acquire(timeout=2 * self._busy_s):
            raise StoreBusyError("the job store is busy")
        try:
            yield
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._refuse_changed()
            yield
            (summed,) = self._db.execute(SUM)
            self._db.execute("COMMIT")
            self._summed = summed
        except BaseException:
            # A full disk may have ended the transaction already.
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise
