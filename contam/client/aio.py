"""The asynchronous client: the same flows as `Client`, awaited."""

from __future__ import annotations

import asyncio
import contextlib
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


class AsyncClient:
    """A contam service, asked from an event loop; arguments and answers are those of `Client`."""

    def __init__(
        self,
        server: str,
        *,
        key: str | None = None,
        timeout_s: float = 60.0,
        retry: Retry | None = None,
    ) -> None:
        connection = Connection(server=server, key=key or key_from(), timeout_s=timeout_s)
        self._http = httpx.AsyncClient(**connection.options())
        self._flows = Flows(retry=retry or Retry())

    async def check(
        self,
        items: str | Item | Items,
        **options: Unpack[CheckOptions],
    ) -> Answer:
        """See `Client.check`."""
        return await self._run(self._flows.check(items, Asked(**options)))

    async def indexes(self) -> list[dict[str, Any]]:
        """See `Client.indexes`."""
        return await self._run(self._flows.listed("indexes"))

    async def policies(self) -> list[dict[str, Any]]:
        """See `Client.policies`."""
        return await self._run(self._flows.listed("policies"))

    async def submit(
        self,
        items: Iterable[Item],
        *,
        keep_text: bool = False,
        key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """See `Client.submit`."""
        asked = Asked(**options)
        return await self._run(
            jobs.submit(items, asked, self._flows.retry, key=key, keep_text=keep_text)
        )

    async def job(self, job: Job | str) -> Job:
        """See `Client.job`."""
        return (await self._run(jobs.show(job, self._flows.retry)))[0]

    async def wait(
        self,
        job: Job | str,
        *,
        timeout_s: float | None = None,
        watcher: Callable[[Job], object] | None = None,
    ) -> Job:
        """See `Client.wait`."""
        return await self._run(jobs.wait(job, timeout_s=timeout_s, watcher=watcher))

    async def results(self, job: Job) -> Answer:
        """See `Client.results`."""
        return await self._run(jobs.results(job, self._flows.retry))

    async def save(self, job: Job, out: str | Path, *, overwrite: bool = False) -> Path:
        """See `Client.save`."""
        with result_folder(out, overwrite=overwrite) as folder:
            await self.download(job, folder)
        return Path(out)

    async def download(self, job: Job, folder: str | Path) -> None:
        """See `Client.download`."""
        await self._run(jobs.save(job, Path(folder), self._flows.retry))

    async def cancel(self, job: Job | str) -> None:
        """See `Client.cancel`."""
        await self._run(jobs.cancel(job, self._flows.retry))

    async def rescore(
        self,
        verdicts: Job | str | Path | Answer,
        logs: PathLike | Sequence[PathLike],
        *,
        items: Iterable[Item] = (),
        policies: Sequence[str] = (),
        **options: Any,  # noqa: ANN401 - each option has its own type
    ) -> Rescored:
        """See `Client.rescore`."""
        flow = jobs.rescore(verdicts, logs, self._flows.retry, items, policies, options)
        return await self._run(flow)

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _run(self, flow: Flow[Result]) -> Result:
        try:
            step = next(flow)
            while True:
                try:
                    reply = await self._do(step)
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

    async def _do(self, step: Send | Pause) -> Reply | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        with contextlib.ExitStack() as files:
            request = self._http.build_request(**prepared(step, files))
            reply = await self._http.send(request, stream=True)
            async with contextlib.aclosing(reply):
                if step.save is not None and reply.is_success:
                    with step.save.open("wb") as out:
                        async for chunk in reply.aiter_bytes():
                            out.write(chunk)
                    return Reply(reply.status_code, reply.headers, b"")
                return Reply(reply.status_code, reply.headers, await reply.aread())
