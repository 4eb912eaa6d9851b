"""Write data to stdout, messages and progress to stderr, without terminal control codes."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import textwrap
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Self, TextIO

from contam.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType
    from rich.progress import Progress

PLAIN_WIDTH = 120

# Control characters steer a terminal; characters that set the writing direction re-order a line.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def visible(text: str) -> str:
    """The text with steering characters replaced by visible names; line breaks and tabs stay."""
    return _STEERING.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def plain(text: str) -> str:
    """The text on one line, steering characters visible, for messages."""
    return " ".join(visible(text).split())


def emit(text: str) -> None:
    """Write data to stdout. A reader that has gone away is not an error; a full disk is."""
    stream = sys.stdout
    if stream is None:
        return
    try:
        _write(stream, text)
    except BrokenPipeError:
        _stop_output()
    except OSError as error:
        _stop_output()
        raise OutputError(f"cannot write to standard output: {error.strerror or error}") from error


def talk(text: str) -> None:
    """Write one line to stderr; never fails."""
    stream = sys.stderr
    if stream is None:
        return
    try:
        _write(stream, text + "\n")
    except (OSError, ValueError):
        return


def _write(stream: TextIO, text: str) -> None:
    # A terminal that does not know a character shows it as its number.
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _stop_output() -> None:
    # What Python still holds in its buffer must go somewhere when the process ends.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def page_width() -> int:
    """Characters that a line of stdout may have: the terminal's, or enough for a pipe."""
    if _is_terminal(sys.stdout) or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return PLAIN_WIDTH


def folded(line: str) -> str:
    """A line of words, broken between them where stdout is a terminal that is not as wide."""
    if not _is_terminal(sys.stdout):
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line, page_width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def laid_out(renderables: Iterable[RenderableType]) -> str:
    """Rich tables and texts as stdout would show them: its colours and width; wide when piped."""
    from rich.console import Console

    terminal = _is_terminal(sys.stdout)
    # Rich asks its file which characters it can write.
    encoding = "utf-8" if shows_unicode() else "ascii"
    page = io.TextIOWrapper(io.BytesIO(), encoding, "backslashreplace", newline="")
    console = Console(
        file=page,
        force_terminal=terminal,
        width=None if terminal or os.environ.get("COLUMNS") else PLAIN_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for renderable in renderables:
        console.print(renderable)
    page.seek(0)
    # Rich fills every line with blanks up to the width, which spoils logs and diffs.
    return "\n".join(line.rstrip(" ") for line in page.read().split("\n"))


def shows_unicode() -> bool:
    """Whether stdout can write characters outside ASCII."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return encoding.lower().replace("-", "").startswith("utf")


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def stderr_is_terminal() -> bool:
    """Whether stderr is a terminal that can redraw a line."""
    return _is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"


_TENTH: Final = 10
#: Less is read before anyone could follow lines about it.
_WORTH_LINES: Final = 10_000_000
_MEGA: Final = 1_000_000


class Reporter:
    """A bar on a terminal, a line per tenth elsewhere: a `contam.detect.corpus.ScanProgress`."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._told = 0

    def start(self, total_bytes: int) -> None:
        """Begin to read so many bytes."""
        self._begin("reading", total_bytes)

    def advance(self, n: int, /) -> None:
        """Move the bar, or say so when another tenth is read."""
        if self._bar is None:
            return
        with self._lock:
            (task,) = self._bar.tasks
            # How much there is to read is an estimate of packed files.
            left_over = (task.total or task.completed + n) - task.completed
            self._bar.advance(task.id, min(n, left_over))
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
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done)
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
        self._bar.add_task(what, total=total or None)
        if stderr_is_terminal():
            self._bar.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.finish()
