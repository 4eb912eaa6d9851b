"""Manage the jobs of a service: accept, show, run, and delete when they expire."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.detect.report import FILES as VERDICT_FILES
from contam.errors import ConfigError, UsageError
from contam.files.addresses import is_address
from contam.files.publish import sync_path
from contam.server.indexes.registry import named_folders
from contam.server.jobs.events import Watch
from contam.server.jobs.intake.reception import Receiving, hidden, own
from contam.server.jobs.model import StoreError
from contam.server.jobs.store import JobStore
from contam.server.jobs.views import RUN, job_view, read_summary
from contam.server.jobs.work.run import LOCK, REQUEST, RESULT
from contam.server.jobs.work.tasks import VERDICTS
from contam.server.jobs.work.worker import KILLER, MOST_ATTEMPTS, Hooks, Worker
from contam.server.problems.failures import RequestError
from contam.server.problems.remedies import hint_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contam.config import Settings
    from contam.server.jobs.intake.uploads import Received
    from contam.server.jobs.model import Kind, StoredJob


_FAILURE: Final = "failure.json"
_KEPT: Final = frozenset({RESULT, _FAILURE, LOCK})
_SWEEP_S: Final = 30.0
_BUSY_S: Final = 2.0
_PROBE_S: Final = 2.0


class Jobs:
    """Everything a service knows of jobs. Methods may be called from any thread.

    locate   index names -> their folders; raises ContamError for one that is not served
    stopping  whether the service is to end
    problem  why the store would accept no job, as of the last look, 2 s ago at most
    """

    def __init__(
        self,
        settings: Settings,
        locate: Callable[[Sequence[str]], Sequence[Path]],
        *,
        stopping: Callable[[], bool] = bool,
    ) -> None:
        self._settings = settings
        self._locate = locate
        self._home = Path(settings.data).resolve() / "jobs"
        self._lock = own(self._home)
        try:
            self._store = JobStore(self._home.parent / "jobs.db", busy_s=_BUSY_S)
            self._recover()
            self._tidy()
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, StoreError):
                raise ConfigError(
                    error.statement, remedy=error.remedies, hint=error.hint
                ) from error
            raise
        self.watch = Watch(stopping)
        self.problem = ""
        self._stopping = threading.Event()
        hooks = Hooks(
            order=self._order,
            changed=self.watch.changed,
            ended=self._ended,
            failed=self._note_failure,
            retention_s=settings.retention_s,
            most_s=settings.max_job_s,
            slice_s=settings.job_slice_s,
        )
        # A re-scoring is short and somebody waits for it: it does not queue behind long checks.
        n_slots: dict[Kind, int] = {
            "check": settings.job_workers,
            "rescore": min(1, settings.job_workers),
        }
        self._worker = Worker(
            self._store,
            hooks,
            n_slots=n_slots,
            n_open=settings.max_open_jobs,
        )
        self._sweeper = threading.Thread(target=self._sweep_on, name="jobs-sweep", daemon=True)

    @classmethod
    def open(cls, settings: Settings, stopping: Callable[[], bool]) -> Jobs:
        """The jobs of a service, at work. Raises ConfigError when the data folder is not usable."""

        def locate(names: Sequence[str]) -> list[Path]:
            served = named_folders(settings.index, settings.home)
            if missing := [name for name in names if name not in served]:
                raise UsageError(f"the index {missing[0]} is not served any more")
            return [served[name] for name in names]

        jobs = cls(settings, locate, stopping=stopping)
        jobs.start()
        return jobs

    def start(self) -> None:
        """Work on what waits."""
        self._worker.start()
        self._sweeper.start()

    def close(self) -> None:
        """Stop working; what runs is queued again, and streams end."""
        self._stopping.set()
        self.watch.close()
        self._worker.close()
        if self._sweeper.is_alive():
            self._sweeper.join()
        self._store.close()
        os.close(self._lock)

    def states(self) -> dict[str, int]:
        """How many jobs are in each state."""
        return self._store.states()

    # -- accepting ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def receiving(self, owner: str, idempotency: str | None) -> Iterator[Receiving]:
        """A folder for an upload; unless a job is made of it, it is gone when the block ends.

        idempotency  what the request says in `Idempotency-Key`

        Raises RequestError: 409 when a request with this key is being received, 503 when the queue
        is full or the store takes nothing.
        """
        self._store.refuse(self._settings.max_queued_jobs)
        name = None if idempotency is None else hidden(owner, idempotency)
        known = None if name is None else self._store.reserve(name)
        job_id = secrets.token_hex(12)
        folder = self._home / job_id
        receiving = Receiving(owner, job_id, folder, name, known)
        try:
            with disk_errors():
                folder.mkdir(mode=0o700)
            yield receiving
        finally:
            if receiving.job is None or receiving.job.id != job_id:
                shutil.rmtree(folder, ignore_errors=True)
            if receiving.job is None and known is None and name is not None:
                with contextlib.suppress(StoreError):
                    self._store.release(name)

    def accept(self, upload: Receiving, request: dict[str, Any], received: Received) -> StoredJob:
        """Make a job of an upload; when this returns, it is on disk and will be worked on."""
        fingerprint = received.fingerprint()
        if upload.known is not None and upload.name is not None:
            self._store.check_same(upload.name, fingerprint)
            return upload.known
        with disk_errors():
            (upload.folder / REQUEST).write_text(json.dumps(request), "utf-8")
            for path in (upload.folder / REQUEST, upload.folder, self._home):
                sync_path(path)
        job = self._store.add(
            upload.job_id,
            owner=upload.owner,
            kind=request["kind"],
            about={
                "index": request.get("index", []),
                "policies": request["policies"],
                "n_items": received.n_items,
                "n_bytes": sum(file.n_bytes for file in received.files),
            },
            most_queued=self._settings.max_queued_jobs,
            idempotency=None if upload.name is None else (upload.name, fingerprint),
        )
        upload.job = job
        self._worker.wake()
        return job

    def copy_verdicts(self, source: StoredJob, folder: Path) -> None:
        """Copy the verdicts of a finished check job to an upload; they outlive that job."""
        target = folder / VERDICTS
        with disk_errors():
            target.mkdir()
            for name in VERDICT_FILES:
                try:
                    os.link(self.result(source) / name, target / name)
                except OSError:
                    shutil.copyfile(self.result(source) / name, target / name)
            sync_path(target)

    # -- looking --------------------------------------------------------------------------------

    def get(self, job_id: str, owner: str | None) -> StoredJob:
        """A job of this owner (None: of anybody). Raises RequestError, 404."""
        job = self._store.get(job_id)
        if job is None or (owner is not None and job.owner != owner):
            raise RequestError(
                404, "there is no such job", code="no-job",
            )  # fmt: skip
        return job

    def listed(self, owner: str | None, *, before: int | None, limit: int) -> list[StoredJob]:
        """Jobs of an owner (None: of all), the newest first."""
        return self._store.listed(owner, before=before, limit=limit)

    def show(self, job: StoredJob) -> dict[str, Any]:
        """A job as its owner sees it: see `contam.server.schemas.jobs.JobAnswer`."""
        left = self._store.seconds_left(job)
        return job_view(
            job,
            progress=self._worker.progress(job.id),
            seconds_left=left,
            result=self._summary(job) if job.state == "done" else {},
            error=self.failure(job) if job.state == "failed" else None,
        )

    def look(self, job_id: str) -> dict[str, Any] | None:
        """A job as `show` has it; None when there is none any more."""
        job = self._store.get(job_id)
        return None if job is None else self.show(job)

    def failure(self, job: StoredJob) -> dict[str, str]:
        """What a job failed of: code, message, hint."""
        try:
            found: dict[str, str] = json.loads((self._home / job.id / _FAILURE).read_bytes())
        except (OSError, ValueError):
            return {"code": job.code, "message": "the job failed", "hint": hint_for(job.code, "")}
        return found

    def result(self, job: StoredJob) -> Path:
        """The folder of a finished job's result."""
        return self._home / job.id / RESULT

    # -- ending ---------------------------------------------------------------------------------

    def cancel(self, job: StoredJob) -> StoredJob | None:
        """Stop a job; one that has ended is deleted with all that it left (None is then given)."""
        if not job.ended:
            ended = self._store.finish(
                job.id, "cancelled", retention_s=self._settings.retention_s, code="cancelled"
            )
            if ended is not None and ended.state == "cancelled":
                self._worker.stop_job(job.id)
                if self._worker.progress(job.id) is None:
                    self._ended(ended)
            self.watch.changed(job.id)
            return ended
        self._delete([job])
        self.watch.changed(job.id)
        return None

    def sweep(self) -> int:
        """Delete what has outlived its retention; returns how many jobs that were."""
        outlived = self._store.outlived()
        return self._delete(outlived)

    def _delete(self, jobs: Sequence[StoredJob]) -> int:
        gone = []
        for job in jobs:
            folder = self._home / job.id
            shutil.rmtree(folder, ignore_errors=True)
            # What could not be deleted stays known, and is tried again.
            if not folder.exists():
                gone.append(job.id)
        if gone:
            self._store.forget(gone)
        return len(gone)

    def _sweep_on(self) -> None:
        pause = min(_SWEEP_S, max(self._settings.retention_s / 4, 0.1))
        swept = time.monotonic()
        while not self._stopping.wait(min(_PROBE_S, pause)):
            try:
                self._store.probe()
                if time.monotonic() - swept >= pause:
                    self.sweep()
                    swept = time.monotonic()
                self.problem = ""
            except StoreError as error:
                self.problem = error.message

    def _recover(self) -> None:
        """Go on with what a killed service was at, unless that is what kills it."""
        for job in self._store.recover(MOST_ATTEMPTS):
            published = (self._home / job.id / RESULT).is_dir()
            if not published:
                self._note_failure(job.id, dict(KILLER))
            self._store.finish(
                job.id,
                "done" if published else "failed",
                code="" if published else KILLER["code"],
                retention_s=self._settings.retention_s,
            )

    def _tidy(self) -> None:
        """Remove what a killed service left: uploads of which no job came, inputs of ended jobs."""
        known = self._store.known()
        for folder in self._home.iterdir():
            if folder.is_dir() and folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)
            elif folder.is_dir():
                job = self._store.get(folder.name)
                if job is not None and job.ended:
                    self._clear(job)

    def _ended(self, job: StoredJob) -> None:
        self._clear(job)
        self.watch.changed(job.id)

    def _clear(self, job: StoredJob) -> None:
        """Nobody needs the inputs of a job that has ended."""
        folder = self._home / job.id
        current = self._store_state(job)
        if current == "cancelled":
            shutil.rmtree(folder, ignore_errors=True)
            return
        with contextlib.suppress(OSError):
            for entry in folder.iterdir():
                if entry.name in _KEPT:
                    continue
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)

    def _store_state(self, job: StoredJob) -> str:
        try:
            found = self._store.get(job.id)
        except StoreError:
            return job.state
        return job.state if found is None else found.state

    # -- inside ---------------------------------------------------------------------------------

    def _order(self, job: StoredJob) -> dict[str, Any]:
        settings = self._settings
        names = job.about["index"]
        folders = [] if job.kind == "rescore" else self._locate(names)
        return {
            "folder": str(self._home / job.id),
            "indexes": [str(Path(folder).resolve()) for folder in folders],
            "names": names,
            "corpus": [
                path if is_address(path) else str(Path(path).resolve()) for path in settings.corpus
            ],
            "threads": settings.job_threads,
            "memory_bytes": settings.max_job_memory_bytes,
        }

    def _note_failure(self, job_id: str, failure: dict[str, str]) -> None:
        # With the results and not in the store, which holds nothing that a request said.
        with contextlib.suppress(OSError):
            (self._home / job_id / _FAILURE).write_text(json.dumps(failure), "ascii")

    def _summary(self, job: StoredJob) -> dict[str, Any]:
        try:
            return read_summary(self.result(job) / RUN)
        except (OSError, ValueError):
            return {}


@contextlib.contextmanager
def disk_errors() -> Iterator[None]:
    """A disk that takes nothing as RequestError, 503."""
    try:
        yield
    except OSError as error:
        raise RequestError(
            503, "the service cannot store what was sent", code="disk",
            headers={"Retry-After": "60"},
        ) from error  # fmt: skip
