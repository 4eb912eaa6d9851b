"""The app: wiring only. What it does is in the modules it names."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

import contam
from contam.errors import ContamError, InternalError
from contam.server import openapi, opening
from contam.server.checks.gate import Gate
from contam.server.jobs.service import Jobs
from contam.server.middleware import guard
from contam.server.middleware.auth import Keyring
from contam.server.problems import failures
from contam.server.process import keep_private
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


def create_app(settings: Settings) -> FastAPI:
    """An ASGI app that answers with these settings; it opens nothing before it is started."""
    state = State(settings, Gate(settings.max_checks, settings.max_waiting))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        keep_private()
        try:
            state.keyring = Keyring(settings)
            state.jobs = Jobs.open(settings, lambda: state.not_ready == "stopping")
            state.tracing = Tracing() if settings.traces else None
        except Exception as error:
            # The server only says that it did not start; who called it is told why.
            state.failed = (
                error
                if isinstance(error, ContamError)
                else InternalError(f"the service cannot start: {type(error).__name__}: {error}")
            )
            raise
        async with opening.open_indexes(state):
            yield
        state.jobs.close()
        state.gate.close()
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
    guard.install(app, state)
    for one in (health, metrics, indexes, policies, check, documents, jobs, rescore, page, review):
        app.include_router(one.router)
    return app
