"""A service in a process of its own, and what it costs: CPU seconds and memory, from /proc."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TICKS = os.sysconf("SC_CLK_TCK")
_PATIENCE_S = 600.0


class Usage:
    """What a process has used so far."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    @property
    def cpu_s(self) -> float:
        """User and system seconds of all its threads."""
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def own_mb(self) -> float:
        """Memory that is its own, in 10^6 bytes: what is mapped from an index does not count."""
        found = re.search(r"RssAnon:\s+(\d+)", (self._folder / "status").read_text())
        return int(found[1]) * 1024 / 1e6 if found else 0.0


@contextmanager
def service(
    index: str, data: str, log: Path, flags: Sequence[str]
) -> Iterator[tuple[str, int, int]]:
    """`contam serve` on a free port, ready: host, port and process id; ended with the block."""
    command = [sys.executable, "-m", "contam", "serve", "--index", index, "--data", data]
    with log.open("wb") as stream:
        process = subprocess.Popen([*command, "--port", "0", *flags], stderr=stream)
    try:
        host, port = _address(process, log)
        end = time.monotonic() + _PATIENCE_S
        while not _ready(f"http://{host}:{port}/readyz"):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the service does not get ready: see {log}")
            time.sleep(0.2)
        yield host, port, process.pid
        if process.poll() is not None:
            raise SystemExit(f"the service has ended: see {log}")
    finally:
        process.terminate()
        process.wait(60)


def _address(process: subprocess.Popen[bytes], log: Path) -> tuple[str, int]:
    end = time.monotonic() + _PATIENCE_S
    while not (said := re.search(r"listening on http://([\d.]+):(\d+)", log.read_text("utf-8"))):
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the service does not start: see {log}")
        time.sleep(0.1)
    return said[1], int(said[2])


def _ready(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as answer:  # noqa: S310 - the address of our own child
            return bool(answer.status == 200)  # noqa: PLR2004 - a status says more than its name
    except OSError:
        return False
