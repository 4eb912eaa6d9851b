"""Report progress: a bar on a terminal, a line per tenth elsewhere, or nothing."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from contam.cli.terminal import plain, stderr_is_terminal, talk

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID

_STEPS = 10
#: Less is read before anyone could follow lines about it.
_WORTH_LINES = 10_000_000
_WORTH_COUNTING = 20_000
_MEGA = 1_000_000


def reporter(*, quiet: bool) -> QuietReporter:
    """The reporter that fits stderr."""
    if quiet:
        return QuietReporter()
    return BarReporter() if stderr_is_terminal() else LineReporter()


class QuietReporter:
    """A `contam.detect.scan.ScanProgress` that says nothing.

    It counts things, too: see `contam.detect.dupes.DupesProgress`.
    """

    def start(self, total_bytes: int) -> None:
        """Ignored."""

    def count(self, total: int, thing: str) -> None:
        """Ignored."""

    def advance(self, n: int) -> None:
        """Ignored."""

    def note(self, message: str) -> None:
        """Ignored."""

    def compiled(self, done: int, total: int) -> None:
        """Ignored."""

    def finish(self) -> None:
        """Ignored."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.finish()


class LineReporter(QuietReporter):
    """One line per tenth of the work, for logs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = 0
        self._done = 0
        self._step = 0
        self._thing = ""
        self._began = time.monotonic()

    def start(self, total_bytes: int) -> None:
        """Begin at zero."""
        self.count(total_bytes, "")

    def count(self, total: int, thing: str) -> None:
        """Begin at zero; nothing is a byte."""
        with self._lock:
            self._total, self._done, self._step, self._thing = total, 0, 0, thing
            self._began = time.monotonic()

    def advance(self, n: int) -> None:
        """Say so when another tenth is done."""
        with self._lock:
            self._done += n
            if self._total < (_WORTH_COUNTING if self._thing else _WORTH_LINES):
                return
            step = min(_STEPS, self._done * _STEPS // self._total)
            if step > self._step:
                self._step = step
                talk(self._line())

    def note(self, message: str) -> None:
        """Say it."""
        talk(plain(message))

    def compiled(self, done: int, total: int) -> None:
        """Say so whenever another quarter is compiled."""
        if done * 4 // total > (done - 1) * 4 // total:
            talk(f"kernel {done} of {total}")

    def _line(self) -> str:
        seconds = max(time.monotonic() - self._began, 1e-9)
        left = seconds * max(self._total - self._done, 0) / max(self._done, 1)
        rate = self._done / seconds
        if self._thing:
            done = f"{self._done:,} of {self._total:,} {self._thing}s  {rate:,.0f} {self._thing}s/s"
        else:
            done = f"{self._done / _MEGA:.0f} of {self._total / _MEGA:.0f} MB"
            done += f"  {rate / _MEGA:.0f} MB/s"
        return f"{self._step * 100 // _STEPS:3d} %  {done}  {_clock(left)} left"


class BarReporter(QuietReporter):
    """A bar with a rate and the time left."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def start(self, total_bytes: int) -> None:
        """Draw the bar."""
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self.finish()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task("reading", total=total_bytes or None)
        self._progress.start()

    def count(self, total: int, thing: str) -> None:
        """Draw a bar of things that are counted."""
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class Rate(ProgressColumn):
            def render(self, task: Task) -> Text:
                return Text(f"{task.speed or 0:,.0f} {thing}s/s")

        self.finish()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            MofNCompleteColumn(" of "),
            Rate(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task(f"{thing}s", total=total or None)
        self._progress.start()

    def advance(self, n: int) -> None:
        """Move the bar."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, n)

    def note(self, message: str) -> None:
        """A line above the bar."""
        self._console.print(plain(message))

    def compiled(self, done: int, total: int) -> None:
        """Draw the bar of kernels, move it, and remove it when all are there."""
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        if self._progress is None:
            self._progress = Progress(
                TextColumn("kernel"),
                MofNCompleteColumn(" of "),
                BarColumn(),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._task = self._progress.add_task("kernel", total=total)
            self._progress.start()
        if self._task is not None:
            self._progress.update(self._task, completed=done)
        if done == total:
            self.finish()

    def finish(self) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
