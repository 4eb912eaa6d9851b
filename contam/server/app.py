"""Assemble the app; the modules it names do the work."""

from __future__ import annotations

import contextlib
import os
import resource
import tempfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI

import contam
from contam.errors import ContamError, InternalError
from contam.server import check, corpora, health, openapi, problems
from contam.server.auth import Keyring
from contam.server.body import BodyGuard
from contam.server.check import Admission
from contam.server.entrance import Entrance
from contam.server.jobs import routes as jobs
from contam.server.jobs.service import Jobs
from contam.server.observe import Observed
from contam.server.opening import open_indexes
from contam.server.page import routes as page
from contam.server.page.render import problem_page
from contam.server.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from contam.config import Settings


_OWNER_ALONE: Final = 0o077
#: FastAPI would send queries, paths and invalid input to wherever the environment says.
_NO_TELEMETRY: Final[Any] = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
#: Too little for a file, and by convention no dump through a pipe either; 0 only bounds files.
_NO_DUMP: Final = 1


def keep_private() -> None:
    """Files are made for their owner alone, and a crash leaves no dump of the memory."""
    os.umask(_OWNER_ALONE)
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        least = _NO_DUMP if hard == resource.RLIM_INFINITY else min(_NO_DUMP, hard)
        resource.setrlimit(resource.RLIMIT_CORE, (least, hard))


def create_app(settings: Settings) -> FastAPI:
    """An ASGI app that answers with these settings; it opens nothing before it is started."""
    state = State(settings, Admission(settings.max_checks, settings.max_waiting))

    @asynccontextmanager
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
            state.failed = (
                error
                if isinstance(error, ContamError)
                else InternalError(f"the service cannot start: {type(error).__name__}: {error}")
            )
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
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        telemetry=_NO_TELEMETRY,
    )
    app.state.contam = state
    problems.install(app)
    openapi.install(app)
    add_layers(app, state)
    for router in (
        health.router, corpora.index_router, corpora.policy_router, check.router,
        corpora.document_router, jobs.router, page.router,
    ):  # fmt: skip
        app.include_router(router)
    return app


def add_layers(app: FastAPI, state: State) -> None:
    """Observe everything, then ask who it is, then take the body; the last added is the first."""
    app.add_middleware(BodyGuard, settings=state.settings)
    app.add_middleware(Entrance, state=state, is_page=page.is_page, show_problem=problem_page)
    app.add_middleware(Observed, state=state)
