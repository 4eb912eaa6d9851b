"""A client for event loops: the flows of `Client`, awaited."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from contam.client.calls import Connection, Pause, Reply, Send, key_from, prepared, unreachable
from contam.client.flows import Asked, Flow, Flows
from contam.client.retry import Retry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.client.answers import Answer
    from contam.client.wire import Item

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
        items: str | Item | Sequence[Item],
        *,
        index: str | Sequence[str] | None = None,
        policies: Sequence[str] = ("contam",),
        evidence: bool = True,
        max_evidence: int = 20,
        context: int = 0,
        allow_missing: bool = False,
    ) -> Answer:
        """See `Client.check`."""
        asked = Asked(
            index=index,
            policies=policies,
            evidence=evidence,
            max_evidence=max_evidence,
            context=context,
            allow_missing=allow_missing,
        )
        return await self._run(self._flows.check(items, asked))

    async def indexes(self) -> list[dict[str, Any]]:
        """See `Client.indexes`."""
        return await self._run(self._flows.listed("indexes"))

    async def policies(self) -> list[dict[str, Any]]:
        """See `Client.policies`."""
        return await self._run(self._flows.listed("policies"))

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
