"""Require an authenticated caller within limits on all but public paths."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from contam.server.middleware.auth import CALLER
from contam.server.middleware.limits import Limits
from contam.server.page.render import problem_page
from contam.server.page.visit import is_page, visitor
from contam.server.problems.failures import AS_PAGE, RequestError
from contam.server.state import unready

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from contam.server.state import State

PUBLIC: Final = frozenset(("/livez", "/readyz", "/metrics", "/openapi.json", "/docs"))
"""Paths that answer without a key. They show no items, documents or jobs."""

HEADERS: Final = "contam.headers"
"""Where a request's scope holds headers that its answer will have."""

_ASKED_AGAIN_S: Final = 1.0


class RevokedError(Exception):
    """The key of a long answer stopped being good while it was being sent."""


class Entrance:
    """Middleware that finds the caller and applies the limits of its key, before any body."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app = app
        self._state = state
        self._limits = Limits(state.settings.rate_per_minute, state.settings.max_concurrent)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; raises RequestError 401, 403, 429 or 503, RevokedError."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            # Where the request ends depends on who reads it: a proxy may have seen two.
            raise RequestError(
                400, "the request says its length in two ways", headers={"Connection": "close"}
            )
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path in PUBLIC:
            await self._app(scope, receive, send)
            return
        keyring = self._state.keyring
        if keyring is None:
            raise unready(self._state)
        if is_page(path):
            scope[AS_PAGE] = partial(problem_page, self._state)
            caller = visitor(scope, path, keyring, self._state.sessions)
            if caller is None:
                await self._app(scope, receive, send)
                return
        else:
            caller = keyring.caller(scope)
        scope[CALLER] = caller
        scope[HEADERS] = self._limits.enter(caller.key_id)
        asked_s = time.monotonic()

        async def guarded(message: Message) -> None:
            nonlocal asked_s
            if message.get("more_body") and time.monotonic() - asked_s > _ASKED_AGAIN_S:
                asked_s = time.monotonic()
                if not keyring.still_good(caller):
                    raise RevokedError
            await send(message)

        try:
            await self._app(scope, receive, guarded)
        finally:
            self._limits.leave(caller.key_id)
