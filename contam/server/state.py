"""What the handlers of one service share, made once when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

if TYPE_CHECKING:
    from contam.config import Settings
    from contam.server.auth import Keyring


@dataclass(eq=False, slots=True)
class State:
    """Settings and the long-lived parts of a service.

    ready    why the service cannot answer yet or no longer; empty when it can
    keyring  who may ask; there once the service has started
    """

    settings: Settings
    not_ready: str = "starting"
    keyring: Keyring | None = None


def state_of(request: Request) -> State:
    """The state of the service a request came to."""
    state: State = request.app.state.contam
    return state


CurrentState = Annotated[State, Depends(state_of)]
