"""Requests over kept-alive connections, with as little work for each as asyncio allows.

Two ways to ask: clients that each wait for their answer before they ask again (closed), and
requests that come at a rate whatever the answers do (opened). The second counts a request's time
from when it was due, so that a service that stands still cannot hide it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Sequence

OK = 200
SHED = (429, 503)
#: Requests that may be under way at once in an open loop; more count as not sent.
MOST_CONNECTIONS = 512


@dataclass(slots=True)
class Asked:
    """What became of the requests of one phase.

    seconds    of each that was answered with 200;  shed_seconds  with 429 or 503
    n_failed   other statuses, and connections that broke;  n_unsent  no connection was free
    n_changed  answers to an item that differ from the first answer to it
    wall_s     how long the phase took
    """

    seconds: list[float] = field(default_factory=list)
    shed_seconds: list[float] = field(default_factory=list)
    n_failed: int = 0
    n_unsent: int = 0
    n_changed: int = 0
    wall_s: float = 0.0
    kinds: dict[str, int] = field(default_factory=dict)


class Connection(asyncio.Protocol):
    """One kept-alive connection; `ask` gives status and body of one request at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._data = bytearray()
        self._need = 0
        self._body_at = 0
        self._waiter: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready to be asked."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waits is told."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(exc or ConnectionResetError("closed by the service"))

    def data_received(self, data: bytes) -> None:
        """Put pieces together until the answer is whole."""
        held = self._data
        held += data
        if not self._need:
            end = held.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(held[:end]).lower()
            at = head.index(b"content-length:") + 15
            self._body_at = end + 4
            self._need = self._body_at + int(head[at : head.find(b"\r\n", at) % (end + 1)])
        if len(held) >= self._need:
            answer = int(held[9:12]), bytes(held[self._body_at : self._need])
            del held[: self._need]
            self._need = 0
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(answer)

    @property
    def closed(self) -> bool:
        """Whether the service has ended it, as it may after a while without a request."""
        return bool(self._transport.is_closing())

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body of the answer. Raises OSError when the connection breaks."""
        if self.closed:
            raise ConnectionResetError("closed by the service")
        self._waiter = self._loop.create_future()
        self._transport.write(request)
        return await self._waiter

    def close(self) -> None:
        """No more requests."""
        self._transport.close()


class Load:
    """The requests to send, in an order that goes on from phase to phase."""

    def __init__(self, host: str, port: int, bodies: Sequence[bytes]) -> None:
        self._address = host, port
        head = (
            f"POST /v1/check HTTP/1.1\r\nHost: {host}:{port}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()
        self._requests = [b"%b%d\r\n\r\n%b" % (head, len(body), body) for body in bodies]
        self._first: dict[int, int] = {}
        self._next = 0

    async def connect(self) -> Connection:
        """A new connection."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, *self._address)
        return connection

    async def one(self, connection: Connection, asked: Asked, due: float) -> bool:
        """Send the next request and note what came of it; false when the connection is no more."""
        at = self._next % len(self._requests)
        self._next += 1
        try:
            status, body = await connection.ask(self._requests[at])
        except OSError as error:
            asked.n_failed += 1
            kind = type(error).__name__
            asked.kinds[kind] = asked.kinds.get(kind, 0) + 1
            return False
        seconds = time.perf_counter() - due
        if status == OK:
            asked.seconds.append(seconds)
            if self._first.setdefault(at, crc32(body)) != crc32(body):
                asked.n_changed += 1
            return True
        if status in SHED:
            asked.shed_seconds.append(seconds)
        else:
            asked.n_failed += 1
        asked.kinds[str(status)] = asked.kinds.get(str(status), 0) + 1
        return True


async def closed(load: Load, n_clients: int, seconds: float) -> Asked:
    """So many clients, each asking as soon as it was answered."""
    asked = Asked()
    began = time.perf_counter()
    end = began + seconds

    async def client() -> None:
        connection = await load.connect()
        while (now := time.perf_counter()) < end:
            if not await load.one(connection, asked, now):
                connection = await load.connect()
        connection.close()

    await asyncio.gather(*(client() for _ in range(n_clients)))
    asked.wall_s = time.perf_counter() - began
    return asked


async def opened(load: Load, per_second: float, seconds: float) -> Asked:
    """So many requests a second, evenly, each on a connection that is free at that moment."""
    asked = Asked()
    idle: deque[Connection] = deque()
    running: set[asyncio.Task[None]] = set()

    async def send(due: float) -> None:
        try:
            connection = idle.pop() if idle else await load.connect()
            if connection.closed:
                connection = await load.connect()
        except OSError:
            asked.n_failed += 1
            return
        if await load.one(connection, asked, due):
            idle.append(connection)

    began = time.perf_counter()
    for i in range(int(per_second * seconds)):
        due = began + i / per_second
        if (early := due - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        if len(running) >= MOST_CONNECTIONS:
            asked.n_unsent += 1
            continue
        task = asyncio.create_task(send(due))
        running.add(task)
        task.add_done_callback(running.discard)
    while running:
        await asyncio.wait(running)
    asked.wall_s = time.perf_counter() - began
    for connection in idle:
        connection.close()
    return asked
