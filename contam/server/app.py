"""The app: wiring only. What it does is in the modules it names."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

import contam
from contam.server import failures
from contam.server.auth import Keyring
from contam.server.routes import health
from contam.server.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from contam.config import Settings


def create_app(settings: Settings) -> FastAPI:
    """An ASGI app that answers with these settings; it opens nothing before it is started."""
    state = State(settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        state.keyring = Keyring(settings)
        state.not_ready = ""
        yield
        state.not_ready = "stopping"
        state.keyring.close()

    app = FastAPI(title="contam", version=contam.__version__, lifespan=lifespan)
    app.state.contam = state
    failures.install(app)
    app.include_router(health.router)
    return app
