"""Compile what a kind of run needs before it starts: once, by one process, with progress."""

from __future__ import annotations

import fcntl
import hashlib
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from contam.kernels._cache import CACHE_FOLDER, IS_READ_ONLY, cache_folder, unsaved
from contam.kernels._compiler import KERNELS, report_compiled, target_name
from contam.kernels._jit import INTERPRETED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_thread = threading.local()
#: The marks of what this process compiled: where nothing can be kept, it leaves none behind.
_run_here: set[Path] = set()

Kind: TypeAlias = Literal["scan", "build", "query", "all"]


class CompileProgress(Protocol):
    """Who is told how far compiling has come."""

    def note(self, message: str) -> None:
        """Something worth a line."""

    def compiled(self, done: int, total: int) -> None:
        """So many kernels of all are compiled or loaded."""


def is_warm(kind: Kind) -> bool:
    """Whether an earlier run compiled all that this kind of run needs, from the same sources."""
    return INTERPRETED or _mark(kind).exists() or _mark("all").exists()


def compile_once(
    kind: Kind, workload: Callable[[], None], progress: CompileProgress | None
) -> None:
    """Run a small workload that calls every kernel of its kind, unless that was done before.

    Other processes wait until it is done. What an earlier run left unfinished is finished.
    """
    if getattr(_thread, "is_compiling", False):
        return  # a workload is a small run, which comes here itself
    if _mark(kind) in _run_here or is_warm(kind):
        return
    with _alone(progress):
        if is_warm(kind):
            return
        _thread.is_compiling = True
        try:
            _run(workload, progress)
        finally:
            _thread.is_compiling = False
        if unsaved and progress is not None:
            progress.note(
                f"compiled kernels cannot be kept, so every run compiles them again: {unsaved[0]}; "
                "let CONTAM_CACHE_DIR name another folder"
            )
        _run_here.add(_mark(kind))
        if not (IS_READ_ONLY or unsaved):
            _mark(kind).touch()


def _run(workload: Callable[[], None], progress: CompileProgress | None) -> None:
    def report(done: int) -> None:
        if progress is not None:
            progress.compiled(done, len(KERNELS))

    if progress is not None:
        once = "" if unsaved else ": only the first run after an installation does this"
        progress.note(f"compiling kernels{once}")
    with report_compiled(report):
        workload()
    report(len(KERNELS))


def _mark(kind: Kind) -> Path:
    """The file that is there once a workload has been run to its end."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    state = [cache_folder(source).name for source in sources] + [target_name()]
    digest = hashlib.sha256("\n".join(state).encode()).hexdigest()
    return CACHE_FOLDER / f"{kind}-{digest[:16]}.compiled"


@contextmanager
def _alone(progress: CompileProgress | None) -> Iterator[None]:
    """Compile in no two processes at once: both would do the same work."""
    if IS_READ_ONLY:
        yield  # nothing is left there for others
        return
    with (CACHE_FOLDER / "lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if progress is not None:
                progress.note("another process is compiling the kernels: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks: the work is done twice, the results are the same
        yield


def is_kept() -> bool:
    """Whether what was compiled is there for the next run."""
    return not unsaved


def folder() -> Path:
    """Where compiled kernels are kept."""
    return CACHE_FOLDER
