"""Manage the jobs of a service: accept, show, run, and delete when they expire."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import shutil
import threading
import time
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from contam.errors import ConfigError, UsageError
from contam.files.addresses import is_address
from contam.server.indexes import named_folders
from contam.server.jobs.runner import Runner
from contam.server.jobs.store import MOST_ATTEMPTS, JobStore, StoreError
from contam.server.jobs.task import LOCK, RESULT
from contam.server.problems import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.config import Settings
    from contam.server.jobs.runner import JobProgress
    from contam.server.jobs.store import StoredJob

RUN: Final = "run.json"

_FAILURE: Final = "failure.json"
_KEPT: Final = frozenset({RESULT, _FAILURE, LOCK})
_SWEEP_S: Final = 30.0
_PROBE_S: Final = 2.0
_KILLER: Final = {
    "code": "worker-crashed",
    "message": f"it was started {MOST_ATTEMPTS} times, and each time the service itself ended",
    "hint": "send it in several jobs; a service that is killed often lacks memory",
}


class Jobs:
    """Everything a service knows of jobs. Methods may be called from any thread.

    problem  why the store would accept no job, as of the last look, 2 s ago at most
    """

    def __init__(self, settings: Settings) -> None:
        """Take the data folder. Raises ConfigError when it is not usable."""
        self.settings = settings
        self.home = Path(settings.data).resolve() / "jobs"
        self._lock = _own(self.home)
        try:
            self.store = JobStore(self.home.parent / "jobs.db")
            self._recover()
            self._tidy()
        except BaseException:
            os.close(self._lock)
            raise
        self.problem = ""
        self._stopping = threading.Event()
        self.runner = Runner(
            self.store,
            order=self._order,
            failed=self._note_failure,
            ended=self._clear,
            n_workers=settings.job_workers,
            most_s=settings.max_job_s,
        )
        self._sweeper = threading.Thread(target=self._sweep_on, name="jobs-sweep", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self.runner.start()
        self._sweeper.start()

    def close(self) -> None:
        """Stop working; what runs is queued again."""
        self._stopping.set()
        self.runner.close()
        if self._sweeper.is_alive():
            self._sweeper.join()
        self.store.close()
        os.close(self._lock)

    def get(self, job_id: str, owner: str | None) -> StoredJob:
        """A job of this owner (None: of anybody). Raises RequestError, 404."""
        job = self.store.get(job_id)
        if job is None or (owner is not None and job.owner != owner):
            raise RequestError(404, "there is no such job", code="no-job")
        return job

    def show(self, job: StoredJob) -> dict[str, Any]:
        """A job as its owner sees it: see `contam.server.jobs.schemas.JobAnswer`."""
        result = self._summary(job) if job.state == "done" else {}
        index = result.get("index", {})
        progress = self.runner.progress(job.id)
        link = f"/v1/jobs/{job.id}"
        links = {"self": link}
        if job.state == "done":
            links |= {"results": f"{link}/results", "run": f"{link}/run"}
        expires = None if job.finished is None else job.finished + self.settings.retention_s
        return {
            "id": job.id, "kind": job.kind, "state": job.state, "ended": job.ended,
            "created": _date_of(job.created), "started": _date_of(job.started),
            "finished": _date_of(job.finished), "expires": _date_of(expires),
            "attempts": job.attempts, **job.about,
            "progress": None if progress is None else _share(progress),
            "coverage": result.get("coverage"), "counts": result.get("counts"),
            "guarantee_tokens": index.get("guarantee_tokens"), "capped": index.get("capped"),
            "notes": result.get("notes", []),
            "error": self._failure(job) if job.state == "failed" else None,
            "links": links,
        }  # fmt: skip

    def result(self, job: StoredJob) -> Path:
        """The folder of a finished job's result."""
        return self.home / job.id / RESULT

    def cancel(self, job: StoredJob) -> StoredJob | None:
        """Stop a job; one that has ended is deleted with all that it left (None is then given)."""
        ended = self.store.finish(job.id, "cancelled", "cancelled")
        if ended is None:
            self._delete(job)
        elif not self.runner.stop_job(job.id):
            self._clear(ended)
        return ended

    def sweep(self) -> int:
        """Delete what has outlived its retention; returns how many jobs that were."""
        outlived = self.store.outlived(self.settings.retention_s)
        for job in outlived:
            self._delete(job)
        return len(outlived)

    def _delete(self, job: StoredJob) -> None:
        folder = self.home / job.id
        shutil.rmtree(folder, ignore_errors=True)
        # What could not be deleted stays known, and is tried again.
        if not folder.exists():
            self.store.forget(job.id)

    def _sweep_on(self) -> None:
        pause = min(_SWEEP_S, max(self.settings.retention_s / 4, 0.1))
        swept = time.monotonic()
        while not self._stopping.wait(min(_PROBE_S, pause)):
            try:
                self.store.probe()
                if time.monotonic() - swept >= pause:
                    self.sweep()
                    swept = time.monotonic()
                self.problem = ""
            except StoreError as error:
                self.problem = error.message

    def _recover(self) -> None:
        """Go on with what a killed service was at, unless that is what kills it."""
        for job in self.store.running():
            if (self.home / job.id / RESULT).is_dir():
                self.store.finish(job.id, "done")
            elif job.attempts < MOST_ATTEMPTS:
                self.store.give_back(job.id, counted=True)
            else:
                self._note_failure(job.id, _KILLER)
                self.store.finish(job.id, "failed", _KILLER["code"])

    def _tidy(self) -> None:
        """Remove what a killed service left: uploads of which no job came, inputs of ended jobs."""
        for folder in self.home.iterdir():
            job = self.store.get(folder.name)
            if job is None:
                shutil.rmtree(folder, ignore_errors=True)
            elif job.ended:
                self._clear(job)

    def _clear(self, job: StoredJob) -> None:
        """Nobody needs the inputs of a job that has ended."""
        folder = self.home / job.id
        with contextlib.suppress(StoreError):
            job = self.store.get(job.id) or job
        if job.state == "cancelled":
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

    def _order(self, job: StoredJob) -> dict[str, Any]:
        names = job.about["index"]
        served = named_folders(self.settings.index, self.settings.home) if names else {}
        if missing := [name for name in names if name not in served]:
            raise UsageError(f"the index {missing[0]} is not served any more")
        return {
            "folder": str(self.home / job.id),
            "indexes": [str(served[name].resolve()) for name in names],
            "corpus": [
                path if is_address(path) else str(Path(path).resolve())
                for path in self.settings.corpus
            ],
            "threads": self.settings.job_threads,
            "memory_bytes": self.settings.max_job_memory_bytes,
        }

    def _note_failure(self, job_id: str, failure: dict[str, str]) -> None:
        # With the results and not in the store, which holds nothing that a request said.
        with contextlib.suppress(OSError):
            (self.home / job_id / _FAILURE).write_text(json.dumps(failure), "ascii")

    def _failure(self, job: StoredJob) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads((self.home / job.id / _FAILURE).read_bytes())
        except (OSError, ValueError):
            return {"code": job.code, "message": "the job failed", "hint": ""}
        return found

    def _summary(self, job: StoredJob) -> dict[str, Any]:
        try:
            return _read_summary(self.result(job) / RUN)
        except (OSError, ValueError):
            return {}


def run_view(path: Path, names: list[str]) -> dict[str, Any]:
    """A result's run.json, with names for places; its digests stay true.

    names  of the indexes that were asked

    Raises OSError or ValueError.
    """
    run: dict[str, Any] = json.loads(path.read_bytes())
    for section in ("parameters", "inputs"):
        run[section] = _without_places(run.get(section, {}))
    if names:
        run["inputs"]["index"] = names
    return run


@contextlib.contextmanager
def disk_errors() -> Iterator[None]:
    """A disk that takes nothing as RequestError, 503."""
    try:
        yield
    except OSError as error:
        raise RequestError(
            503, "the service cannot store what was sent", code="disk",
            hint="the operator must look at the disk of the data folder",
            headers={"Retry-After": "60"},
        ) from error  # fmt: skip


def _own(home: Path) -> int:
    """Make the folder of jobs this service's alone. Raises ConfigError when another has it."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A hand may have made it otherwise.
        home.chmod(0o700)
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


@functools.lru_cache(maxsize=256)
def _read_summary(path: Path) -> dict[str, Any]:
    """What a job shows of its result, read from run.json. Raises OSError or ValueError."""
    from contam.server.answers import summary

    run = json.loads(path.read_bytes())
    coverage = run["coverage"]
    return {
        "coverage": summary(coverage) if "shards_failed" in coverage else coverage,
        "counts": run.get("counts"),
        "index": run.get("index", {}),
        "notes": run.get("notes", []),
    }


def _date_of(seconds: float | None) -> str | None:
    """Seconds since 1970 as a date, UTC."""
    if seconds is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _without_places(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {name: _without_places(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_places(item) for item in value]
    if isinstance(value, str) and value.startswith("/"):
        return PurePath(value).name
    return value


def _share(progress: JobProgress) -> dict[str, Any]:
    share = min(1.0, progress.done / progress.total) if progress.total else 0.0
    return {
        "phase": progress.phase, "done_bytes": progress.done, "total_bytes": progress.total,
        "share": round(share, 4),
    }  # fmt: skip
