"""What a cluster can be given to do: numbered tasks, and a worker that does one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from contam.corpus.coverage import ShardFailure
from contam.detect.leases.part_file import part_bytes
from contam.detect.leases.parts_folder import write_part
from contam.detect.leases.plan_folder import open_plan, worker_files
from contam.detect.leases.work import failed_part, lease_by_number, scan_lease
from contam.detect.warm import scan_a_little
from contam.kernels.warm_up import compile_once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from contam.detect.leases.cut import Lease
    from contam.detect.leases.plan_folder import OpenPlan


class Task(NamedTuple):
    """One of the things to do, and how many bytes it reads."""

    number: int
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a task gave.

    data      what is small enough to be returned at once
    files     names and sizes of files, which its worker gives piece by piece
    failures  shards that could not be read: number, name, reason
    """

    data: bytes = b""
    files: tuple[tuple[str, int], ...] = ()
    failures: tuple[tuple[int, str, str], ...] = ()


class TaskWorker(Protocol):
    """Does tasks, in a process of a node."""

    def do(self, number: int) -> Outcome:
        """Do the task with this number."""

    def piece(self, name: str, begin: int) -> bytes:
        """Some bytes of a file of the last task, from a position on. Raises OSError."""


class Job(Protocol):
    """Tasks as whoever gives them out sees them.

    noun    what a task is called
    worker  makes the worker of a process: of the folder that `files` are in, and its threads
    """

    noun: str

    @property
    def worker(self) -> Callable[[Path, int], TaskWorker]:
        """A class of a module, so that other processes find it."""

    def files(self) -> Mapping[str, bytes]:
        """What every node needs, by names."""

    def finish(self, number: int, outcome: Outcome, fetch: Callable[[str, int], bytes]) -> None:
        """Keep what a task gave instead of what was kept; `fetch` is the `piece` of its worker."""

    def give_up(self, number: int, reason: str) -> None:
        """Note that nobody could do a task: its shards were not read."""


class ScanWorker:
    """Does leases of a scan."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._opened = open_plan(folder)
        self._threads = threads
        compile_once("scan", scan_a_little, None)

    def do(self, number: int) -> Outcome:
        """Search the chunks of a lease."""
        part = scan_lease(
            self._opened, lease_by_number(self._opened, number), workers=self._threads
        )
        failures = part.answer.failures
        return Outcome(
            data=part_bytes(part),
            failures=tuple((failure.shard, failure.name, failure.reason) for failure in failures),
        )

    def piece(self, name: str, begin: int) -> bytes:
        """A part is returned at once."""
        raise FileNotFoundError(name, begin)


class ScanJob:
    """The leases of a plan, whose parts go into a folder."""

    noun = "lease"
    worker = ScanWorker

    def __init__(
        self, opened: OpenPlan, parts: Path, replaced: Mapping[int, Sequence[Path]]
    ) -> None:
        self._opened = opened
        self._parts = parts
        self._replaced = dict(replaced)
        self._failures: dict[int, Sequence[ShardFailure]] = {}

    @property
    def failures(self) -> tuple[ShardFailure, ...]:
        """Shards that could not be read."""
        return tuple(failure for _, some in sorted(self._failures.items()) for failure in some)

    @property
    def not_whole(self) -> tuple[int, ...]:
        """Leases of which a shard could not be read."""
        return tuple(number for number, some in sorted(self._failures.items()) if some)

    def files(self) -> Mapping[str, bytes]:
        """The plan, without the texts of items."""
        return worker_files(self._opened.folder)

    def finish(self, number: int, outcome: Outcome, fetch: Callable[[str, int], bytes]) -> None:
        """Write the part of a lease."""
        del fetch
        self._write(number, outcome.data)
        self._failures[number] = [ShardFailure.noted(*facts) for facts in outcome.failures]

    def give_up(self, number: int, reason: str) -> None:
        """Write a part in which nothing was read."""
        part = failed_part(self._opened, self._lease(number), reason)
        self._write(number, part_bytes(part))
        self._failures[number] = part.answer.failures

    def _lease(self, number: int) -> Lease:
        return lease_by_number(self._opened, number)

    def _write(self, number: int, data: bytes) -> None:
        old = self._replaced.get(number, ())
        # Another node may read more of it, whose part then replaces this one.
        self._replaced[number] = [write_part(self._parts, number, data, old)]
