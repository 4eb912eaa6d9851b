"""Require an authenticated caller on all but public paths, before any body is read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from contam.server.auth import CALLER, refuse_other_sites
from contam.server.problems import AS_PAGE
from contam.server.state import unready

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from contam.server.state import State

PUBLIC: Final = frozenset(("/livez", "/readyz", "/metrics", "/openapi.json"))
"""Paths that answer without a key. They show no items, documents or jobs."""

_ASKED_AGAIN_S: Final = 1.0


class Entrance:
    """Middleware that finds the caller.

    is_page, show_problem  which paths people look at, and what makes a page of a problem there
    """

    def __init__(
        self,
        app: ASGIApp,
        state: State,
        is_page: Callable[[str], bool],
        show_problem: Callable[..., Any],
    ) -> None:
        self._app = app
        self._state = state
        self._is_page = is_page
        self._show_problem = show_problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; raises RequestError 401, 403 or 503, also amid an answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path in PUBLIC:
            await self._app(scope, receive, send)
            return
        keyring = self._state.keyring
        if keyring is None:
            raise unready(self._state)
        on_page = self._is_page(path)
        if on_page:
            scope[AS_PAGE] = self._show_problem
            refuse_other_sites(scope)
        scope[CALLER] = keyring.caller(scope, on_page=on_page)
        asked_s = time.monotonic()

        async def guarded(message: Message) -> None:
            nonlocal asked_s
            if message.get("more_body") and time.monotonic() - asked_s > _ASKED_AGAIN_S:
                asked_s = time.monotonic()
                # The key may have been revoked meanwhile.
                keyring.caller(scope, on_page=on_page)
            await send(message)

        await self._app(scope, receive, guarded)
