"""The jobs of a service: accepted, shown, worked on, and deleted when their time is over."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import secrets
import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.detect.report import FILES as VERDICT_FILES
from contam.errors import ConfigError, ContamError
from contam.server.failures import RequestError
from contam.server.jobs.events import Watch
from contam.server.jobs.model import (
    KeyInUseError,
    KeyReusedError,
    QueueFullError,
    StoreError,
)
from contam.server.jobs.run import LOCK, REQUEST, RESULT
from contam.server.jobs.store import JobStore
from contam.server.jobs.tasks import LOGS, VERDICTS
from contam.server.jobs.worker import Hooks, Worker
from contam.tables.publish import sync_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contam.config import Settings
    from contam.server.jobs.clock import Clock
    from contam.server.jobs.model import Job
    from contam.server.jobs.uploads import Received

_FAILURE: Final = "failure.json"
_KEPT: Final = frozenset({RESULT, _FAILURE, LOCK, REQUEST})
_SWEEP_S: Final = 30.0
_BUSY_S: Final = 2.0
_PROBE_S: Final = 1.0

#: Index names -> the folders they are served from; raises ContamError for one that is not served.
Locate = "Callable[[Sequence[str]], Sequence[Path]]"


class Jobs:
    """Everything a service knows of jobs. Methods may be called from any thread.

    `locate` gives the folders of indexes by their names, and `corpus` where their shards lie now.
    """

    def __init__(
        self,
        settings: Settings,
        locate: Callable[[Sequence[str]], Sequence[Path]],
        *,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._locate = locate
        self._home = Path(settings.data).resolve() / "jobs"
        self._lock = _own(self._home)
        try:
            self._store = JobStore(self._home.parent / "jobs.db", clock=clock, busy_s=_BUSY_S)
            self._tidy()
            self._store.recover()
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, StoreError):
                raise ConfigError(error.message, hint=error.hint) from error
            raise
        self.watch = Watch()
        self._probed = (-_PROBE_S, "")
        self._stopping = threading.Event()
        hooks = Hooks(
            order=self._order,
            changed=self.watch.changed,
            ended=self._ended,
            failed=self._note_failure,
            retention_s=settings.retention_s,
        )
        # A re-scoring is short and somebody waits for it: it does not queue behind long checks.
        lanes = {"check": settings.job_workers, "rescore": min(1, settings.job_workers)}
        self._worker = Worker(self._store, hooks, lanes=lanes)  # type: ignore[arg-type]  # of Kind
        self._sweeper = threading.Thread(target=self._sweep_on, name="jobs-sweep", daemon=True)

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

    def problem(self) -> str:
        """Why no job would be accepted now; empty when one would. Asked anew after a second."""
        at, found = self._probed
        if time.monotonic() - at < _PROBE_S:
            return found
        try:
            self._store.probe()
            found = ""
        except StoreError as error:
            found = error.message
        self._probed = (time.monotonic(), found)
        return found

    def states(self) -> dict[str, int]:
        """How many jobs are in each state."""
        with _answered():
            return self._store.states()

    # -- accepting ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def receiving(self, owner: str, idempotency: str | None) -> Iterator[Receiving]:
        """A folder for an upload; unless a job is made of it, it is gone when the block ends.

        idempotency  what the request says in `Idempotency-Key`

        Raises RequestError: 409 when a request with this key is being received, 503 when the queue
        is full or the store takes nothing.
        """
        with _answered():
            self._store.refuse_full(self._settings.max_queued_jobs)
            name = None if idempotency is None else _hidden(owner, idempotency)
            known = None if name is None else self._store.reserve(name)
        job_id = secrets.token_hex(12)
        folder = self._home / job_id
        receiving = Receiving(self, owner, job_id, folder, name, known)
        try:
            with _disk_errors():
                folder.mkdir(mode=0o700)
            yield receiving
        finally:
            if receiving.job is None or receiving.job.id != job_id:
                shutil.rmtree(folder, ignore_errors=True)
            if receiving.job is None and known is None and name is not None:
                with contextlib.suppress(StoreError):
                    self._store.release(name)

    def accept(self, upload: Receiving, request: dict[str, Any], received: Received) -> Job:
        """Make a job of an upload; when this returns, it is on disk and will be worked on."""
        fingerprint = received.fingerprint()
        with _answered():
            if upload.known is not None and upload.name is not None:
                self._store.check_same(upload.name, fingerprint)
                return upload.known
            with _disk_errors():
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
                    "n_bytes": sum(one.n_bytes for one in received.files),
                },
                most_queued=self._settings.max_queued_jobs,
                idempotency=None if upload.name is None else (upload.name, fingerprint),
            )
        upload.job = job
        self._worker.wake()
        return job

    def copy_verdicts(self, source: Job, folder: Path) -> None:
        """Put the verdicts of a finished check job beside an upload; they outlive that job."""
        target = folder / VERDICTS
        with _disk_errors():
            target.mkdir()
            for name in VERDICT_FILES:
                try:
                    os.link(self.result(source) / name, target / name)
                except OSError:
                    shutil.copyfile(self.result(source) / name, target / name)
            sync_path(target)

    # -- looking --------------------------------------------------------------------------------

    def get(self, job_id: str, owner: str | None) -> Job:
        """A job of this owner (None: of anybody). Raises RequestError, 404."""
        with _answered():
            job = self._store.get(job_id)
        if job is None or (owner is not None and job.owner != owner):
            raise RequestError(
                404, "there is no such job", code="no-job",
                hint="it may be over its retention: see GET /v1/jobs",
            )  # fmt: skip
        return job

    def listed(self, owner: str | None, *, before: int | None, limit: int) -> list[Job]:
        """Jobs of an owner (None: of all), the newest first."""
        with _answered():
            return self._store.listed(owner, before=before, limit=limit)

    def show(self, job: Job) -> dict[str, Any]:
        """A job as its owner sees it: see `contam.server.schemas.jobs.JobAnswer`."""
        progress = self._worker.progress(job.id)
        with _answered():
            left = self._store.seconds_left(job)
        run = self._run_of(job) if job.state == "done" else {}
        index = run.get("index", {})
        return {
            "id": job.id, "kind": job.kind, "state": job.state, "ended": job.ended,
            "created": _date(job.created), "started": _date(job.started),
            "finished": _date(job.finished),
            "expires": None if left is None else _date(time.time() + left),
            "attempts": job.attempts, **job.about,
            "progress": None if progress is None else _share(progress),
            "coverage": run.get("coverage"), "counts": run.get("counts"),
            "guarantee_tokens": index.get("guarantee_tokens"), "capped": index.get("capped"),
            "notes": run.get("notes", []),
            "error": self._failure(job) if job.state == "failed" else None,
        }  # fmt: skip

    def result(self, job: Job) -> Path:
        """The folder of a finished job's result."""
        return self._home / job.id / RESULT

    # -- ending ---------------------------------------------------------------------------------

    def cancel(self, job: Job) -> Job | None:
        """Stop a job; one that has ended is deleted with all that it left (None is then given)."""
        with _answered():
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

    def _delete(self, jobs: Sequence[Job]) -> int:
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
        while not self._stopping.wait(pause):
            with contextlib.suppress(StoreError):
                self.sweep()

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

    def _ended(self, job: Job) -> None:
        self._clear(job)
        self.watch.changed(job.id)

    def _clear(self, job: Job) -> None:
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

    def _store_state(self, job: Job) -> str:
        try:
            found = self._store.get(job.id)
        except StoreError:
            return job.state
        return job.state if found is None else found.state

    # -- inside ---------------------------------------------------------------------------------

    def _order(self, job: Job) -> dict[str, Any]:
        settings = self._settings
        names = job.about["index"]
        folders = [] if job.kind == "rescore" else self._locate(names)
        return {
            "folder": str(self._home / job.id),
            "indexes": [str(Path(one).resolve()) for one in folders],
            "names": names,
            "corpus": [str(Path(one).resolve()) for one in settings.corpus],
            "threads": settings.job_threads,
            "memory_bytes": settings.max_job_memory_bytes,
        }

    def _note_failure(self, job_id: str, failure: dict[str, str]) -> None:
        # With the results and not in the store, which holds nothing that a request said.
        with contextlib.suppress(OSError):
            (self._home / job_id / _FAILURE).write_text(json.dumps(failure), "ascii")

    def _failure(self, job: Job) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads((self._home / job.id / _FAILURE).read_bytes())
        except (OSError, ValueError):
            return {"code": job.code, "message": "the job failed", "hint": ""}
        return found

    def _run_of(self, job: Job) -> dict[str, Any]:
        try:
            return read_summary(self.result(job) / "run.json")
        except (OSError, ValueError):
            return {}


class Receiving:
    """An upload on its way: where it goes, and the job its idempotency key has made already."""

    def __init__(
        self,
        jobs: Jobs,
        owner: str,
        job_id: str,
        folder: Path,
        name: str | None,
        known: Job | None,
    ) -> None:
        self._jobs = jobs
        self.owner = owner
        self.job_id = job_id
        self.folder = folder
        self.name = name
        self.known = known
        self.job: Job | None = None

    def accept(self, request: dict[str, Any], received: Received) -> Job:
        """Make a job of it."""
        return self._jobs.accept(self, request, received)


@functools.lru_cache(maxsize=256)
def read_summary(path: Path) -> dict[str, Any]:
    """What a job's resource tells of its result. Raises OSError or ValueError."""
    from contam.server.answers import summary

    run = json.loads(path.read_bytes())
    return {
        "coverage": summary(run["coverage"]) if "shards_failed" in run["coverage"] else run["coverage"],
        "counts": run.get("counts"),
        "index": run.get("index", {}),
        "notes": run.get("notes", []),
    }


def _own(home: Path) -> int:
    """Make the folder of jobs this service's alone. Raises ConfigError when another has it."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(home.parent / "jobs.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"cannot write the data folder {home.parent}: {error.strerror}",
            hint="give --data a folder of its own",
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise ConfigError(
            f"another service uses the data folder {home.parent}",
            hint="give each service a --data of its own",
        ) from error
    return handle


def _hidden(owner: str, key: str) -> str:
    """What the store knows of an idempotency key; keys of different owners never meet."""
    return hashlib.sha256(f"{owner}\0{key}".encode()).hexdigest()


def _date(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _share(progress: Any) -> dict[str, Any]:  # noqa: ANN401 - of the worker
    share = min(1.0, progress.done / progress.total) if progress.total else 0.0
    return {
        "phase": progress.phase, "done_bytes": progress.done, "total_bytes": progress.total,
        "share": round(share, 4),
    }  # fmt: skip


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """What the store refuses as the answer to a request."""
    try:
        yield
    except KeyInUseError as error:
        raise RequestError(
            409, error.message, hint=error.hint, code=error.code, headers={"Retry-After": "1"}
        ) from error
    except KeyReusedError as error:
        raise RequestError(422, error.message, hint=error.hint, code=error.code) from error
    except QueueFullError as error:
        raise RequestError(
            503, error.message, hint=error.hint, code=error.code, headers={"Retry-After": "30"}
        ) from error
    except StoreError as error:
        raise RequestError(
            503, error.message, hint=error.hint, code=error.code, headers={"Retry-After": "5"}
        ) from error


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    """A disk that takes nothing as the answer to a request."""
    try:
        yield
    except OSError as error:
        raise disk_refused() from error


def disk_refused() -> RequestError:
    """The answer when an upload cannot be written."""
    return RequestError(
        503, "the service cannot store the upload", code="disk",
        hint="the operator must look at the disk of the data folder", headers={"Retry-After": "60"},
    )  # fmt: skip


__all__ = ["LOGS", "VERDICTS", "ContamError", "Jobs", "Receiving", "disk_refused"]
