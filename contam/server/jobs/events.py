"""Stream the events of a job to those who wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

BEAT_S: Final = 15.0
"""Seconds of silence after which a stream says that it is alive."""

_LOOK_S: Final = 1.0


class Watch:
    """Wakes coroutines when a job has changed; `changed` may be called from any thread.

    stopping  whether the service is to end: then nobody is kept waiting
    """

    def __init__(self, stopping: Callable[[], bool] = bool) -> None:
        self._stopping = stopping
        self._lock = threading.Lock()
        self._waiting: dict[str, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether waiting has become useless."""
        return self._closed or self._stopping()

    def changed(self, job_id: str) -> None:
        """Wake all who wait for this job."""
        with self._lock:
            self._wake(self._waiting.get(job_id, ()))

    def close(self) -> None:
        """Wake everybody: nothing more will happen."""
        with self._lock:
            self._closed = True
            for waiting in self._waiting.values():
                self._wake(waiting)

    @contextlib.contextmanager
    def listening(self, job_id: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever the job has changed; to be cleared by who waits."""
        entry = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._waiting.setdefault(job_id, set()).add(entry)
        try:
            yield entry[1]
        finally:
            with self._lock:
                self._waiting[job_id].discard(entry)
                if not self._waiting[job_id]:
                    del self._waiting[job_id]

    @staticmethod
    def _wake(waiting: Any) -> None:  # noqa: ANN401 - any collection of entries
        for loop, event in waiting:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)


async def until_ended(
    watch: Watch, job_id: str, look: Callable[[], Awaitable[dict[str, Any] | None]], seconds: float
) -> dict[str, Any] | None:
    """What `look` shows once the job has ended, or after so many seconds, whichever comes first."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    with watch.listening(job_id) as event:
        while True:
            event.clear()
            shown = await look()
            left = end - loop.time()
            if shown is None or shown["ended"] or left <= 0 or watch.closed:
                return shown
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), min(left, _LOOK_S))


async def event_stream(
    watch: Watch, job_id: str, look: Callable[[], Awaitable[dict[str, Any] | None]]
) -> AsyncIterator[bytes]:
    """Server-sent events: the job whenever it has changed, until it has ended."""
    last: dict[str, Any] | None = None
    number = 0
    with watch.listening(job_id) as event:
        while True:
            event.clear()
            shown = await look()
            if shown is None:
                yield b"event: gone\ndata: {}\n\n"
                return
            if shown != last:
                number += 1
                name = "end" if shown["ended"] else "progress"
                yield b"id: %d\nevent: %s\ndata: %s\n\n" % (
                    number, name.encode(), orjson.dumps(shown),
                )  # fmt: skip
                last = shown
            if shown["ended"] or watch.closed:
                return
            silent_s = 0.0
            while not event.is_set() and not watch.closed:
                try:
                    await asyncio.wait_for(event.wait(), _LOOK_S)
                except TimeoutError:
                    silent_s += _LOOK_S
                    if silent_s >= BEAT_S:
                        silent_s = 0.0
                        yield b": alive\n\n"
