"""Start, pause, stop and follow the process of a job."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import contam

if TYPE_CHECKING:
    from contam.server.jobs.work.allowance import Allowance

_SECRETS: Final = ("CONTAM_ADMIN_KEY", "CONTAM_KEY")
#: What a job that waits for its turn is said to do.
_WAITING: Final = "waiting for its turn"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a running job is: `done` of `total` bytes of documents, when it searches."""

    phase: str = "starting"
    done: int = 0
    total: int = 0


@dataclass(slots=True, eq=False)
class Running:
    """The process of a job. Its slice begins when it is first heard of, and when it goes on."""

    process: subprocess.Popen[bytes]
    allowance: Allowance
    progress: JobProgress = JobProgress()
    cancelled: bool = False
    put_back: bool = False
    heard: threading.Event = field(default_factory=threading.Event)
    at_work: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    phase: str = ""

    def pause(self) -> None:
        """Stop it where it is; the time that it waits is not counted as work."""
        self.at_work.clear()
        _signal(self.process, signal.SIGSTOP)
        self.allowance.pause()
        self.phase = self.progress.phase
        self.progress = replace(self.progress, phase=_WAITING)

    def go_on(self) -> None:
        """Let it work again."""
        self.progress = replace(self.progress, phase=self.phase)
        self.allowance.go_on()
        _signal(self.process, signal.SIGCONT)
        self.at_work.set()

    def end(self) -> None:
        """Wake whoever waits for it: it has ended."""
        for event in (self.over, self.heard, self.at_work):
            event.set()


def begin() -> subprocess.Popen[bytes]:
    """Begin a process that waits for its order. Raises OSError."""
    home = Path(contam.__file__).resolve().parents[2]
    environ = {name: value for name, value in os.environ.items() if name not in _SECRETS}
    return subprocess.Popen(
        [sys.executable, "-m", "contam.server.jobs.work.run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # A traceback may quote a text, and this stream would end in somebody's log.
        stderr=subprocess.DEVNULL,
        env=environ,
        # What `-m` finds first is then this very package, wherever the service was started.
        cwd=home,
        # A signal to the service is not one to its jobs.
        start_new_session=True,
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it began."""
    _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # Not to whoever has its number now.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
