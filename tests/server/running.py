"""A real service in a process of its own, for tests that ask it over HTTP."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tests.waiting import HANG_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REPOSITORY = Path(__file__).resolve().parents[2]
#: On a machine that does ten other things, too, nobody is late.
_PATIENT = {"CONTAM_DEADLINE_S": str(HANG_S)}
_LISTENS = re.compile(r"listening on (http://\S+)")


@dataclass(eq=False)
class Service:
    """`contam serve` as a child process.

    url, data  where it listens, and its folder;  lines  what it wrote to stderr so far
    """

    process: subprocess.Popen[str]
    data: Path
    url: str = ""
    lines: list[str] = field(default_factory=list)
    _arrived: queue.Queue[str | None] = field(default_factory=queue.Queue)

    def client(self, **options: Any) -> httpx.Client:
        """A client of it; close it, or use it as a context manager."""
        return httpx.Client(base_url=self.url, timeout=HANG_S, **options)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        return self.process.wait(HANG_S)

    def wait_until_listening(self) -> None:
        """Block until it has said where it listens."""
        while not self.url:
            line = self._arrived.get(timeout=HANG_S)
            assert line is not None, f"it ended: {''.join(self.lines)}"
            if said := _LISTENS.search(line):
                self.url = said[1]

    def wait_until_ready(self) -> None:
        """Block until it answers checks."""
        with self.client() as client:

            def ready() -> bool:
                assert self.process.poll() is None, f"it ended: {''.join(self.lines)}"
                return client.get("/readyz").status_code == 200

            wait_until(ready, pause_s=0.05, said="it did not get ready")

    def read(self) -> None:
        """Collect what it writes, until it ends."""
        for line in self.process.stderr:
            self.lines.append(line)
            self._arrived.put(line)
        self._arrived.put(None)


@contextlib.contextmanager
def serving(
    *indexes: Path | str,
    data: Path,
    flags: tuple[str, ...] = (),
    environ: Mapping[str, str] | None = None,
    ready: bool = True,
    folder: Path = REPOSITORY,
    code: Path = REPOSITORY,
) -> Iterator[Service]:
    """A service over these indexes on a free port, ended with the block.

    flags    further options, as on a command line;  environ  added to the environment
    ready    wait until it answers checks, else only until it listens
    folder   in which it is started;  code  where its contam lies
    """
    command = [sys.executable, "-m", "contam", "serve", "--port", "0", "--data", str(data)]
    for index in indexes:
        command += ["--index", str(index)]
    process = subprocess.Popen(
        [*command, *flags],
        cwd=folder,
        env={**os.environ, **_PATIENT, "PYTHONPATH": str(code), **(environ or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    service = Service(process, data)
    reader = threading.Thread(target=service.read, daemon=True)
    reader.start()
    try:
        service.wait_until_listening()
        if ready:
            service.wait_until_ready()
        yield service
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(HANG_S)
        process.stdout.close()
        process.stderr.close()
