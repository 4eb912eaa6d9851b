"""Choose which job runs next: jobs of one kind take turns in time slices.

A job whose slice is over while others wait is paused, keeps what it has done, and goes on after
those that waited then. Paused jobs keep their memory, so only `n_open` jobs may outlast their first
slice; a further one is put back, and begun again when one of those has ended. So a job that is
queued or paused waits at most one slice for each other job, unless it was put back.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from contam.server.jobs.model import StoreError

if TYPE_CHECKING:
    from contam.server.jobs.model import Kind, StoredJob
    from contam.server.jobs.store import JobStore
    from contam.server.jobs.work.process import Running


class _Paused(NamedTuple):
    """A job that waits for its turn.

    newest  number of the newest job that was queued when it was paused: those go first
    """

    id: str
    process: Running
    newest: int


class JobQueue:
    """Jobs of one kind.

    n_workers  jobs that work at once
    n_open     jobs that outlasted a slice and are not done, at least `n_workers`
    """

    def __init__(self, kind: Kind, n_workers: int, n_open: int) -> None:
        self._kind = kind
        self.n_workers = n_workers
        self._n_open = max(n_open, n_workers)
        #: Held by the thread that looks for work.
        self.looking = threading.Lock()
        self._lock = threading.Lock()
        #: Whether a job that works has outlasted a slice.
        self._working: dict[str, bool] = {}
        self._paused: deque[_Paused] = deque()
        self._put_back: set[str] = set()

    @property
    def n_threads(self) -> int:
        """One for each job that can have a process, and one that looks for the next turn."""
        return self._n_open + self.n_workers + 1 if self.n_workers else 0

    def claim(self, store: JobStore) -> StoredJob | None:
        """Begin a job or let a paused one go on, whichever waits longer; the job that was begun.

        Raises StoreError, but not before a paused job went on.
        """
        with self._lock:
            if len(self._working) >= self.n_workers:
                return None
            first = self._paused[0] if self._paused else None
            try:
                job = store.claim(self._kind, self._barred(), up_to=first and first.newest)
            except StoreError:
                self._go_on()
                raise
            if job is None:
                self._go_on()
                return None
            self._working[job.id] = job.id in self._put_back
            self._put_back.discard(job.id)
            return job

    def end_slice(self, job_id: str, process: Running, store: JobStore) -> bool:
        """Pause a working job if others wait; False when it must be put back instead."""
        with self._lock:
            if job_id not in self._working:
                # It ended meanwhile.
                return True
            try:
                newest = store.newest(self._kind, self._barred())
            except StoreError:
                # Nothing could be begun in its place.
                newest = None
            if newest is None and not self._paused:
                return True
            if not self._working[job_id] and not self._has_slot():
                self._put_back.add(job_id)
                return False
            process.pause()
            del self._working[job_id]
            self._paused.append(_Paused(job_id, process, newest or 0))
            return True

    def leave(self, job_id: str) -> None:
        """Note that a job has no process any more."""
        with self._lock:
            self._working.pop(job_id, None)
            self._paused = deque(paused for paused in self._paused if paused.id != job_id)

    def _go_on(self) -> None:
        if self._paused:
            paused = self._paused.popleft()
            self._working[paused.id] = True
            paused.process.go_on()

    def _barred(self) -> set[str]:
        """Queued jobs that may not be begun now."""
        return set() if self._has_slot() else self._put_back

    def _has_slot(self) -> bool:
        return len(self._paused) + sum(self._working.values()) < self._n_open
