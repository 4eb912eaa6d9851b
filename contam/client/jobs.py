"""Send jobs, wait for them and fetch their results."""

from __future__ import annotations

import gzip
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from contam.benchmark.items import ItemName
from contam.client import wire
from contam.client.answers import Answer, Job
from contam.client.calls import Flow, Pause, Send, UploadPart, sent
from contam.client.failures import AnswerError, JobError
from contam.client.retry import PATIENT, Retry, retry_after_s
from contam.errors import UsageError
from contam.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from contam.client.flows import Asked
    from contam.client.wire import Item, Row

PathLike: TypeAlias = str | Path
Watcher: TypeAlias = Callable[[Job], object]

JSON: Final = "application/json"
PARQUET: Final = "application/vnd.apache.parquet"
RESULT_TABLES: Final = ("verdicts", "evidence", "items")
_NDJSON: Final = "application/x-ndjson"
_ROWS: Final = "contam-rows"
_PAGE_ROWS: Final = 20_000
_POLL_S: Final = (0.1, 5.0)
_ACCEPTED: Final = 202


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """A re-scoring: rows of every table of `contam rescore` by its name, and how it was made."""

    tables: Mapping[str, list[dict[str, Any]]]
    summary: str
    run: Mapping[str, Any] = field(repr=False)

    def plot(
        self, *, benchmark: str | None = None, metric: str | None = None, policy: str | None = None
    ) -> Figure:
        """A figure of each model's scores on all and on clean items, with their intervals.

        benchmark, metric, policy  of these only; a plot for each is drawn below the other

        Raises UsageError for names without scores, MissingExtraError without matplotlib.
        """
        require("scores", "matplotlib")
        # Here, not above: nothing else about an answer needs tables.
        from contam.rescore.export.plots import score_figure

        return score_figure(
            self.tables["scores"],
            self.run["parameters"]["least"],
            benchmark=benchmark,
            metric=metric,
            policy=policy,
        )


def submit(
    items: Iterable[Item], asked: Asked, retry: Retry, *, key: str | None, keep_text: bool
) -> Flow[Job]:
    """Send items to be judged by a job; `key` is what makes a repeated request the same job."""
    rows = wire.item_rows(items)
    for row in rows:
        row.setdefault("benchmark", wire.BENCHMARK)
    about = asked.body()
    if asked.context:
        raise UsageError(
            "a job tells places, and no text around them",
            hint="ask without context, or for no more items at once than one check takes",
        )
    request: Row = {
        "kind": "check",
        **{name: about[name] for name in ("index", "policies") if name in about},
        "options": {
            "allow_missing": asked.allow_missing,
            "max_evidence": asked.max_evidence,
            "keep_text": keep_text,
            "mapping": wire.job_mapping(rows),
        },
    }
    # The time in a gzip header would make equal uploads differ.
    packed = gzip.compress(b"".join(wire.json_bytes(row) + b"\n" for row in rows), 6, mtime=0)
    call = Send(
        method="POST",
        path="/v1/jobs",
        headers={"Idempotency-Key": key or uuid.uuid4().hex},
        parts=(
            UploadPart("job", "job.json", wire.json_bytes(request), JSON),
            UploadPart("items", "items.jsonl.gz", packed),
        ),
    )
    reply = yield from sent(call, retry)
    return wire.job_of(wire.parsed(reply.body, str(call)))


def show(job: Job | str, retry: Retry) -> Flow[tuple[Job, float | None]]:
    """A job as it is now, and after how many seconds it may be asked for again."""
    call = Send(method="GET", path=f"/v1/jobs/{_id(job)}")
    reply = yield from sent(call, retry)
    found = wire.job_of(wire.parsed(reply.body, str(call)))
    return found, retry_after_s(reply.headers)


def cancel(job: Job | str, retry: Retry) -> Flow[None]:
    """Stop a job, or delete one that has ended."""
    yield from sent(Send(method="DELETE", path=f"/v1/jobs/{_id(job)}"), retry)


def wait(job: Job | str, *, timeout_s: float | None, watcher: Watcher | None) -> Flow[Job]:
    """Ask until a job is done. JobError when it failed, was cancelled, or takes too long.

    It outlives a restart of the service: broken connections are met with patience.
    """
    waited_s, pause_s = 0.0, _POLL_S[0]
    while True:
        now, asked_s = yield from show(job, PATIENT)
        if watcher is not None:
            watcher(now)
        if now.state == "done":
            return now
        if now.ended:
            raise _ended(now)
        # A short job is not kept waiting for the second that the service proposes at first.
        step = pause_s if waited_s < 1 else max(pause_s, asked_s or 0.0)
        if timeout_s is not None and waited_s + step > timeout_s:
            raise JobError(
                f"job {now.id} is {now.state} after {waited_s:.0f} s of waiting",
                code="timeout",
                hint="it goes on: wait for it again by its id",
            )
        yield Pause(step)
        waited_s, pause_s = waited_s + step, min(pause_s * 1.5, _POLL_S[1])


def _ended(job: Job) -> JobError:
    error = job.tree.get("error")
    error = error if isinstance(error, dict) else {}
    message = f": {error['message']}" if error.get("message") else ""
    return JobError(
        f"job {job.id} {'failed' if job.state == 'failed' else 'was cancelled'}{message}",
        code=str(error.get("code") or job.state),
        hint=str(error.get("hint") or ""),
    )


def results(job: Job, retry: Retry, wanted: Sequence[ItemName] | None = None) -> Flow[Answer]:
    """The verdicts and evidence of a job that is done."""
    run = yield from _run_of(job, retry)
    verdicts = yield from _rows(job, "verdicts", retry)
    evidence = yield from _rows(job, "evidence", retry)
    return wire.job_answer(job, run, verdicts, evidence, wanted)


def _run_of(job: Job, retry: Retry) -> Flow[Row]:
    call = Send(method="GET", path=f"/v1/jobs/{_id(job)}/run")
    reply = yield from sent(call, retry)
    return wire.parsed(reply.body, str(call))


def _rows(job: Job, table: str, retry: Retry) -> Flow[list[Row]]:
    """All rows of a table, by pages: a broken one is asked for again, and none is lost."""
    found: list[Row] = []
    n_rows: int | None = None
    while n_rows is None or len(found) < n_rows:
        call = Send(
            method="GET",
            path=f"/v1/jobs/{_id(job)}/results",
            query={"table": table, "cursor": str(len(found)), "limit": str(_PAGE_ROWS)},
            headers={"Accept": _NDJSON},
        )
        reply = yield from sent(call, retry)
        header = reply.headers.get(_ROWS, "")
        if not header.isdigit() or (n_rows is not None and int(header) != n_rows):
            raise AnswerError(f"{call}: the answer does not say how many rows there are")
        n_rows = int(header)
        rows = list(wire.lines_of(reply.body, str(call)))
        if len(rows) != min(_PAGE_ROWS, n_rows - len(found)):
            raise AnswerError(f"{call}: the answer has not as many rows as it should")
        found += rows
    return found


def save(job: Job, folder: Path, retry: Retry) -> Flow[None]:
    """Write the files of a check's result into a folder, as they are at the service."""
    run = yield from _run_of(job, retry)
    for table in RESULT_TABLES:
        call = Send(
            method="GET",
            path=f"/v1/jobs/{_id(job)}/results",
            query={"table": table},
            headers={"Accept": PARQUET},
            save=folder / f"{table}.parquet",
        )
        yield from sent(call, retry)
    (folder / "run.json").write_bytes(wire.json_bytes(run))


def rescore(
    verdicts: Job | str | Path | Answer,
    logs: PathLike | Sequence[PathLike],
    retry: Retry,
    items: Iterable[Item],
    policies: Sequence[str],
    options: Mapping[str, Any],
) -> Flow[Rescored]:
    """Score models without the flagged items; see `Client.rescore`."""
    request: Row = {"kind": "rescore", "policies": list(policies), "options": options}
    parts = list(_log_parts([logs] if isinstance(logs, str | Path) else logs))
    if isinstance(verdicts, Path):
        parts += [_part("verdicts", path, path.name) for path in sorted(verdicts.iterdir())]
    elif isinstance(verdicts, Answer):
        evidence = {name: [asdict(row) for row in rows] for name, rows in verdicts.evidence.items()}
        rows = [verdict.to_dict() for verdict in verdicts]
        for row in rows:
            row["evidence"] = evidence.get(ItemName.in_row(row), [])
        asked = [wire.item_row(item) for item in wire.given_items(items)]
        coverage = dict(verdicts.coverage)
        request["inline"] = {"verdicts": rows, "coverage": coverage, "items": asked}
    else:
        request["job"] = verdicts if isinstance(verdicts, str) else verdicts.id
    call = Send(
        method="POST",
        path="/v1/rescore",
        headers={"Idempotency-Key": uuid.uuid4().hex},
        parts=(UploadPart("rescore", "rescore.json", wire.json_bytes(request), JSON), *parts),
    )
    reply = yield from sent(call, retry)
    if reply.status == _ACCEPTED:
        job = yield from wait(
            wire.job_of(wire.parsed(reply.body, str(call))), timeout_s=None, watcher=None
        )
        call = Send(method="GET", path=f"/v1/rescore/{_id(job)}")
        reply = yield from sent(call, retry)
    return _rescored(wire.parsed(reply.body, str(call)), str(call))


def _rescored(tree: Row, where: str) -> Rescored:
    tables, summary, run = (tree.get(name) for name in ("tables", "summary", "run"))
    if not (isinstance(tables, dict) and isinstance(summary, str) and isinstance(run, dict)):
        raise AnswerError(f"{where}: the answer has no tables")
    if not all(isinstance(rows, list) for rows in tables.values()) or "scores" not in tables:
        raise AnswerError(f"{where}: a table is no list of rows")
    return Rescored(tables=tables, summary=summary, run=run)


def _log_parts(logs: Sequence[PathLike]) -> Iterable[UploadPart]:
    """Files and all files of folders, under their paths within the folders."""
    n_files = 0
    for place, given in enumerate(map(Path, logs)):
        within = f"{place}/" if len(logs) > 1 else ""
        if given.is_dir():
            files = [
                path
                for path in sorted(given.rglob("*"))
                if path.is_file()
                and not any(p.startswith(".") for p in path.relative_to(given).parts)
            ]
        else:
            files = [given]
        for file in files:
            n_files += 1
            name = str(file.relative_to(given)) if given.is_dir() else file.name
            yield _part("logs", file, within + name)
    if not n_files:
        raise UsageError("there is no log to send", hint="name files or folders of logs")


def _part(role: str, path: Path, name: str) -> UploadPart:
    if not path.is_file():
        raise UsageError(f"cannot read {path}: no such file")
    return UploadPart(role, name, path)


def _id(job: Job | str) -> str:
    """A job's id as a piece of an address; UsageError for what is none."""
    job_id = job if isinstance(job, str) else job.id
    if not job_id.isalnum() or not job_id.isascii():
        raise UsageError("that is no id of a job")
    return job_id
