"""The layers that guard the service, around small handlers, in a real uvicorn on a thread."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import threading
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn
from fastapi import Depends, FastAPI, Request
from fastapi.responses import StreamingResponse

from contam.config import Settings
from contam.server.app import add_layers, router
from contam.server.auth import Keyring, Needs
from contam.server.check import Admission
from contam.server.observe import configure_logs
from contam.server.problems import answer_failures
from contam.server.state import State
from tests.waiting import HANG_S, wait_until


@dataclass(eq=False)
class Guarded:
    """url, state, log  of a running app;  hold: set it, and /v1/hold answers."""

    state: State
    log: io.BytesIO
    url: str = ""
    hold: threading.Event = field(default_factory=threading.Event)
    held: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def client(self, key: str = "", **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=HANG_S, **options)

    def raw(self) -> socket.socket:
        host, port = self.url.removeprefix("http://").split(":")
        return socket.create_connection((host, int(port)), timeout=HANG_S)

    def lines(self) -> list[dict]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


def small_app(running: Guarded) -> FastAPI:
    app = FastAPI()
    app.state.contam = running.state
    answer_failures(app)
    add_layers(app, running.state)
    app.include_router(router)
    needs = [Depends(Needs("check"))]

    @app.post("/v1/echo", dependencies=needs)
    async def echo(request: Request):
        body = await request.body()
        return {"n_bytes": len(body)}

    @app.post("/v1/jobs", dependencies=[Depends(Needs("jobs"))])
    async def upload(request: Request):
        return {"n_bytes": sum([len(piece) async for piece in request.stream()])}

    @app.get("/v1/hold/{name}", dependencies=needs)
    def hold(name: str):  # noqa: ARG001 - the template is what is tested
        running.held.release()
        running.hold.wait(HANG_S)
        return {}

    @app.get("/v1/broken/{text}", dependencies=needs)
    def broken(text: str):
        raise ValueError(text) from KeyError(text)

    @app.get("/v1/halfway/{text}", dependencies=needs)
    async def halfway(text: str):
        async def pieces():
            yield b"begun"
            await asyncio.sleep(0)
            raise ValueError(text)

        return StreamingResponse(pieces())

    return app


@contextlib.contextmanager
def guarded(data, **chosen):
    """A running app with these settings, its folder of own files `data`."""
    settings = Settings(data=str(data), **chosen)
    state = State(settings, Admission(1, 1), not_ready="")
    state.keyring = Keyring(settings)
    running = Guarded(state, io.BytesIO())
    app = small_app(running)
    config = uvicorn.Config(
        app,
        port=0,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        http="httptools",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with logs_to(running.log):
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            wait_until(lambda: server.started)
            port = server.servers[0].sockets[0].getsockname()[1]
            running.url = f"http://127.0.0.1:{port}"
            yield running
        finally:
            running.hold.set()
            server.should_exit = True
            thread.join(HANG_S)


@contextlib.contextmanager
def logs_to(stream):
    """Everything this process logs goes to a stream, at debug; afterwards all is as it was."""
    import logging
    import sys

    root = logging.getLogger()
    names = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "contam")
    before = (root.handlers, root.level, sys.excepthook, threading.excepthook, sys.unraisablehook)
    levels = {
        name: (one.handlers, one.level, one.propagate, one.disabled)
        for name in names
        for one in [logging.getLogger(name)]
    }
    configure_logs("debug", stream)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.handlers, root.level = before[:2]
        sys.excepthook, threading.excepthook, sys.unraisablehook = before[2:]
        for name, (handlers, level, propagate, disabled) in levels.items():
            one = logging.getLogger(name)
            one.handlers, one.propagate, one.disabled = handlers, propagate, disabled
            one.setLevel(level)
