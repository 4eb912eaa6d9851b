"""The synchronous client: waits for each answer."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

import httpx

from contam.client import jobs
from contam.client.calls import Connection, Pause, Reply, Send, key_from, prepared, unreachable
from contam.client.flows import Asked, CheckOptions, Flows, JobOptions
from contam.client.folder import result_folder
from contam.client.retry import Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contam.client.answers import Answer, Job
    from contam.client.calls import Flow
    from contam.client.jobs import PathLike, Rescored
    from contam.client.wire import Item, Items

Result = TypeVar("Result")


class Client:
    """A contam service, asked over HTTP; close it, or use it in a `with` block.

    server     such as "http://127.0.0.1:8000"
    key        None takes CONTAM_KEY, or the file that CONTAM_KEY_FILE names
    timeout_s  seconds for the service to say anything
    retry      how often 429, 503 and a broken connection are met by asking again

    Every method raises ContamError subclasses (`contam.client.failures`) when there is no answer.
    One client may be used by several threads.
    """

    def __init__(
        self,
        server: str,
        *,
        key: str | None = None,
        timeout_s: float = 60.0,
        retry: Retry | None = None,
    ) -> None:
        connection = Connection(server=server, key=key or key_from(), timeout_s=timeout_s)
        self._http = httpx.Client(**connection.options())
        self._flows = Flows(retry=retry or Retry())

    def check(
        self,
        items: str | Item | Items,
        **options: Unpack[CheckOptions],
    ) -> Answer:
        """Judge a text, one item or some; the verdicts are those of `contam.query`.

        items     a text, a `contam.BenchItem` or a dictionary, or several; a table of items (Arrow,
                  pandas, Polars, `datasets`), or tables by name. Rows of dictionaries and tables
                  are read as those of a file
        index     a name, several that answer as one, or None for all that the service has
        evidence  whether documents are named; `context` characters around each run

        More than 256 items become a job: items of one benchmark are judged together, since wording
        that all of them share proves nothing.
        """
        return self._run(self._flows.check(items, Asked(**options)))

    def indexes(self) -> list[dict[str, Any]]:
        """What the service has indexed: corpus, guarantee, coverage, sizes and dates."""
        return self._run(self._flows.listed("indexes"))

    def policies(self) -> list[dict[str, Any]]:
        """The definitions of contamination that the service knows."""
        return self._run(self._flows.listed("policies"))

    def submit(
        self,
        items: Iterable[Item],
        *,
        keep_text: bool = False,
        key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Give up to a million items to a job, and go on.

        keep_text  whether the result repeats the items' texts
        key        equal requests under one key make one job, also from a script that runs again;
                   None makes a key that repeats of this call alone share
        """
        asked = Asked(**options)
        return self._run(jobs.submit(items, asked, self._flows.retry, key=key, keep_text=keep_text))

    def job(self, job: Job | str) -> Job:
        """A job as it is now."""
        return self._run(jobs.show(job, self._flows.retry))[0]

    def wait(
        self,
        job: Job | str,
        *,
        timeout_s: float | None = None,
        watcher: Callable[[Job], object] | None = None,
    ) -> Job:
        """Wait until a job is done; JobError when it fails, is cancelled, or takes too long.

        watcher  is called with the job whenever it was asked for
        """
        return self._run(jobs.wait(job, timeout_s=timeout_s, watcher=watcher))

    def results(self, job: Job) -> Answer:
        """The verdicts and evidence of a job that is done."""
        return self._run(jobs.results(job, self._flows.retry))

    def save(self, job: Job, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the result of a check as the folder that `contam query --out` writes."""
        with result_folder(out, overwrite=overwrite) as folder:
            self.download(job, folder)
        return Path(out)

    def download(self, job: Job, folder: str | Path) -> None:
        """Write the files of the result of a check into a folder that is there."""
        self._run(jobs.save(job, Path(folder), self._flows.retry))

    def cancel(self, job: Job | str) -> None:
        """Stop a job; one that has ended is deleted with its result."""
        self._run(jobs.cancel(job, self._flows.retry))

    def rescore(
        self,
        verdicts: Job | str | Path | Answer,
        logs: PathLike | Sequence[PathLike],
        *,
        items: Iterable[Item] = (),
        policies: Sequence[str] = (),
        **options: Any,  # noqa: ANN401 - each option has its own type
    ) -> Rescored:
        """What models score without the flagged items: the tables of `contam rescore`.

        verdicts  a finished check job or its id, a result folder (a Path), or an answer; for an
                  answer, `items` are what was asked, by whose texts logs are joined
        logs      files and folders, sent under their names
        options   least, permutations, seed, references, columns, allow_unmatched, allow_partial,
                  skip_damaged, separate_runs, lower_is_better, higher_is_better, metrics,
                  all_metrics, mixed_setups
        """
        flow = jobs.rescore(verdicts, logs, self._flows.retry, items, policies, options)
        return self._run(flow)

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, flow: Flow[Result]) -> Result:
        try:
            step = next(flow)
            while True:
                try:
                    reply = self._do(step)
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    assert isinstance(step, Send)  # noqa: S101 - a pause raises nothing of these
                    step = flow.throw(unreachable(step, error))
                else:
                    step = flow.send(reply)
        except StopIteration as stop:
            result: Result = stop.value
            return result
        finally:
            flow.close()

    def _do(self, step: Send | Pause) -> Reply | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        with contextlib.ExitStack() as files:
            request = self._http.build_request(**prepared(step, files))
            reply = self._http.send(request, stream=True)
            with contextlib.closing(reply):
                if step.save is not None and reply.is_success:
                    with step.save.open("wb") as out:
                        for chunk in reply.iter_bytes():
                            out.write(chunk)
                    return Reply(reply.status_code, reply.headers, b"")
                return Reply(reply.status_code, reply.headers, reply.read())
