"""How a scan scales over threads and processes, and how much of a thread's time holds the lock.

    CONTAM_SHARED=FOLDER python benchmarks/bench_scaling.py
    python benchmarks/bench_scaling.py --data DATA --workers 1 2 4 8 --copies 4

DATA has `corpus` and `items`. Each scan is a process of its own, or several of four threads that
divide the chunks. Meanwhile this process reads the word of their interpreters that says whether
the lock is taken, some thousand times a second, and takes no part in what it watches. Of one
worker, the share of the samples in which it is taken is the share of a thread's time that holds
it. Where the word lies is found at the start of each process: it is 1 while Python code runs, on
one thread or on two, and 0 while all threads wait.

Threads that want the lock queue for it, so a process is a closed queue with one server. Its
throughput follows from that share alone by mean value analysis (Reiser and Lavenberg 1980), and
the last table has it for more cores than there are here, beside a simulation of the same queue.
"""

from __future__ import annotations

import argparse
import ctypes
import heapq
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

# The checkout this file lies in is what is measured, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

_THREADS: Final = 4
_PAUSE_S: Final = 0.0005
#: Bytes of the interpreter's state, all of which may hold the word.
_STATE_BYTES: Final = 256 << 10
#: Until a process does what it was told, and how often it is then looked at.
_SETTLED_S: Final = 0.3
_LOOKS: Final = 20
#: Times that the lock is taken in a simulation.
_TURNS: Final = 200_000
_CORES: Final = (8, 16, 32, 64, 96, 128)


class Child:
    """A process that scans its share of the chunks when it is told to."""

    def __init__(self, data: Path, policies: str, threads: int, index: int, count: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--child", str(data), policies, str(threads), str(index),
             str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        begin = int(self._line())
        self._memory = os.open(f"/proc/{self._process.pid}/mem", os.O_RDONLY)
        looks = []
        for told in ("two", "wait", "go on"):
            time.sleep(_SETTLED_S)
            looks.append([self._words(begin) for _ in range(_LOOKS)])
            self.say(told)
            self._line()
        one, two, none = looks
        found = [
            at
            for at in range(len(one[0]))
            if all(words[at] == 1 for words in one)
            and all(words[at] in (0, 1) for words in two)
            and sum(words[at] for words in two) > _LOOKS // 2
            and not any(words[at] for words in none)
        ]
        if not found:
            raise SystemExit("no word of the interpreter says whether its lock is taken")
        self._at = [begin + 4 * at for at in found]

    def say(self, word: str) -> None:
        """Give it a line."""
        stdin = self._process.stdin
        if stdin is not None:
            stdin.write(word + "\n")
            stdin.flush()

    def taken(self) -> bool:
        """Whether one of its threads has the lock now."""
        return all(os.pread(self._memory, 4, at) == b"\1\0\0\0" for at in self._at)

    def result(self) -> dict[str, float]:
        """What it says of its scan, when that is over."""
        answer: dict[str, float] = json.loads(self._line())
        self._process.communicate()
        os.close(self._memory)
        return answer

    def _line(self) -> str:
        stdout = self._process.stdout
        line = stdout.readline() if stdout is not None else ""
        if not line:
            raise SystemExit("a process of the scan has ended")
        return line

    def _words(self, begin: int) -> list[int]:
        """The state of its interpreter, as far as it is in memory."""
        data = os.pread(self._memory, _STATE_BYTES, begin)
        return list(memoryview(data[: len(data) // 4 * 4]).cast("I"))


def scan_share(data: Path, policies: str, threads: int, index: int, count: int) -> None:
    """Be a child: plan, wait, scan every `count`-th chunk, and say what it took."""
    from contam.memory import tune_command

    tune_command()
    from contam.detect.chunk_scan import scan_chunks
    from contam.detect.corpus import Corpus
    from contam.detect.parameters import ScanParameters
    from contam.detect.plan import make_plan
    from contam.detect.warm import warmup_scan

    state = ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")
    _say(str(ctypes.addressof(state)))
    # One thread runs Python code, and only that, then two, so that no number of threads and no
    # wish for the lock is taken for the lock, then none.
    for n_threads in (1, 2):
        _spin(n_threads)
        _say("done")
    sys.stdin.readline()
    warmup_scan()
    corpus = Corpus.open([data / "corpus"], None)
    plan = make_plan([data / "items"], ScanParameters(policies=tuple(policies.split(","))))
    _say("ready")
    sys.stdin.readline()
    before = _cpu_s()
    began = time.perf_counter()
    scan_chunks(plan, corpus, workers=threads, chunks=corpus.chunks[index::count])
    found = {"wall_s": time.perf_counter() - began, "cpu_s": _cpu_s() - before}
    _say(json.dumps(found))


def _spin(n_threads: int) -> None:
    """Run Python code on so many threads until a line comes."""
    heard = threading.Event()

    def hear() -> None:
        sys.stdin.readline()
        heard.set()

    def spin() -> None:
        while not heard.is_set():
            pass

    others = [threading.Thread(target=run) for run in (hear, *[spin] * (n_threads - 1))]
    for thread in others:
        thread.start()
    spin()
    for thread in others:
        thread.join()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(data: Path, policies: str, threads: int, processes: int) -> dict[str, float]:
    """Scan with so many processes of so many threads.

    `taken` is the share of the time in which the lock of a process is taken.
    """
    children = [Child(data, policies, threads, n, processes) for n in range(processes)]
    samples, taken, over = 0, 0, threading.Event()
    answers: list[dict[str, float]] = []

    def wait() -> None:
        answers.extend(child.result() for child in children)
        over.set()

    for child in children:
        child.say("go")
    # The first to end would be read on as one whose lock is free.
    waiting = threading.Thread(target=wait)
    waiting.start()
    while not over.is_set():
        try:
            taken += sum(child.taken() for child in children)
        except OSError:
            break
        samples += len(children)
        time.sleep(_PAUSE_S)
    waiting.join()
    return {
        "cpu_s": sum(answer["cpu_s"] for answer in answers),
        "wall_s": max(answer["wall_s"] for answer in answers),
        "taken": taken / max(1, samples),
    }


def throughput(held: float, threads: int) -> float:
    """How many lone threads a process of so many threads is worth, each on a core of its own.

    held  share of a lone thread's time that holds the lock
    Mean value analysis of one queue: who comes finds, on average, the queue of one thread fewer.
    """
    queue = rate = 0.0
    for n in range(1, threads + 1):
        waits = held * (1 + queue)
        rate = n / (waits + 1 - held)
        queue = rate * waits
    return rate


def simulated(held: float, threads: int) -> float:
    """The same by trying: threads that work without the lock, then queue for it, then have it."""
    random_ = random.Random(1)  # noqa: S311 - no secret

    def lasts(mean: float) -> float:
        return random_.expovariate(1 / mean)

    arrivals = [lasts(1 - held) for _ in range(threads)]
    heapq.heapify(arrivals)
    free = 0.0
    for _ in range(_TURNS):
        free = max(free, arrivals[0]) + lasts(held)
        heapq.heapreplace(arrivals, free + lasts(1 - held))
    return _TURNS / free


def copy_corpus(data: Path, home: Path, copies: int) -> None:
    """The data with each shard of the corpus so many times, by links."""
    (home / "items").symlink_to((data / "items").resolve())
    for shard in sorted((data / "corpus").rglob("*.parquet")):
        for number in range(copies):
            link = home / "corpus" / str(number) / shard.relative_to(data / "corpus")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(shard.resolve())


def _table(heads: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    for row in (heads, *rows):
        sys.stdout.write("".join(f"{cell:>16}" for cell in row) + "\n")
    sys.stdout.write("\n")
    sys.stdout.flush()


def main() -> int:
    """Print what was measured, and what follows for more cores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    shared = os.environ.get("CONTAM_SHARED")
    parser.add_argument("--data", type=Path, default=Path(shared, "data") if shared else None)
    parser.add_argument("--policies", default="contam,lmeval-13,openr1-8,llama3-8gram")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        data, policies, *numbers = asked.child
        scan_share(Path(data), policies, *map(int, numbers))
        return 0
    if asked.data is None:
        parser.error("--data or CONTAM_SHARED is needed")
    held = 0.0
    rows = []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        copy_corpus(asked.data, home, asked.copies)
        for workers in asked.workers:
            shapes = {(workers, 1), (min(workers, _THREADS), -(-workers // _THREADS))}
            for threads, processes in sorted(shapes, key=lambda shape: shape[1]):
                seen = measure(home, asked.policies, threads, processes)
                held = held or seen["taken"]
                rows.append(
                    (
                        workers,
                        f"{processes} x {threads}",
                        *(f"{seen[name]:.1f}" for name in ("cpu_s", "wall_s")),
                        *(f"{taken:.1%}" for taken in (seen["taken"], seen["taken"] / threads)),
                    )
                )
    heads = ("workers", "processes", "CPU-s", "wall s", "lock taken", "a thread holds")
    _table(heads, rows)
    fours = throughput(held, _THREADS) / _THREADS
    _table(
        ("cores", "one process", "simulated", "processes of 4"),
        [
            (
                cores,
                f"{throughput(held, cores):.1f}",
                f"{simulated(held, cores):.1f}",
                f"{cores * fours:.1f}",
            )
            for cores in _CORES
        ],
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
