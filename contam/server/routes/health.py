"""Whether the process lives, and whether it can answer."""

from __future__ import annotations

from fastapi import APIRouter

from contam.server.failures import RequestError
from contam.server.state import CurrentState

router = APIRouter(tags=["health"])


@router.get("/livez")
def livez() -> dict[str, str]:
    """The process runs."""
    return {"status": "alive"}


@router.get("/readyz")
def readyz(state: CurrentState) -> dict[str, str]:
    """Indexes are open, kernels are warm, and the service takes requests."""
    if state.not_ready:
        raise RequestError(503, state.not_ready, code="not-ready", headers={"Retry-After": "1"})
    return {"status": "ready"}
