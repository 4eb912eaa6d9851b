"""Report whether the process is alive and ready."""

from __future__ import annotations

from fastapi import APIRouter

from contam.server.problems.failures import RequestError
from contam.server.schemas.common import problems
from contam.server.state import CurrentState, unready

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
    if state.jobs is not None and state.jobs.problem:
        raise RequestError(503, state.jobs.problem, code="no-jobs", headers={"Retry-After": "5"})
    return {"status": "ready"}
