"""Start the process of a job, hear its reports, and end it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import contam

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECRETS: Final = ("CONTAM_ADMIN_KEY", "CONTAM_KEY")
_HOME: Final = Path(contam.__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a running job is: `done` of `total` bytes of documents, when it searches."""

    phase: str = "starting"
    done: int = 0
    total: int = 0


class JobProcess:
    """A process of `contam.server.jobs.task`, which waits for its order when this returns.

    failure   why the job failed, once the process has said so
    overtime  whether it was ended because it took too long
    """

    def __init__(self) -> None:
        """Start it. Raises OSError."""
        self.progress = JobProgress()
        self.failure: dict[str, str] | None = None
        self.overtime = False
        environ = {name: value for name, value in os.environ.items() if name not in _SECRETS}
        # With it, `-m` would not look where this very package is.
        environ.pop("PYTHONSAFEPATH", None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "contam.server.jobs.task"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A traceback may quote a text, and this stream would end in somebody's log.
            stderr=subprocess.DEVNULL,
            env=environ,
            # What `-m` finds first is then this very package, wherever the service was started.
            cwd=_HOME,
            # A signal to the service is not one to its jobs.
            start_new_session=True,
        )

    def run(self, order: Mapping[str, Any], most_s: float) -> int:
        """Give the order and hear reports until the process ends; returns its exit code.

        most_s  seconds after which it is ended
        """
        process = self._process
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
        timer = threading.Timer(most_s, self._end_overtime)
        timer.start()
        try:
            with process.stdout, contextlib.suppress(OSError):
                process.stdin.write(json.dumps(order).encode() + b"\n")
                process.stdin.flush()
                for line in process.stdout:
                    # The end of the process may have cut the last line short.
                    with contextlib.suppress(ValueError):
                        report = json.loads(line)
                        self.failure = report.pop("failed", self.failure)
                        self.progress = replace(self.progress, **report)
            return process.wait()
        finally:
            timer.cancel()
            self.kill()
            process.wait()
            # Not before: the process takes the end of this pipe for the end of the service.
            with contextlib.suppress(OSError):
                process.stdin.close()

    def kill(self) -> None:
        """End it and all that it started."""
        # Not whoever has its number now.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _end_overtime(self) -> None:
        self.overtime = True
        self.kill()
