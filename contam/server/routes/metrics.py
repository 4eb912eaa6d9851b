"""The figures of a running service, for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Response

from contam.server.gauges import refresh
from contam.server.metrics import CONTENT_TYPE
from contam.server.problems.failures import RequestError
from contam.server.state import CurrentState

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
