"""Serve the Prometheus metrics."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fastapi import APIRouter, Response

from contam.errors import ContamError
from contam.index.manifest import MANIFEST
from contam.server.metrics import CONTENT_TYPE
from contam.server.problems.failures import RequestError
from contam.server.state import CurrentState

if TYPE_CHECKING:
    from contam.server.state import State


router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Text format of Prometheus.", "content": {"text/plain": {}}},
        404: {"description": "Switched off.", "content": {"application/problem+json": {}}},
    },
)
def metrics(state: CurrentState) -> Response:
    """Counts and durations; nothing of any request, item or document."""
    if not state.settings.metrics:
        raise RequestError(404, "this service gives no metrics")
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
        states = state.jobs.states() if state.jobs is not None else {}
        for name, n in states.items():
            metrics.jobs.labels(name).set(n)
        metrics.queue_length.set(states.get("queued", 0))
    if registry is None:
        return
    for name in registry.names:
        # What an index answers for is worth telling even if its folder was moved away since.
        with suppress(OSError, ContamError), registry.snapshot([name]) as snapshot:
            coverage = snapshot.opened.coverage
            metrics.set_index(
                name,
                changed=(snapshot.folders[0] / MANIFEST).stat().st_mtime,
                coverage=len(coverage.shards_read) / max(1, len(coverage.names)),
                mapped_bytes=sum(
                    file.n_bytes
                    for part in snapshot.opened.parts
                    for file in part.segment.record.files
                ),
            )
