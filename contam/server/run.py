"""Run the service as a process: listen, announce the address, drain on stop."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Final

import uvicorn

from contam.errors import ConfigError
from contam.index.manifest import read_manifest
from contam.server.app import create_app
from contam.server.indexes import named_folders, refuse_nothing
from contam.server.observe import configure_logs

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from types import FrameType

    from contam.config import Settings
    from contam.server.state import State


_KEEP_ALIVE_S: Final = 30


class Server(uvicorn.Server):
    """A server that announces its address once it listens, and exits with 0 when stopped."""

    def __init__(
        self, config: uvicorn.Config, state: State, announce: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._state = state
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say where."""
        await super().startup(sockets)
        for server in self.servers if self.started else ():
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                self._announce(
                    f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
                )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take no new connections, and let requests end."""
        self._state.not_ready = self._state.not_ready or "stopping"
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Drain at SIGTERM and SIGINT; afterwards the signals are as they were, and not sent on."""
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(settings: Settings, *, announce: Callable[[str], None]) -> None:
    """Serve until stopped. Raises ContamError when it cannot start."""
    # Report simple mistakes before anything is loaded or bound.
    refuse_nothing(settings)
    for folder in named_folders(settings.index, settings.home).values():
        read_manifest(folder)
    configure_logs(settings.log_level)
    app = create_app(settings)
    state: State = app.state.contam
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        # A caller is identified by a key, never by the address that a proxy reports.
        proxy_headers=False,
        http="httptools",
        limit_concurrency=settings.max_connections,
        date_header=True,
        # Clients that keep connections for as long as a server usually does would meet its end.
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(int(settings.drain_s), 1),
        lifespan="on",
    )
    server = Server(config, state, announce)
    try:
        server.run()
    except SystemExit as error:
        if state.failed is not None:
            raise state.failed from None
        # uvicorn leaves so when it cannot bind; what it says goes to its log.
        raise ConfigError(
            f"cannot listen on {settings.host}:{settings.port}",
            hint="is another service running there? --port 0 takes a free one",
        ) from error
    if state.failed is not None:
        raise state.failed
