"""Assemble the app; the modules it names do the work."""

from __future__ import annotations

import contextlib
import os
import resource
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI

import contam
from contam.errors import ContamError, InternalError
from contam.server import openapi, opening
from contam.server.checks.admission import Admission
from contam.server.jobs.service import Jobs
from contam.server.middleware.auth import Keyring
from contam.server.middleware.body import BodyGuard
from contam.server.middleware.entrance import Entrance
from contam.server.middleware.observe import Observed
from contam.server.problems import failures
from contam.server.routes import (
    check,
    documents,
    health,
    indexes,
    jobs,
    metrics,
    page,
    policies,
    rescore,
    review,
)
from contam.server.state import State
from contam.server.tracing import NO_TELEMETRY, Tracing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from contam.config import Settings


_OWNER_ALONE: Final = 0o077
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
            state.jobs = Jobs.open(settings, lambda: state.not_ready == "stopping")
            state.tracing = Tracing() if settings.traces else None
        except Exception as error:
            # uvicorn only says that it did not start; `run` raises the reason.
            state.failed = (
                error
                if isinstance(error, ContamError)
                else InternalError(f"the service cannot start: {type(error).__name__}: {error}")
            )
            raise
        async with opening.open_indexes(state):
            yield
        state.jobs.close()
        state.admission.close()
        state.keyring.close()
        if state.tracing is not None:
            state.tracing.close()

    # The usual pages of documentation load scripts from elsewhere.
    app = FastAPI(
        title="contam",
        version=contam.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        telemetry=NO_TELEMETRY,
    )
    app.state.contam = state
    failures.install(app)
    openapi.install(app)
    add_layers(app, state)
    for api in (health, metrics, indexes, policies, check, documents, jobs, rescore, page, review):
        app.include_router(api.router)
    return app


def add_layers(app: FastAPI, state: State) -> None:
    """Observe everything, then ask who it is, then take the body; the last added is the first."""
    app.add_middleware(BodyGuard, settings=state.settings, metrics=state.metrics)
    app.add_middleware(Entrance, state=state)
    app.add_middleware(Observed, state=state)
