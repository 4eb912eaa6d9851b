"""The client of a service: asks over HTTP, and waits for each answer."""

from __future__ import annotations

import contextlib
import gzip
import time
import uuid
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack, cast
from urllib.parse import urlsplit

import httpx

import contam
from contam.benchmark.items import BenchItem
from contam.client import answers
from contam.client.answers import AnswerError, JobError, Retry, ServiceError, UnreachableError
from contam.config import secret
from contam.errors import OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contam.benchmark.items import ItemName
    from contam.client.answers import Answer, Item, Items, Job, Row

    PathLike = str | Path
    Watcher = Callable[[Job], object]
    Part = tuple[str, tuple[str, Any, str]]


CHECK_ITEMS: Final = 256
"""Items that go into one check; more are judged by a job, as `contam query` judges them: together,
so that wording which the items of a benchmark share counts alike."""

_CONNECT_S: Final = 10.0
_JSON: Final = "application/json"
_NDJSON: Final = "application/x-ndjson"
_PARQUET: Final = "application/vnd.apache.parquet"
_BYTES: Final = "application/octet-stream"
_ROWS: Final = "contam-rows"
_POLL_S: Final = (0.1, 5.0)


class JobOptions(TypedDict, total=False):
    """What may be asked of a job.

    index  a name, several that answer as one, or None for all that are served
    """

    index: str | Sequence[str] | None
    policies: Sequence[str]
    max_evidence: int
    allow_missing: bool


class CheckOptions(JobOptions, total=False):
    """What may be asked of a check."""

    evidence: bool
    context: int


class Client:
    """A contam service, asked over HTTP; close it, or use it in a `with` block.

    server     such as "http://127.0.0.1:8000"
    key        None takes CONTAM_KEY, or the file that CONTAM_KEY_FILE names
    timeout_s  seconds for the service to say anything
    retry      how often 429, 503 and a broken connection are met by asking again

    Every method raises ContamError subclasses (`contam.client.answers`) when there is no answer.
    One client may be used by several threads; from an event loop, ask on one:
    `await anyio.to_thread.run_sync(client.check, items)`.
    """

    def __init__(
        self,
        server: str,
        *,
        key: str | None = None,
        timeout_s: float = 60.0,
        retry: Retry | None = None,
    ) -> None:
        self._retry = retry or Retry()
        key = key or (secret("CONTAM_KEY") or "").strip()
        _check_address(server, key)
        headers = {"User-Agent": f"contam/{contam.__version__}"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._http = httpx.Client(
            base_url=server.rstrip("/"),
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=_CONNECT_S),
            follow_redirects=False,
            # A proxy of the environment is not meant for this machine.
            trust_env=not _is_loopback(urlsplit(server).hostname or ""),
        )

    def check(self, items: str | Item | Items, **options: Unpack[CheckOptions]) -> Answer:
        """Judge a text, one item or some; the verdicts are those of `contam.query`.

        items     a text, a `contam.BenchItem` or a dictionary, or several; a table of items (Arrow,
                  pandas, Polars, `datasets`), or tables by name. Rows of dictionaries and tables
                  are read as those of a file
        index     a name, several that answer as one, or None for all that the service has
        evidence  whether documents are named; `context` characters around each run

        More than 256 items become a job: items of one benchmark are judged together, since wording
        that all of them share proves nothing.
        """
        asked = _asked(options)
        if isinstance(items, str):
            return self._check({"text": items}, [answers.TEXT_ITEM], asked)
        rows = answers.item_rows([items] if isinstance(items, BenchItem) else items)
        if len(rows) <= CHECK_ITEMS:
            try:
                return self._check({"items": rows}, list(map(answers.name_of, rows)), asked)
            except ServiceError as error:
                # The service takes less at once than usual: a job has its own, larger limits.
                if error.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE or len(rows) == 1:
                    raise
        job = self.wait(self._submit(rows, asked, key=None, keep_text=False))
        return self._results(job, list(map(answers.name_of, rows)))

    def _check(self, what: Row, names: Sequence[ItemName], asked: CheckOptions) -> Answer:
        named = _named(asked, "index", "policies")
        options = _named(asked, "evidence", "max_evidence", "context", "allow_missing")
        reply = self._send(
            "POST",
            "/v1/check",
            content=answers.json_bytes({**named, "options": options, **what}),
            headers={"Content-Type": _JSON, "Accept": _JSON},
        )
        return answers.answer_of(
            answers.parsed(reply.content, "POST /v1/check"),
            names,
            len(asked["policies"]),
            allow_missing=asked.get("allow_missing", False),
            evidence=asked.get("evidence", True),
        )

    def indexes(self) -> list[dict[str, Any]]:
        """What the service has indexed: corpus, guarantee, coverage, sizes and dates."""
        return self._listed("indexes")

    def policies(self) -> list[dict[str, Any]]:
        """The definitions of contamination that the service knows."""
        return self._listed("policies")

    def _listed(self, what: str) -> list[dict[str, Any]]:
        found = self._get(f"/v1/{what}").get(what)
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise AnswerError(f"GET /v1/{what}: the answer has no list of {what}")
        return found

    def submit(
        self,
        items: Iterable[Item] = (),
        *,
        benchmarks: Sequence[str] = (),
        keep_text: bool = False,
        key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Give up to a million items to a job, and go on.

        benchmarks  names of `contam benchmarks`, which the service reads itself, instead of items
        keep_text  whether the result repeats the items' texts
        key        equal requests under one key make one job, also from a script that runs again;
                   None makes a key that repeats of this call alone share
        """
        rows = [] if benchmarks else answers.item_rows(items)
        asked = _asked(options)
        return self._submit(rows, asked, key=key, keep_text=keep_text, benchmarks=benchmarks)

    def _submit(
        self,
        rows: list[Row],
        asked: CheckOptions,
        *,
        key: str | None,
        keep_text: bool,
        benchmarks: Sequence[str] = (),
    ) -> Job:
        if asked.get("context"):
            raise UsageError(
                "a job tells places, and no text around them",
                hint="ask without context, or for no more items at once than one check takes",
            )
        request = {
            "kind": "check",
            **_named(asked, "index", "policies"),
            "options": {
                **_named(asked, "allow_missing", "max_evidence"),
                "keep_text": keep_text,
            },
        }
        if benchmarks:
            return self._upload({**request, "benchmarks": list(benchmarks)}, [], key)
        for row in rows:
            row.setdefault("benchmark", answers.BENCHMARK)
        request["options"]["mapping"] = answers.job_mapping(rows)
        # The time in a gzip header would make equal uploads differ.
        packed = gzip.compress(
            b"".join(answers.json_bytes(row) + b"\n" for row in rows), 6, mtime=0
        )
        return self._upload(request, [("items", ("items.jsonl.gz", packed, _BYTES))], key)

    def _upload(self, request: Row, parts: list[Part], key: str | None = None) -> Job:
        part = ("job", ("job.json", answers.json_bytes(request), _JSON))
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        reply = self._send("POST", "/v1/jobs", headers=headers, files=[part, *parts])
        return answers.job_of(answers.parsed(reply.content, "POST /v1/jobs"))

    def job(self, job: Job | str) -> Job:
        """A job as it is now."""
        return answers.job_of(self._get(f"/v1/jobs/{_id(job)}"))

    def wait(
        self,
        job: Job | str,
        *,
        timeout_s: float | None = None,
        watcher: Watcher | None = None,
    ) -> Job:
        """Wait until a job is done; JobError when it fails, is cancelled, or takes too long.

        watcher  is called with the job whenever it was asked for

        It outlives a restart of the service: broken connections are met with patience.
        """
        path = f"/v1/jobs/{_id(job)}"
        waited_s, pause_s = 0.0, _POLL_S[0]
        while True:
            reply = self._send("GET", path, retry=answers.PATIENT)
            now = answers.job_of(answers.parsed(reply.content, f"GET {path}"))
            if watcher is not None:
                watcher(now)
            if now.state == "done":
                return now
            if now.ended:
                raise _ended(now)
            # A short job is not kept waiting for the second that the service proposes at first.
            step = (
                pause_s
                if waited_s < 1
                else max(pause_s, answers.retry_after_s(reply.headers) or 0.0)
            )
            if timeout_s is not None and waited_s + step > timeout_s:
                raise JobError(
                    f"job {now.id} is {now.state} after {waited_s:.0f} s of waiting",
                    code="timeout",
                    hint="it goes on: wait for it again by its id",
                )
            time.sleep(step)
            waited_s, pause_s = waited_s + step, min(pause_s * 1.5, _POLL_S[1])

    def results(self, job: Job) -> Answer:
        """The verdicts and evidence of a job that is done."""
        return self._results(job, None)

    def _results(self, job: Job, wanted: Sequence[ItemName] | None) -> Answer:
        run = self._get(f"/v1/jobs/{_id(job)}/run")
        verdicts, evidence = self._rows(job, "verdicts"), self._rows(job, "evidence")
        return answers.job_answer(job, run, verdicts, evidence, wanted)

    def _rows(self, job: Job, table: str) -> list[Row]:
        """All rows of a table."""
        path = f"/v1/jobs/{_id(job)}/results"
        reply = self._send("GET", path, params={"table": table}, headers={"Accept": _NDJSON})
        rows = list(answers.lines_of(reply.content, f"GET {path}"))
        if reply.headers.get(_ROWS) != str(len(rows)):
            raise AnswerError(f"GET {path}: the answer has not as many rows as it should")
        return rows

    def save(self, job: Job, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the result of a check as the folder that `contam query --out` writes."""
        with result_folder(out, overwrite=overwrite) as folder:
            self.download(job, folder)
        return Path(out)

    def download(self, job: Job, folder: str | Path) -> None:
        """Write the files of the result of a check into a folder that is there."""
        path = f"/v1/jobs/{_id(job)}"
        run = self._get(f"{path}/run")
        for table in ("verdicts", "evidence", "items"):
            self._send(
                "GET",
                f"{path}/results",
                params={"table": table},
                headers={"Accept": _PARQUET},
                save=Path(folder) / f"{table}.parquet",
            )
        (Path(folder) / "run.json").write_bytes(answers.json_bytes(run))

    def cancel(self, job: Job | str) -> None:
        """Stop a job; one that has ended is deleted with its result."""
        self._send("DELETE", f"/v1/jobs/{_id(job)}")

    def rescore(
        self,
        verdicts: Job | str,
        logs: PathLike | Sequence[PathLike],
        *,
        policies: Sequence[str] = (),
        **options: Any,  # noqa: ANN401 - each option has its own type
    ) -> answers.Rescored:
        """What models score without the flagged items: the tables of `contam rescore`.

        verdicts  a finished check job or its id
        logs      files and folders, sent under their names
        options   least, permutations, seed, references, columns, benchmark_as, allow_unmatched,
                  allow_partial, skip_damaged, separate_runs, lower_is_better, higher_is_better,
                  metrics, all_metrics, mixed_setups
        """
        request: Row = {
            "kind": "rescore", "job": _id(verdicts), "policies": list(policies), "options": options,
        }  # fmt: skip
        logs = [logs] if isinstance(logs, str | Path) else logs
        with contextlib.ExitStack() as files:
            parts = [
                ("logs", (name, files.enter_context(path.open("rb")), _BYTES))
                for path, name in _logs(logs)
            ]
            job = self._upload(request, parts)
        job = self.wait(job)
        summary = self._send("GET", f"/v1/jobs/{job.id}/summary").text
        # Here, not above: nothing else about an answer needs tables.
        from contam.tables.score_schemas import TABLES

        return answers.Rescored(
            tables={name: self._rows(job, name) for name in TABLES},
            summary=summary,
            run=self._get(f"/v1/jobs/{job.id}/run"),
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _get(self, path: str) -> Row:
        return answers.parsed(self._send("GET", path).content, f"GET {path}")

    def _send(
        self,
        method: str,
        path: str,
        *,
        retry: Retry | None = None,
        save: Path | None = None,
        **request: Any,  # noqa: ANN401 - arguments of httpx
    ) -> httpx.Response:
        """Send a request until it is answered; refusals that may pass are waited out.

        save  a file for the body of the answer

        Raises ServiceError for a refusal, BusyError when it lasts, UnreachableError when no answer
        comes. Every request may be repeated: it asks, or it carries an idempotency key.
        """
        waited_s, attempt = 0.0, 0
        while True:
            attempt += 1
            asked_s = None
            failure: ServiceError | UnreachableError
            try:
                reply = self._sent(self._http.build_request(method, path, **request), save)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                failure = _unreachable(f"{method} {path}", error)
                again = failure.again
            else:
                if reply.is_success:
                    return reply
                problem = answers.problem_of(reply.content)
                failure = answers.problem_error(reply.status_code, problem, f"{method} {path}")
                again = answers.may_help(reply.status_code, failure.code, reply.headers)
                asked_s = answers.retry_after_s(reply.headers)
            wait_s = (retry or self._retry).wait_s(attempt, waited_s, asked_s) if again else None
            if wait_s is None:
                raise failure
            time.sleep(wait_s)
            waited_s += wait_s
            _rewind(request.get("files", ()))

    def _sent(self, request: httpx.Request, save: Path | None) -> httpx.Response:
        reply = self._http.send(request, stream=True)
        with contextlib.closing(reply):
            if save is not None and reply.is_success:
                with save.open("wb") as out:
                    for chunk in reply.iter_bytes():
                        out.write(chunk)
            else:
                reply.read()
        return reply


def _rewind(parts: Iterable[Part]) -> None:
    for _, (_, content, _) in parts:
        if not isinstance(content, bytes):
            content.seek(0)


def _asked(options: Mapping[str, Any]) -> CheckOptions:
    """The options of a call. Raises UsageError."""
    if unknown := set(options) - set(CheckOptions.__annotations__):
        raise TypeError(f"unknown option {min(unknown)!r}")
    policies, index = options.get("policies", ("contam",)), options.get("index")
    if isinstance(policies, str) or not policies:
        raise UsageError("policies must be a list of names", hint='such as ["contam"]')
    if len(set(policies)) != len(policies):
        raise UsageError("a policy is named twice", hint="name each policy once")
    asked = {**options, "policies": list(policies)}
    if index is not None:
        asked["index"] = index if isinstance(index, str) else list(index)
    return cast("CheckOptions", asked)


def _named(asked: Mapping[str, Any], *names: str) -> Row:
    return {name: asked[name] for name in names if asked.get(name) is not None}


def _check_address(server: str, key: str | None) -> None:
    """Raise UsageError for an address or a key that is none.

    A key is never part of the address, which shows in messages and process lists.
    """
    try:
        parts = urlsplit(server)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or parts.query or parts.fragment:
        raise UsageError("the server is no address", hint="such as http://127.0.0.1:8000")
    if parts.username is not None:
        raise UsageError("the server's address holds a user", hint="give the key as CONTAM_KEY")
    if key is not None and not (key.isascii() and key.isprintable()):
        raise UsageError("the key is not one line of plain characters")


def _unreachable(call: str, error: httpx.HTTPError | httpx.InvalidURL) -> UnreachableError:
    """The error for a request that got no whole answer."""
    name = type(error).__name__
    untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
    patience = isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout)
    hint = (
        "its certificate is not trusted here: see SSL_CERT_FILE" if untrusted
        else "ask for less at once, or raise timeout_s" if patience
        else "is the service running, and the address right?"
    )  # fmt: skip
    lasting = isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL)
    return UnreachableError(
        f"{call}: no answer from the service ({name})",
        hint=hint,
        again=not (untrusted or patience or lasting),
    )


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _ended(job: Job) -> JobError:
    error = job.tree.get("error")
    error = error if isinstance(error, dict) else {}
    message = f": {error['message']}" if error.get("message") else ""
    return JobError(
        f"job {job.id} {'failed' if job.state == 'failed' else 'was cancelled'}{message}",
        code=str(error.get("code") or job.state),
        hint=str(error.get("hint") or ""),
    )


def _logs(logs: Sequence[PathLike]) -> Iterator[tuple[Path, str]]:
    """Files and all files of folders, with their paths within the folders."""
    n_files = 0
    for place, given in enumerate(map(Path, logs)):
        within = f"{place}/" if len(logs) > 1 else ""
        files = sorted(given.rglob("*")) if given.is_dir() else [given]
        for file in files:
            name = file.relative_to(given) if given.is_dir() else Path(file.name)
            if given.is_dir() and (not file.is_file() or any(p[0] == "." for p in name.parts)):
                continue
            if not file.is_file():
                raise UsageError(f"cannot read {file}: no such file")
            n_files += 1
            yield file, within + str(name)
    if not n_files:
        raise UsageError("there is no log to send", hint="name files or folders of logs")


def _id(job: Job | str) -> str:
    """A job's id as a piece of an address; UsageError for what is none."""
    job_id = job if isinstance(job, str) else job.id
    if not job_id.isalnum() or not job_id.isascii():
        raise UsageError("that is no id of a job")
    return job_id


@contextlib.contextmanager
def result_folder(out: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to be filled, which appears as `out` when its files are what run.json says.

    Raises OutputError when `out` cannot be written, AnswerError when a file came altered.
    """
    # Reads and writes Arrow, which a client that only asks does without.
    from contam.detect.report import FILES, RUN_FILE, load_report
    from contam.files.disk import output_errors
    from contam.files.publish import publishing

    with (
        publishing(out, names=FILES, last=RUN_FILE, overwrite=overwrite) as folder,
        output_errors(Path(out)),
    ):
        yield folder
        try:
            load_report(folder)
        except OutputError as error:
            raise AnswerError(
                "the result of the job is not what it says it is: a file came altered",
                hint="ask for it again; if it stays so, the service's data folder is damaged",
            ) from error
