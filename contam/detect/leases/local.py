"""Scan on one machine as several would: leases, parts on disk, a merge.

A scan that is killed goes on from its parts. More than four threads are divided over processes,
which share one plan in memory: up to a sixth of a thread's time it holds the interpreter's lock, so
that one process keeps no more than 6 to 10 cores busy.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

from contam.detect.leases.cut import cut_leases
from contam.detect.leases.parts_folder import PARTS_FILE, claim_leases, question_of_parts
from contam.detect.leases.plan_folder import OpenPlan, open_plan, question_of_leases, write_plan
from contam.detect.leases.work import merge_parts, work_on
from contam.errors import ContamError, OutputError, Public

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contam.detect.leases.cut import Lease
    from contam.detect.leases.workshop import RayCluster, Workshop
    from contam.detect.plan import Plan
    from contam.detect.result import ScanResult
    from contam.detect.scan import Corpus, ScanProgress

#: Threads of a process; as many as one interpreter keeps busy.
THREADS: Final = 4
#: Begins the answer of a process that an error has stopped.
_FAILED: Final = "!"
_CHILD: Final = "from contam.detect.leases.local import work_for_parent; work_for_parent()"


def scan_in_leases(
    corpus: Corpus,
    plan: Plan,
    workshop: Workshop,
    *,
    workers: int,
    progress: ScanProgress | None = None,
    started: float,
) -> ScanResult:
    """Search a corpus lease by lease; the plan is used up by it.

    workers  threads over all; the result does not depend on it

    Raises OutputError when parts are to be taken up that are of another scan, ContamError when a
    process of ours is killed, and CorpusError when nothing that was read has a text.
    """
    with workshop.held():
        opened = do_leases(corpus, plan, workshop, workers=workers, progress=progress)
        return merge_parts(opened, [workshop.parts], workers=workers, started=started)


def do_leases(
    corpus: Corpus,
    plan: Plan,
    workshop: Workshop,
    *,
    workers: int,
    progress: ScanProgress | None = None,
) -> OpenPlan:
    """Search a corpus lease by lease; the parts are in the workshop, which must be held.

    Raises OutputError when parts are to be taken up that are of another scan, and ContamError when
    a process of ours is killed.
    """
    leases = cut_leases(corpus.chunks)
    question = question_of_leases(plan, corpus, leases)
    parts = workshop.parts
    if workshop.resume and parts.exists():
        # Killed before it wrote that file, a run has left nothing to go on from.
        if (parts / PARTS_FILE).exists() and question_of_parts(parts)[0] != question:
            raise OutputError(
                "{} holds parts of another scan, or of another state of the corpus", parts,
                hint="leave --resume out to begin anew",
            )  # fmt: skip
    else:
        _empty(workshop.folder, progress)
    opened = OpenPlan(
        folder=workshop.folder,
        question=question,
        leases=leases,
        plan=plan,
        corpus=corpus,
        is_own=True,
    )
    if workshop.cluster is not None:
        return _work_in_cluster(opened, workshop, workshop.cluster, progress)
    n_processes = min(-(-workers // THREADS), len(leases))
    if n_processes < 2:  # noqa: PLR2004 - one process needs no others
        work_on(opened, leases, parts, workers=workers, progress=progress)
    else:
        _work_in_processes(opened, workshop, workers, n_processes, progress)
    return opened


def _empty(folder: Path, progress: ScanProgress | None) -> None:
    left = list(folder.iterdir())
    if left and progress is not None:
        progress.note("began anew: without --resume, what an interrupted run had done is dropped")
    for path in left:
        shutil.rmtree(path, ignore_errors=True)


def _work_in_cluster(
    opened: OpenPlan, workshop: Workshop, cluster: RayCluster, progress: ScanProgress | None
) -> OpenPlan:
    """Do all leases; returns the plan as others can open it."""
    from contam.detect.leases.on_ray import work_on_ray  # which not everybody has

    opened = replace(opened, folder=_written(opened, workshop))
    work_on_ray(
        opened, opened.leases, workshop.parts, address=cluster.address, workers=cluster.workers,
        progress=progress,
    )  # fmt: skip
    return opened


def _written(opened: OpenPlan, workshop: Workshop) -> Path:
    """The folder of a plan that other processes can open."""
    plan = workshop.folder / "plan"
    shutil.rmtree(plan, ignore_errors=True)
    # Without the items' texts, which would stay there after an interruption.
    write_plan(opened.plan, opened.corpus, plan, for_merge=False)
    return plan


def _work_in_processes(
    opened: OpenPlan,
    workshop: Workshop,
    workers: int,
    n_processes: int,
    progress: ScanProgress | None,
) -> None:
    parts = workshop.parts
    plan = _written(opened, workshop)
    waiting: queue.SimpleQueue[Lease] = queue.SimpleQueue()
    todo = claim_leases(opened, opened.leases, parts).waiting
    for lease in todo:
        waiting.put(lease)
    if progress is not None:
        progress.start(sum(lease.n_bytes for lease in todo))
    threads = [len(range(n, workers, n_processes)) for n in range(n_processes)]
    with _Children() as children, ThreadPoolExecutor(n_processes) as pool:
        tasks = [
            pool.submit(_feed, children, {"plan": str(plan), "parts": str(parts), "workers": n},
                        waiting, progress)
            for n in threads
        ]  # fmt: skip
        try:
            for task in tasks:
                task.result()
        except BaseException:
            children.kill()
            raise
    if progress is not None:
        progress.finish()


class _Children:
    """The processes that were started; all have ended when the block is left."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[str]] = []
        self._killed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> subprocess.Popen[str]:
        """A process that waits for work on its standard input."""
        with self._lock, _without_interrupts():
            process = subprocess.Popen(  # noqa: S603 - this interpreter and our own code
                [sys.executable, "-c", _CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
            )
            self._running.append(process)
            if self._killed:
                process.kill()
            return process

    def kill(self) -> None:
        """End them all, in the middle of whatever they do."""
        with self._lock:
            self._killed = True
            for process in self._running:
                process.kill()
                process.wait()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let Ctrl-C not reach processes that are started in the block: it ends the one that waits."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _feed(
    children: _Children,
    order: dict[str, Any],
    waiting: queue.SimpleQueue[Lease],
    progress: ScanProgress | None,
) -> None:
    """Start a process, and give it leases until none is waiting. Raises ContamError."""
    process = children.start()
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise RuntimeError("pipes were asked for")
    try:
        for ask in _asked(order, waiting, progress):
            # A process that has ended takes nothing, and answers nothing.
            with contextlib.suppress(BrokenPipeError):
                stdin.write(ask)
            if ask[0] != "{" and (answer := stdout.readline()) != ask:
                if answer.startswith(_FAILED):
                    # Of our own process, which sends nothing that it did not make.
                    raise pickle.loads(base64.b64decode(answer[1:]))  # noqa: S301
                code = process.wait()
                how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                raise ContamError(
                    "a process of the scan ended: {}", Public(how),
                    hint="often memory runs out: go on with fewer --workers and --resume",
                )  # fmt: skip
    finally:
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        stdout.close()


def _asked(
    order: dict[str, Any], waiting: queue.SimpleQueue[Lease], progress: ScanProgress | None
) -> Iterator[str]:
    """The lines a process is given: what to open, then a lease at a time while any is waiting."""
    yield json.dumps(order) + "\n"
    while True:
        try:
            lease = waiting.get_nowait()
        except queue.Empty:
            return
        yield f"{lease.number}\n"
        if progress is not None:
            progress.advance(lease.n_bytes)


def _lines_until_parent_ends() -> Iterator[str]:
    """The lines of standard input; this process ends with it, even in the middle of a lease."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        # The parent was killed, or needs no more. Parts are written whole or not at all.
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield lines.get()


def work_for_parent() -> None:
    """Do the leases that standard input names until it ends, and answer a line for each.

    An error that stops the work is the last answer.
    """
    order = json.loads(sys.stdin.readline())
    try:
        opened = replace(open_plan(order["plan"]), is_own=True)
        for line in _lines_until_parent_ends():
            lease = opened.leases[int(line) - 1]
            work_on(opened, [lease], order["parts"], workers=order["workers"])
            sys.stdout.write(f"{lease.number}\n")
            sys.stdout.flush()
    except ContamError as error:
        # The parent raises it: what stopped the scan is said once, with its hint.
        sys.stdout.write(f"{_FAILED}{base64.b64encode(pickle.dumps(error)).decode()}\n")
        sys.stdout.flush()
