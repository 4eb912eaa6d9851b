"""Compute parts in processes of this machine, which share one plan in memory.

Up to a sixth of a thread's time it holds the interpreter's lock, so that one process keeps no more
than 6 to 10 cores busy.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING

from contam.detect.parts.division import THREADS
from contam.detect.parts.mapped import open_plan, write_plan
from contam.detect.parts.part_file import part_bytes
from contam.detect.parts.search_piece import search_piece
from contam.errors import ContamError
from contam.files.disk import output_errors
from contam.memory import tune_command

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from multiprocessing.connection import Connection

    from contam.detect.corpus import Corpus
    from contam.detect.parts.pieces import Piece
    from contam.detect.plan import Plan

_plan: Plan | None = None


def in_processes(
    plan: Plan, pieces: Sequence[Piece], workers: int
) -> Generator[tuple[int, bytes], None, None]:
    """The part of each piece with its place in the list, as they are done.

    workers  threads over all processes

    Raises what stops a process, and ContamError when one is killed. Every process has ended when
    the generator is closed.
    """
    n_processes = min(-(-workers // THREADS), len(pieces))
    threads = -(-workers // n_processes)
    context = multiprocessing.get_context("spawn")
    ends, end = context.Pipe(duplex=False)
    with contextlib.ExitStack() as stack:
        with output_errors(Path("$TMPDIR")):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="contam-plan-"))
            write_plan(plan, Path(folder))
        pool = ProcessPoolExecutor(
            n_processes, context, initializer=_begin, initargs=(folder, ends)
        )
        try:
            with _without_interrupts():
                tasks = {
                    pool.submit(_search, piece.name, piece.corpus, threads): at
                    for at, piece in enumerate(pieces)
                }
            for task in as_completed(tasks):
                yield tasks.pop(task), task.result()
        except BrokenProcessPool as error:
            raise ContamError(
                "a process of the scan was killed",
                hint="often memory runs out: repeat the call with fewer --workers; with --parts"
                " what is done is kept",
            ) from error
        finally:
            # In the middle of whatever they do: a part is kept whole or not at all.
            end.close()
            pool.shutdown(cancel_futures=True)
            ends.close()


def _begin(folder: str, ends: Connection) -> None:
    """Open the plan; the process ends with the one that started it."""
    global _plan  # noqa: PLW0603 - of a process that does nothing else
    threading.Thread(target=_end_with_parent, args=(ends,), daemon=True).start()
    tune_command()
    _plan = open_plan(Path(folder))


def _end_with_parent(ends: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        ends.recv()
    os._exit(1)


def _search(name: str, corpus: Corpus, threads: int) -> bytes:
    if _plan is None:
        raise RuntimeError("the plan is not open")
    return part_bytes(search_piece(_plan, name, corpus, workers=threads))


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let Ctrl-C not reach processes that are started in the block: it ends the one that waits."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
