"""Which job is begun next: a long one keeps no other waiting for more than a slice of time.

As many jobs of a kind as there are workers are begun in the order of their acceptance. One that is
not done after a slice goes on beside them, where there is room for as many again, and makes way for
the next; where there is no room it is put back, and begun again when another long one has ended.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contam.server.jobs.model import Job, Kind
    from contam.server.jobs.store import JobStore


class Lane:
    """Jobs of one kind: `n_workers` at once, and as many that take longer than a slice."""

    def __init__(self, kind: Kind, n_workers: int) -> None:
        self._kind = kind
        self.n_workers = n_workers
        self._lock = threading.Lock()
        self._is_long: dict[str, bool] = {}
        self._put_back: set[str] = set()

    def claim(self, store: JobStore) -> Job | None:
        """Take a job that may begin now, None when there is none. Raises StoreError."""
        with self._lock:
            if self._has_room(long=False):
                job = store.claim(self._kind, self._put_back, among=False)
                if job is not None:
                    self._is_long[job.id] = False
                    return job
            if self._put_back and self._has_room(long=True):
                job = store.claim(self._kind, self._put_back, among=True)
                if job is not None:
                    self._put_back.discard(job.id)
                    self._is_long[job.id] = True
                    return job
                # They were cancelled.
                self._put_back.clear()
        return None

    def is_long(self, job_id: str) -> bool:
        """Whether a running job keeps nobody waiting."""
        with self._lock:
            return self._is_long[job_id]

    def outlasts(self, job_id: str) -> bool:
        """Note that a running job took longer than a slice; whether it may go on."""
        with self._lock:
            if job_id not in self._is_long:
                # It ended meanwhile.
                return True
            if self._has_room(long=True):
                self._is_long[job_id] = True
                return True
            self._put_back.add(job_id)
            return False

    def leave(self, job_id: str) -> None:
        """Note that a job no longer runs."""
        with self._lock:
            self._is_long.pop(job_id, None)

    def _has_room(self, *, long: bool) -> bool:
        return sum(one is long for one in self._is_long.values()) < self.n_workers
