"""Tell whether the process is alive and ready, and its metrics."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from fastapi import APIRouter, Response

from contam.errors import ContamError
from contam.index.manifest import MANIFEST
from contam.server.observe import CONTENT_TYPE
from contam.server.problems import RequestError
from contam.server.schemas import problems
from contam.server.state import CurrentState, unready

if TYPE_CHECKING:
    from contam.server.state import State


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
    with suppress(ContamError):
        states = state.jobs.store.states() if state.jobs is not None else {}
        for name, n in states.items():
            metrics.jobs.labels(name).set(n)
    if registry is None:
        return
    for name in registry.names:
        # What an index answers for is worth telling even if its folder was moved away since.
        with suppress(OSError, ContamError), registry.snapshot([name]) as snapshot:
            coverage = snapshot.opened.coverage
            changed = (snapshot.folders[0] / MANIFEST).stat().st_mtime
            metrics.index_age.labels(name).set(max(0.0, time.time() - changed))
            share = len(coverage.shards_read) / max(1, len(coverage.names))
            metrics.index_coverage.labels(name).set(share)
