"""Assemble the app, run it until it is stopped, and tell whether it is alive and ready."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import tempfile
import time
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from fastapi import APIRouter, FastAPI, Response
from pydantic.json_schema import models_json_schema

import contam
from contam.errors import ConfigError, ContamError, InternalError
from contam.index.manifest import MANIFEST, read_manifest
from contam.memory import bound, tune_service
from contam.server import check, page
from contam.server.auth import Entrance, Keyring
from contam.server.check import Admission
from contam.server.indexes import named_folders, refuse_nothing
from contam.server.jobs import routes as jobs
from contam.server.jobs.runner import Jobs
from contam.server.observe import CONTENT_TYPE, Observed, configure_logs, log
from contam.server.page import problem_page
from contam.server.problems import RequestError, answer_failures
from contam.server.schemas import CheckJob, CheckRequest, Problem, RescoreJob, problems
from contam.server.state import (
    COMPILING,
    OPENING,
    BodyGuard,
    CurrentState,
    State,
    registry_of,
    unready,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import FrameType

    from pydantic import BaseModel

    from contam.config import Settings
    from contam.server.indexes import IndexRegistry


router = APIRouter(tags=["health"])

# On the event loop: no thread that works on something else can keep a probe waiting.


@router.get("/livez")
async def livez() -> dict[str, str]:
    """The process runs."""
    return {"status": "alive"}


@router.get("/readyz", responses=problems(503))
async def readyz(state: CurrentState) -> dict[str, str]:
    """Indexes are open, kernels are warm, and the service takes requests."""
    if state.not_ready:
        raise unready(state)
    damaged = state.registry.damaged if state.registry is not None else ()
    if damaged:
        raise RequestError(
            503, f"a file is damaged, or was written to while it was in use: {', '.join(damaged)}",
            code="index-damaged", headers={"Retry-After": "5"},
        )  # fmt: skip
    return {"status": "ready"}


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Text format of Prometheus.", "content": {"text/plain": {}}},
    },
)
def metrics(state: CurrentState) -> Response:
    """Counts and durations; nothing of any request, item or document."""
    refresh(state)
    return Response(state.metrics.exposition(), media_type=CONTENT_TYPE)


def refresh(state: State) -> None:
    """Set the gauges that nobody keeps: readiness, checks, and every index."""
    metrics = state.metrics
    registry = state.registry
    metrics.ready.set(0 if state.not_ready or (registry is not None and registry.damaged) else 1)
    held, most = state.admission.held, state.settings.max_checks
    metrics.checks_running.set(min(held, most))
    metrics.checks_waiting.set(max(0, held - most))
    # `readyz` reports a store that cannot be read; the figures stay as they were.
    with contextlib.suppress(ContamError):
        states = state.jobs.store.states() if state.jobs is not None else {}
        for name, n in states.items():
            metrics.jobs.labels(name).set(n)
    if registry is None:
        return
    for name in registry.names:
        # What an index answers for is worth telling even if its folder was moved away since.
        with contextlib.suppress(OSError, ContamError), registry.snapshot([name]) as snapshot:
            coverage = snapshot.opened.coverage
            changed = (snapshot.folders[0] / MANIFEST).stat().st_mtime
            metrics.index_age.labels(name).set(max(0.0, time.time() - changed))
            share = len(coverage.shards_read) / max(1, len(coverage.names))
            metrics.index_coverage.labels(name).set(share)


_OWNER_ALONE: Final = 0o077
#: FastAPI would send queries, paths and invalid input to wherever the environment says.
_NO_TELEMETRY: Final[Any] = dict.fromkeys(
    ("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False
)
#: Too little for a file, and by convention no dump through a pipe either; 0 only bounds files.
_NO_DUMP: Final = 1


def keep_private() -> None:
    """Files are made for their owner alone, and a crash leaves no dump of the memory."""
    os.umask(_OWNER_ALONE)
    bound(resource.RLIMIT_CORE, _NO_DUMP)


def create_app(settings: Settings) -> FastAPI:
    """An ASGI app that answers with these settings; it opens nothing before it is started."""
    state = State(settings, Admission(settings.max_checks, settings.max_waiting))

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        keep_private()
        try:
            state.keyring = Keyring(settings)
            state.jobs = Jobs(settings)
            state.jobs.start()
            # Uploads are no guests of another disk.
            tempfile.tempdir = settings.data
        except Exception as error:
            # uvicorn only says that it did not start; `run` raises the reason.
            state.failed = _failure("the service cannot start", error)
            raise
        async with open_indexes(state):
            yield
        state.jobs.close()
        state.admission.close()
        tempfile.tempdir = None

    # The usual pages of documentation load scripts from elsewhere.
    app = FastAPI(
        title="contam",
        version=contam.__version__,
        summary="Which test items does a pretraining corpus already contain?",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        telemetry=_NO_TELEMETRY,
    )
    app.state.contam = state
    answer_failures(app)
    add_layers(app, state)
    for routes in (
        router, check.router,
        jobs.router, page.router,
    ):  # fmt: skip
        app.include_router(routes)
    describe_all(app)
    return app


def _failure(what: str, error: Exception) -> ContamError:
    if isinstance(error, ContamError):
        return error
    return InternalError(f"{what}: {type(error).__name__}: {error}")


def add_layers(app: FastAPI, state: State) -> None:
    """Observe everything, then ask who it is, then take the body; the last added is the first."""
    app.add_middleware(BodyGuard, settings=state.settings)
    app.add_middleware(Entrance, state=state, is_page=page.is_page, show_problem=problem_page)
    app.add_middleware(Observed, state=state)


#: How often files that are in use are looked at.
_LOOK_S: Final = 1.0


@contextlib.asynccontextmanager
async def open_indexes(state: State) -> AsyncIterator[None]:
    """Open indexes on a thread, then mark the service ready; stop with the block."""
    task = asyncio.create_task(_open_and_watch(state))
    try:
        yield
    finally:
        state.not_ready = "stopping"
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _open_and_watch(state: State) -> None:
    state.not_ready = OPENING
    try:
        if state.settings.index and not await asyncio.to_thread(_is_compiled):
            state.not_ready = COMPILING
            log("info", f"{COMPILING}: only the first start does this, about half a minute")
        state.registry = await asyncio.to_thread(_open, state)
    except Exception as error:  # noqa: BLE001 - whatever it is, the service must not only look alive
        state.not_ready = "indexes cannot be opened"
        state.failed = _failure(state.not_ready, error)
        # The server stops as at SIGTERM.
        os.kill(os.getpid(), signal.SIGTERM)
        return
    state.not_ready = ""
    seconds = state.settings.reload_index
    looked_s = time.monotonic()
    while True:
        await asyncio.sleep(min(seconds or _LOOK_S, _LOOK_S))
        await asyncio.to_thread(state.registry.look)
        if seconds and time.monotonic() - looked_s >= seconds:
            looked_s = time.monotonic()
            await asyncio.to_thread(_renew, state)


def _is_compiled() -> bool:
    # Imported here, on the thread: this loads the compiler.
    from contam.kernels.warm_up import is_warm

    return is_warm("query")


def _open(state: State) -> IndexRegistry:
    # Imported here, on the thread: this loads the compiler.
    from contam.detect.query import query_a_little
    from contam.detect.warm import match_a_little
    from contam.kernels.warm_up import compile_once
    from contam.server.indexes import IndexRegistry

    tune_service()
    if state.settings.index:
        compile_once("query", query_a_little, None)
    registry = IndexRegistry.open(state.settings)
    if registry.names:
        match_a_little()
    return registry


def _renew(state: State) -> None:
    registry = registry_of(state)
    for name in registry.changed():
        # What cannot be opened now may be whole at the next look.
        with contextlib.suppress(ContamError):
            registry.reload(name)


#: Models of bodies that handlers read themselves; FastAPI does not know of them.
_READ_BY_HANDLERS: tuple[type[BaseModel], ...] = (CheckRequest, CheckJob, RescoreJob, Problem)


def describe_all(app: FastAPI) -> None:
    """Add to the description of the app, which is made once, the models that it does not know."""
    _, found = models_json_schema(
        [(model, "validation") for model in _READ_BY_HANDLERS],
        ref_template="#/components/schemas/{model}",
    )
    app.openapi()["components"]["schemas"].update(found["$defs"])


_KEEP_ALIVE_S: Final = 30


class Server(uvicorn.Server):
    """A server that announces its address once it listens, and exits with 0 when stopped."""

    def __init__(
        self, config: uvicorn.Config, state: State, announce: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._state = state
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say where."""
        await super().startup(sockets)
        for server in self.servers if self.started else ():
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                self._announce(
                    f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
                )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take no new connections, and let requests end."""
        self._state.not_ready = self._state.not_ready or "stopping"
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Drain at SIGTERM and SIGINT; afterwards the signals are as they were, and not sent on."""
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(settings: Settings, *, announce: Callable[[str], None]) -> None:
    """Serve until stopped. Raises ContamError when it cannot start."""
    # Report simple mistakes before anything is loaded or bound.
    refuse_nothing(settings)
    for folder in named_folders(settings.index, settings.home).values():
        read_manifest(folder)
    configure_logs(settings.log_level)
    app = create_app(settings)
    state: State = app.state.contam
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        # A caller is identified by a key, never by the address that a proxy reports.
        proxy_headers=False,
        http="httptools",
        limit_concurrency=settings.max_connections,
        date_header=True,
        # Clients that keep connections for as long as a server usually does would meet its end.
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(int(settings.drain_s), 1),
        lifespan="on",
    )
    server = Server(config, state, announce)
    try:
        server.run()
    except SystemExit as error:
        if state.failed is not None:
            raise state.failed from None
        # uvicorn leaves so when it cannot bind; what it says goes to its log.
        raise ConfigError(
            f"cannot listen on {settings.host}:{settings.port}",
            hint="is another service running there? --port 0 takes a free one",
        ) from error
    if state.failed is not None:
        raise state.failed
