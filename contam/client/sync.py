"""A client that waits for each answer."""

from __future__ import annotations

import contextlib
import time
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
        items: str | Item | Sequence[Item],
        *,
        index: str | Sequence[str] | None = None,
        policies: Sequence[str] = ("contam",),
        evidence: bool = True,
        max_evidence: int = 20,
        context: int = 0,
        allow_missing: bool = False,
    ) -> Answer:
        """Judge a text, one item or some; the verdicts are those of `contam.query`.

        items     a text, a `contam.BenchItem`, or a mapping with `id`, `question` and, where there
                  are any, `benchmark`, `split`, `passage`, `choices`, `answer`, `answer_index`
        index     a name, several that answer as one, or None for all that the service has
        evidence  whether documents are named; `context` characters around each run

        More than 256 items become a job: items of one benchmark are judged together, since wording
        that all of them share proves nothing.
        """
        asked = Asked(
            index=index,
            policies=policies,
            evidence=evidence,
            max_evidence=max_evidence,
            context=context,
            allow_missing=allow_missing,
        )
        return self._run(self._flows.check(items, asked))

    def indexes(self) -> list[dict[str, Any]]:
        """What the service has indexed: corpus, guarantee, coverage, sizes and dates."""
        return self._run(self._flows.listed("indexes"))

    def policies(self) -> list[dict[str, Any]]:
        """The definitions of contamination that the service knows."""
        return self._run(self._flows.listed("policies"))

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
