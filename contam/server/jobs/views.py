"""Show a job and its result without its inputs or local paths."""

from __future__ import annotations

import functools
import json
import time
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from contam.server.jobs.model import StoredJob
    from contam.server.jobs.work.process import JobProgress

RUN: Final = "run.json"


def job_view(
    job: StoredJob,
    *,
    progress: JobProgress | None,
    seconds_left: float | None,
    result: dict[str, Any],
    error: dict[str, str] | None,
) -> dict[str, Any]:
    """A job as `contam.server.schemas.jobs.JobAnswer` has it.

    result  what `read_summary` gave of a done job, {} of another
    """
    index = result.get("index", {})
    link = f"/v1/jobs/{job.id}"
    links = {"self": link, "events": f"{link}/events"}
    if job.state == "done":
        links |= {"results": f"{link}/results", "run": f"{link}/run"}
    return {
        "id": job.id, "kind": job.kind, "state": job.state, "ended": job.ended,
        "created": date_of(job.created), "started": date_of(job.started),
        "finished": date_of(job.finished),
        "expires": None if seconds_left is None else date_of(time.time() + seconds_left),
        "attempts": job.attempts, **job.about,
        "progress": None if progress is None else _share(progress),
        "coverage": result.get("coverage"), "counts": result.get("counts"),
        "guarantee_tokens": index.get("guarantee_tokens"), "capped": index.get("capped"),
        "notes": result.get("notes", []), "error": error, "links": links,
    }  # fmt: skip


@functools.lru_cache(maxsize=256)
def read_summary(path: Path) -> dict[str, Any]:
    """What a job shows of its result, read from run.json. Raises OSError or ValueError."""
    from contam.server.checks.answers import summary

    run = json.loads(path.read_bytes())
    coverage = run["coverage"]
    return {
        "coverage": summary(coverage) if "shards_failed" in coverage else coverage,
        "counts": run.get("counts"),
        "index": run.get("index", {}),
        "notes": run.get("notes", []),
    }


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


def date_of(seconds: float | None) -> str | None:
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
