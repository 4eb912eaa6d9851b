"""Take shards into an index: their records and tasks, and threads that keep their order."""

from __future__ import annotations

import queue
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

from contam.corpus.batches import BATCH_BYTES, read_chunk
from contam.corpus.coverage import ShardCoverage
from contam.corpus.documents import MetadataStream
from contam.corpus.opening import map_shards, open_shard
from contam.corpus.shards import Shard, file_sha256, shard_digest, unchanged
from contam.errors import CorpusError, InternalError, ShardError
from contam.index.model import ShardRecord
from contam.index.writing.sampling import (
    TOKENIZER_BATCH_BYTES,
    Sampled,
    Sampler,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contam.corpus.columns import Selection
    from contam.corpus.formats.base import Chunk
    from contam.corpus.opening import OpenedShard
    from contam.index.model import Manifest
    from contam.text.bpe import FileTokenizer


T = TypeVar("T")
R = TypeVar("R")

#: Results that may wait for each worker, as the memory of a segment counts them: two batches of
#: text of the recipe `complete`. One of each task is always let in, so that none waits for others.
_MOST_WAITING_BYTES = 64 << 20


class Stopped(Exception):  # noqa: N818 - not an error: whoever waited for the results has gone
    """The results of a task are wanted no more."""


class Pipeline(Generic[T, R]):
    """Tasks that threads work on in their order; see `running`."""

    def __init__(self, tasks: Sequence[T], workers: int) -> None:
        self.stop = threading.Event()
        self._results: deque[_Results] = deque(_Results() for _ in tasks)
        self._todo = iter(list(zip(tasks, self._results, strict=True)))
        self._most_bytes = _MOST_WAITING_BYTES * workers
        self._n_bytes = 0  # of results that wait
        self._changed = threading.Condition()

    def results(self) -> Iterator[R]:
        """The results of the next task, in its order; raises what the task raised."""
        waiting, is_last = self._results.popleft(), False
        while not is_last:
            result, n_bytes, is_last = waiting.get()
            with self._changed:
                self._n_bytes -= n_bytes
                self._changed.notify_all()
            if isinstance(result, BaseException):
                raise result
            yield cast("R", result)

    def skip(self) -> None:
        """Drop the next task: its results are not needed."""
        dropped = self._results.popleft()
        with self._changed:
            dropped.unwanted = True
            while not dropped.empty():
                self._n_bytes -= dropped.get()[1]
            self._changed.notify_all()

    def work(self, do: Callable[[T, Callable[[R, int], None]], R]) -> None:
        """Take tasks until there are none; `do(task, put)` makes the results of one."""
        while True:
            with self._changed:
                while self._n_bytes >= self._most_bytes and not self.stop.is_set():
                    self._changed.wait(0.1)
                task, results = next(self._todo, (None, None))
            if task is None or results is None or self.stop.is_set():
                return
            try:
                last: object = do(task, partial(self._put, results))
            except BaseException as error:  # noqa: BLE001 - raised again where results are taken
                last = error
            results.put((last, 0, True))

    def _put(self, results: _Results, result: R, n_bytes: int) -> None:
        with self._changed:
            while not results.empty() and self._n_bytes >= self._most_bytes:
                self._check_wanted(results)
                self._changed.wait(0.1)
            self._check_wanted(results)
            self._n_bytes += n_bytes
            results.put((result, n_bytes, False))

    def _check_wanted(self, results: _Results) -> None:
        if results.unwanted or self.stop.is_set():
            raise Stopped


class _Results(queue.SimpleQueue[tuple[object, int, bool]]):
    """Results of one task, their bytes, and which is the last, for the thread that takes them."""

    unwanted = False


@contextmanager
def running(
    tasks: Sequence[T],
    workers: int,
    make: Callable[[], Callable[[T, Callable[[R, int], None]], R]],
) -> Iterator[Pipeline[T, R]]:
    """Work on the tasks while the block runs, at most a bounded amount of results ahead of it.

    make  called once a thread, here, for the function that works there: `do(task, put)`, which
          hands results over by `put(result, n_bytes)`, and returns the last
    """
    pipeline: Pipeline[T, R] = Pipeline(tasks, workers)
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="contam-index")
    try:
        for _ in range(min(workers, len(tasks))):
            pool.submit(pipeline.work, make())
        yield pipeline
    finally:
        # Also on Ctrl-C: no thread may go on reading when the caller is gone.
        pipeline.stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


class BuildProgress(Protocol):
    """Receives the progress of a build; every method may be called from any thread."""

    def start(self, total_bytes: int) -> None:
        """The shards have this many bytes to read."""

    def advance(self, n_bytes: int, /) -> None:
        """This many more bytes are read."""

    def note(self, message: str) -> None:
        """Something worth a line."""

    def compiled(self, done: int, total: int) -> None:
        """So many of all kernels are compiled; only a first run hears of it."""

    def finish(self) -> None:
        """No more will come."""


@dataclass(frozen=True, slots=True)
class Task:
    """One unit of a shard to sample, or, where there is none, the whole file to digest."""

    shard: int
    chunk: Chunk | None


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """What one task gave besides documents.

    counts  of a chunk that was read to its end;  sha256  of a shard's file
    """

    counts: ShardCoverage
    sha256: str


Result = Sampled | Done
"""What tasks hand over: the documents of a chunk, then Done."""


@dataclass(frozen=True, slots=True, eq=False)
class Intake:
    """The shards of a manifest that are still to be read.

    shards      all of the manifest, by their places there
    selections  columns to read, None for shards that are not to be read
    failures    why a pending shard cannot be read, by its place
    units       of each pending shard that can be, by its place
    """

    shards: tuple[Shard, ...]
    selections: tuple[Selection | None, ...]
    failures: dict[int, str]
    chunks: dict[int, list[Chunk]]

    @classmethod
    def of(cls, manifest: Manifest) -> Intake:
        """Find columns and units of what is pending.

        Raises CorpusError when nothing is indexed and no shard has a text column.
        """
        shards = [shard_of(record) for record in manifest.shards]
        selections: list[Selection | None] = [None] * len(shards)
        pending = pending_places(manifest)
        failures = {
            place: reason for place in pending if (reason := manifest.shards[place].failure)
        }
        places = [place for place in pending if place not in failures]

        def look(place: int, shard: Shard) -> OpenedShard:
            record = manifest.shards[place]
            return open_shard(place, shard, record.column, record.columns)

        refusals: list[CorpusError] = []
        chunks: dict[int, list[Chunk]] = {}
        found = map_shards(look, shards, places)
        for place, one in zip(places, found, strict=True):
            record, refused = manifest.shards[place], one.refused
            shards[place] = one.shard
            if one.digest not in (None, record.digest):
                refused = _changed(record)
            if refused is None:
                selections[place], chunks[place] = one.selection, list(one.chunks)
                continue
            failures[place] = refused.message
            if isinstance(refused, CorpusError):
                refusals.append(refused)
        if refusals and not manifest.segments and not any(selections):
            raise refusals[0]
        return cls(tuple(shards), tuple(selections), failures, chunks)

    @property
    def n_bytes(self) -> int:
        """Bytes to read, as far as known before reading."""
        return sum(chunk.n_bytes for chunks in self.chunks.values() for chunk in chunks)

    def tasks(self) -> list[Task]:
        """All there is to do, shard by shard, each ending with its digest."""
        return [
            Task(place, chunk)
            for place, chunks in sorted(self.chunks.items())
            for chunk in [*chunks, None]
        ]


class IntakeReader:
    """One worker's part of the intake. Not shared between threads."""

    def __init__(
        self,
        intake: Intake,
        manifest: Manifest,
        tokenizer: FileTokenizer | None,
        progress: BuildProgress | None,
    ) -> None:
        self._intake = intake
        self._records = manifest.shards
        self._progress = progress
        self._sampler = Sampler(manifest.recipe, tokenizer)
        self._batch_bytes = BATCH_BYTES if tokenizer is None else TOKENIZER_BATCH_BYTES

    def __call__(self, task: Task, put: Callable[[Result, int], None]) -> Result:
        """Do one task. Raises ShardError when the shard cannot be read, or changed meanwhile."""
        if task.chunk is None:
            return Done(ShardCoverage(), self._digest(task.shard))
        intake, chunk = self._intake, task.chunk
        selection = intake.selections[task.shard]
        if selection is None:
            raise InternalError(f"{intake.shards[task.shard].name}: a unit without columns")
        metadata = MetadataStream(chunk, intake.shards[task.shard], selection)
        counts = ShardCoverage()
        reported = 0
        for batch in read_chunk(chunk, intake.shards, intake.selections, self._batch_bytes):
            sampled = self._sampler.sample(batch, metadata.take(batch.n_docs))
            counts += batch.counts
            put(sampled, sampled.weight)
            step = min(batch.n_bytes, max(chunk.n_bytes - reported, 0))
            self._report(step)
            reported += step
        self._report(max(chunk.n_bytes - reported, 0))
        return Done(counts + ShardCoverage(units=1), "")

    def _report(self, n_bytes: int) -> None:
        if self._progress is not None:
            self._progress.advance(n_bytes)

    def _digest(self, place: int) -> str:
        shard = self._intake.shards[place]
        sha256 = file_sha256(shard)
        if shard_digest(shard) != self._records[place].digest:
            raise _changed(self._records[place])
        return sha256


def shard_of(record: ShardRecord) -> Shard:
    """The shard as it was when it was recorded."""
    return Shard(record.uri, record.name, record.format, record.size_bytes)


def listed_record(
    shard: Shard, text: str | None, columns: Mapping[str, str] | None = None
) -> ShardRecord:
    """The record of a shard that nobody has opened yet."""
    return ShardRecord(
        name=shard.name,
        uri=shard.uri,
        format=shard.format,
        size_bytes=shard.size_bytes,
        digest="",
        sha256="",
        column=text,
        counts=ShardCoverage().to_dict(),
        columns=dict(columns) if columns else None,
    )


def new_record(
    shard: Shard, text: str | None, columns: Mapping[str, str] | None = None
) -> ShardRecord:
    """The record of a shard that was not read yet; `failure` is set when it cannot be."""
    record = listed_record(shard, text, columns)
    try:
        with unchanged(shard) as one:
            return replace(record, size_bytes=one.size_bytes, digest=shard_digest(one))
    except ShardError as error:
        return replace(record, failure=error.message)


def _changed(record: ShardRecord) -> ShardError:
    return ShardError(
        "{shard}: its content changed after it was listed", shard=record.name,
        hint="add it again when nobody writes to it",
    )  # fmt: skip


def failed(record: ShardRecord, reason: str) -> ShardRecord:
    """The record of a shard that could not be read."""
    return replace(record, failure=reason, sha256="", counts=ShardCoverage().to_dict())


def pending_places(manifest: Manifest) -> list[int]:
    """Places of the shards that are still to be read, in order."""
    pending = set(manifest.pending)
    return [
        place
        for place, record in enumerate(manifest.shards)
        if record.name in pending and not record.retired
    ]
