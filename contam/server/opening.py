"""Open indexes while the service runs, and look for new states of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from contam.errors import ContamError, InternalError
from contam.memory import tune_service
from contam.server import logs
from contam.server.state import COMPILING, OPENING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from contam.server.indexes import IndexRegistry
    from contam.server.state import State


#: How often files that are in use are looked at.
_LOOK_S: Final = 1.0


@asynccontextmanager
async def open_indexes(state: State) -> AsyncIterator[None]:
    """Open indexes on a thread, then mark the service ready; stop with the block."""
    task = asyncio.create_task(_open_and_watch(state))
    try:
        yield
    finally:
        state.not_ready = "stopping"
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _open_and_watch(state: State) -> None:
    state.not_ready = OPENING
    try:
        if state.settings.index and not await asyncio.to_thread(_is_compiled):
            state.not_ready = COMPILING
            logs.log().info(f"{COMPILING}: only the first start does this, about half a minute")
        state.registry = await asyncio.to_thread(_open, state)
    except Exception as error:  # noqa: BLE001 - whatever it is, the service must not only look alive
        state.failed = (
            error
            if isinstance(error, ContamError)
            else InternalError(f"indexes cannot be opened: {type(error).__name__}: {error}")
        )
        state.not_ready = "indexes cannot be opened"
        # The server stops as at SIGTERM.
        os.kill(os.getpid(), signal.SIGTERM)
        return
    state.not_ready = ""
    seconds = state.settings.reload_index
    looked_s = time.monotonic()
    while True:
        await asyncio.sleep(min(seconds or _LOOK_S, _LOOK_S))
        await asyncio.to_thread(state.registry.look)
        if seconds and time.monotonic() - looked_s >= seconds:
            looked_s = time.monotonic()
            await asyncio.to_thread(_renew, state)


def _is_compiled() -> bool:
    # Imported here, on the thread: this loads the compiler.
    from contam.kernels.warm_up import is_warm

    return is_warm("query")


def _open(state: State) -> IndexRegistry:
    # Imported here, on the thread: this loads the compiler.
    from contam.detect.warm import match_a_little, query_a_little
    from contam.kernels.warm_up import compile_once
    from contam.server.indexes import IndexRegistry

    tune_service()
    if state.settings.index:
        compile_once("query", query_a_little, None)
    registry = IndexRegistry.open(state.settings)
    if registry.names:
        match_a_little()
    return registry


def _renew(state: State) -> None:
    registry = state.registry
    if registry is None:
        return
    for name in registry.changed():
        # What cannot be opened now may be whole at the next look.
        with contextlib.suppress(ContamError):
            registry.reload(name)
