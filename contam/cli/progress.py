"""Report progress on stderr: a bar on a terminal, a line per tenth elsewhere, or nothing."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Self

from contam.cli.terminal import plain, stderr_is_terminal, talk

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_TENTH: Final = 10
#: Less is read before anyone could follow lines about it.
_WORTH_LINES: Final = 10_000_000
_MEGA: Final = 1_000_000


class Reporter:
    """A `contam.detect.corpus.ScanProgress`."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._told = 0

    def start(self, total_bytes: int) -> None:
        """Begin to read so many bytes."""
        self._begin("reading", total_bytes)

    def advance(self, n: int, /) -> None:
        """Move the bar, or say so when another tenth is read."""
        if self._bar is None or self._task is None:
            return
        with self._lock:
            task = self._bar.tasks[0]
            # How much there is to read is an estimate of packed files.
            left_over = (task.total or task.completed + n) - task.completed
            self._bar.advance(self._task, min(n, left_over))
            if stderr_is_terminal():
                return
            tenth = min(_TENTH, int(task.percentage) * _TENTH // 100)
            if tenth > self._told and (task.total or 0) >= _WORTH_LINES:
                self._told = tenth
                left = timedelta(seconds=round(task.time_remaining or 0))
                talk(
                    f"{tenth * _TENTH:3d} %  {task.completed / _MEGA:.0f} of "
                    f"{(task.total or 0) / _MEGA:.0f} MB  {(task.speed or 0) / _MEGA:.0f} MB/s  "
                    f"{left} left"
                )

    def note(self, message: str) -> None:
        """Say it, above the bar."""
        if self._bar is not None and stderr_is_terminal():
            self._bar.console.print(plain(message))
        elif not self._quiet:
            talk(plain(message))

    def compiled(self, done: int, total: int) -> None:
        """Move the bar of kernels, or say so whenever another quarter is compiled."""
        if self._quiet:
            return
        if not stderr_is_terminal():
            if done * 4 // total > (done - 1) * 4 // total:
                talk(f"kernel {done} of {total}")
            return
        if self._bar is None:
            self._begin("kernel", total)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done)
        if done == total:
            self.finish()

    def finish(self) -> None:
        """Remove the bar."""
        if self._bar is not None and stderr_is_terminal():
            self._bar.stop()  # elsewhere it was not begun, and would end with an empty line
        self._bar = None

    def _begin(self, what: str, total: int) -> None:
        self.finish()
        if self._quiet:
            return
        from rich import progress
        from rich.console import Console

        counts = (
            (progress.DownloadColumn(), progress.TransferSpeedColumn())
            if what == "reading"
            else (progress.MofNCompleteColumn(),)
        )
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            *counts,
            progress.TimeRemainingColumn(),
            console=Console(stderr=True, highlight=False, markup=False, emoji=False),
            transient=True,
            # Older releases put something before stdout and stderr that knows of no terminal.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._told = 0
        self._task = self._bar.add_task(what, total=total or None)
        if stderr_is_terminal():
            self._bar.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.finish()
