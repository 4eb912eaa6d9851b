"""Serve the tables of a finished job as files and as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.detect.report import TABLES as CHECK_TABLES
from contam.server.jobs.views import RUN, run_view
from contam.server.problems.failures import RequestError
from contam.tables.score_schemas import SUMMARY
from contam.tables.score_schemas import TABLES as RESCORE_TABLES
from contam.tables.table_pages import TablePages, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contam.server.jobs.model import Kind, StoredJob

PARQUET: Final = "application/vnd.apache.parquet"
_TABLES: Final[dict[Kind, tuple[str, ...]]] = {
    "check": tuple(name.removesuffix(".parquet") for name in CHECK_TABLES),
    "rescore": RESCORE_TABLES,
}


def refuse_unfinished(job: StoredJob) -> None:
    """Raise RequestError, 409, for a job without a result."""
    if job.state == "done":
        return
    waiting = not job.ended
    raise RequestError(
        409,
        f"the job is {job.state} and has no result",
        code="no-result",
        hint="wait for its end: GET /v1/jobs/ID, or /events" if waiting else "send it again",
        headers={"Retry-After": "1"} if waiting else None,
    )


def table_path(job: StoredJob, result: Path, table: str) -> Path:
    """The file of a table; its first one when none is named.

    Raises RequestError: 409 for a job that is not done, 404 for an unknown table.
    """
    refuse_unfinished(job)
    names = _TABLES[job.kind]
    if table and table not in names:
        raise RequestError(
            404,
            f"a {job.kind} has no such table",
            code="no-table",
            hint=f"it has {', '.join(names)}",
        )
    path = result / f"{table or names[0]}.parquet"
    if not path.is_file():
        raise RequestError(404, "the result is gone", code="no-result", hint="send the job again")
    return path


def wants_parquet(accept: str) -> bool:
    """Whether Parquet is asked for; whoever does not name it gets lines of JSON."""
    return PARQUET in accept.lower()


class TableLines:
    """Rows `cursor` to before `end` of a table as lines of JSON; iterate it once."""

    def __init__(self, path: Path, cursor: int, limit: int | None) -> None:
        self._pages = TablePages(path)
        self.n_rows = self._pages.n_rows
        self.start = min(cursor, self.n_rows)
        self.end = self.n_rows if limit is None else min(self.start + limit, self.n_rows)

    def __iter__(self) -> Iterator[bytes]:
        return self._pages.lines(self.start, self.end)


def rescore_answer(job: StoredJob, result: Path) -> dict[str, Any]:
    """A re-scoring as `contam.server.schemas.jobs.RescoreAnswer` has it. Raises OutputError."""
    tables = {name: read_rows(result / f"{name}.parquet") for name in RESCORE_TABLES}
    return {
        "job": job.id,
        "tables": tables,
        "summary": (result / SUMMARY).read_text("utf-8"),
        "run": run_view(result / RUN, []),
    }
