"""Hold what the handlers of one service share, made once at start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import Depends, Request

from contam.server.observe import Metrics
from contam.server.problems import RequestError

if TYPE_CHECKING:
    from contam.config import Settings
    from contam.errors import ContamError
    from contam.server.auth import Keyring
    from contam.server.check import Admission
    from contam.server.indexes import IndexRegistry
    from contam.server.jobs.runner import Jobs


OPENING: Final = "opening the indexes"
COMPILING: Final = "compiling kernels, then opening the indexes"
"""What a service that starts says it does."""

_FIRST_START: Final = (
    "compiling kernels the first time takes about half a minute; `contam warm` does it beforehand"
)


@dataclass(eq=False, slots=True)
class State:
    """Settings and the long-lived parts of a service.

    admission  threads for checks
    not_ready  why the service cannot answer yet or no longer; empty when it can
    keyring    who may ask; there once the service has started
    registry    the indexes; None until they are open
    jobs       long work; there once the service has started
    failed     why it could not start
    metrics    what is counted and measured
    """

    settings: Settings
    admission: Admission
    not_ready: str = "starting"
    keyring: Keyring | None = None
    registry: IndexRegistry | None = None
    jobs: Jobs | None = None
    failed: ContamError | None = None
    metrics: Metrics = field(default_factory=Metrics)


def unready(state: State) -> RequestError:
    """The answer, 503, of a service that starts or stops."""
    compiles = state.not_ready == COMPILING
    return RequestError(
        503, state.not_ready or "starting", code="not-ready", hint=_FIRST_START if compiles else "",
        headers={"Retry-After": "1"},
    )  # fmt: skip


async def state_of(request: Request) -> State:
    """The state of the service a request came to."""
    state: State = request.app.state.contam
    return state


CurrentState = Annotated[State, Depends(state_of)]


def registry_of(state: State) -> IndexRegistry:
    """The open indexes. Raises RequestError, 503, while they are not open yet."""
    if state.registry is None:
        raise unready(state)
    return state.registry


def jobs_of(state: State) -> Jobs:
    """The jobs. Raises RequestError, 503, while the service starts."""
    if state.jobs is None:
        raise unready(state)
    return state.jobs
