"""The layers around the app, put on in the one order in which they protect each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.server.middleware.body import BodyGuard
from contam.server.middleware.entrance import Entrance
from contam.server.middleware.observe import Observed

if TYPE_CHECKING:
    from fastapi import FastAPI

    from contam.server.state import State


def install(app: FastAPI, state: State) -> None:
    """Observe everything, then ask who it is, then take the body; the last added is the first."""
    app.add_middleware(BodyGuard, settings=state.settings, metrics=state.metrics)
    app.add_middleware(Entrance, state=state)
    app.add_middleware(Observed, state=state)
