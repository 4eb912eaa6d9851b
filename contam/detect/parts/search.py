"""Search a corpus part by part: take the parts that are there, and compute the others.

Processes of this machine share one plan in memory. Up to a sixth of a thread's time it holds the
interpreter's lock, so that one process keeps no more than 6 to 10 cores busy.
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
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from contam.corpus.coverage import ShardFailure
from contam.corpus.documents import DocumentMeta
from contam.corpus.opening import map_readable_shards
from contam.corpus.shards import file_sha256
from contam.detect.chunk_scan import PartialResult, scan_chunks
from contam.detect.corpus import changed_shards, named_documents
from contam.detect.every_hit import PartHits
from contam.detect.parts.mapped import open_plan, write_plan
from contam.detect.parts.part_store import THREADS, Part, part_bytes, part_of
from contam.detect.parts.pieces import cut_pieces
from contam.errors import LET_NOBODY_WRITE, ContamError, ShardError
from contam.files.disk import output_errors
from contam.memory import tune_command

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection

    from contam.detect.corpus import Corpus, ScanProgress
    from contam.detect.parts.part_store import Division
    from contam.detect.parts.pieces import Piece
    from contam.detect.plan import Plan


_plan: Plan | None = None


def in_processes(
    plan: Plan, pieces: Sequence[Piece], workers: int
) -> Generator[tuple[int, bytes | str], None, None]:
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


class Work(NamedTuple):
    """What was done of the parts of a corpus.

    total     parts of the whole corpus
    done      numbers of the parts, from 1, that were computed;  kept  of those that were there
    not_whole those of the computed ones of which a shard was not read, which are not kept
    failures  these shards
    """

    total: int
    done: tuple[int, ...]
    kept: tuple[int, ...]
    not_whole: tuple[int, ...]
    failures: tuple[ShardFailure, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Searched:
    """A corpus that was searched.

    plan    the plan; where parts are missing, one that allows no shard to be missing
    whole   without the hits of a search that keeps every one: nobody could hold them
    missing whether some parts were not found
    sha256  of the shards that were searched for every hit, by their numbers
    hits    these hits, in the parts that are kept, else in memory
    """

    plan: Plan
    whole: PartialResult
    hits: PartHits
    missing: bool = False
    sha256: dict[int, str] = field(default_factory=dict)


def compute_share(
    plan: Plan,
    corpus: Corpus,
    division: Division,
    *,
    workers: int,
    progress: ScanProgress | None = None,
) -> Work:
    """Compute the parts of a share that are not kept yet. Raises OutputError."""
    pieces = cut_pieces(plan, corpus, division.size)
    index, count = division.share
    kept: list[int] = []
    done: list[int] = []
    not_whole: list[int] = []
    failures: list[ShardFailure] = []
    mine = range(index, len(pieces), count)
    for at, part, is_new in _parts(plan, pieces, mine, division, workers, progress):
        (done if is_new else kept).append(at + 1)
        if part.failures:
            not_whole.append(at + 1)
            failures += part.placed(pieces[at].shards, 0).failures
    return Work(
        total=len(pieces),
        done=tuple(sorted(done)),
        kept=tuple(sorted(kept)),
        not_whole=tuple(sorted(not_whole)),
        failures=tuple(sorted(failures, key=lambda failure: failure.shard)),
    )


def search_parts(
    plan: Plan,
    corpus: Corpus,
    division: Division,
    *,
    workers: int,
    progress: ScanProgress | None = None,
) -> Searched:
    """What is found in all parts of a corpus.

    The shards of a part that is not there, where nothing may be computed, were not read, nor were
    those that have changed since they were listed. Raises OutputError.
    """
    pieces = cut_pieces(plan, corpus, division.size)
    found = Searched(
        plan=plan,
        whole=PartialResult.start(plan, corpus),
        hits=PartHits(plan, division.store),
    )
    fresh: set[int] = set()
    left = dict(enumerate(pieces))
    for at, part, is_new in _parts(plan, pieces, range(len(pieces)), division, workers, progress):
        piece = left.pop(at)
        if is_new:
            fresh.update(piece.shards)
        _take(found, piece, part, corpus)
    for at, piece in left.items():
        reason = f"part {at + 1} of {len(pieces)} is not there"
        _take(found, piece, unread_part(piece, plan, reason), corpus)
    failed = {failure.shard for failure in found.whole.read.failures}
    if plan.parameters.every_hit:
        _note_without_text(found, corpus, failed)
    for failure in changed_shards(corpus, sorted(fresh), failed):
        found.whole.read.add_failure(failure)
    if not left:
        return found
    # A plan allows shards that cannot be read, not parts that nobody computed.
    parameters = replace(plan.parameters, allow_missing=False)
    return replace(found, plan=replace(plan, parameters=parameters), missing=True)


def _parts(
    plan: Plan,
    pieces: Sequence[Piece],
    wanted: Sequence[int],
    division: Division,
    workers: int,
    progress: ScanProgress | None,
) -> Iterator[tuple[int, Part, bool]]:
    """The parts of these pieces with their places in the list; whether each was computed now."""
    store = division.store
    waiting = list(wanted)
    if store is not None:
        if not division.only:
            store.begin()
        waiting = []
        for at in wanted:
            part = store.find(pieces[at])
            if part is None:
                waiting.append(at)
            else:
                yield at, part, False
        if progress is not None and len(waiting) < len(wanted):
            progress.note(f"parts there before: {len(wanted) - len(waiting):,}")
    if division.only:
        return
    todo = [pieces[at] for at in waiting]
    if progress is not None:
        progress.start(sum(piece.n_bytes for piece in todo))
    with closing(_computed(plan, todo, division, workers, progress)) as computed:
        for number, data in computed:
            piece = todo[number]
            part = part_of(data, piece.name)
            if store is not None and not part.failures:
                store.write(piece.name, data)
            yield waiting[number], part, True
    if progress is not None:
        progress.finish()


def _computed(
    plan: Plan,
    pieces: Sequence[Piece],
    division: Division,
    workers: int,
    progress: ScanProgress | None,
) -> Generator[tuple[int, bytes], None, None]:
    """The part of each piece as bytes, with its place in the list, as they are done."""
    if not pieces:
        return
    found: Generator[tuple[int, bytes | str], None, None]
    if division.cluster is not None:
        from contam.detect.parts.on_ray import on_ray  # which not everybody has

        found = on_ray(plan, pieces, division.cluster)
    elif division.processes and workers > THREADS and len(pieces) > 1:
        found = in_processes(plan, pieces, workers)
    else:
        for at, piece in enumerate(pieces):
            part = search_piece(plan, piece.name, piece.corpus, workers=workers, progress=progress)
            yield at, part_bytes(part)
        return
    with closing(found) as answers:
        for at, answer in answers:
            if isinstance(answer, str):
                answer = part_bytes(unread_part(pieces[at], plan, answer))  # noqa: PLW2901
            yield at, answer
            if progress is not None:
                progress.advance(pieces[at].n_bytes)


def _take(found: Searched, piece: Piece, part: Part, corpus: Corpus) -> None:
    """Add a part to what was found."""
    whole = found.whole
    if not part.failures:
        found.hits.add(piece, part)
    part = replace(
        part, collected=tuple(replace(each, hits=None) for each in part.collected)
    ).placed(piece.shards, piece.first)
    whole.take(part)
    whole.found.merge(part.documents)
    whole.found.shrink(whole.collections)
    for number, digest in part.sha256.items():
        if found.sha256.setdefault(number, digest) != digest:
            name = corpus.shards[number].name
            error = ShardError(
                "{shard}: was written to between two parts", shard=name,
                hint=LET_NOBODY_WRITE,
            )  # fmt: skip
            whole.read.add_failure(ShardFailure.of(number, name, error))


def _note_without_text(found: Searched, corpus: Corpus, failed: set[int]) -> None:
    """Note the digests of shards of which no part has a chunk.

    What comes to stand in them later was not searched.
    """
    known = {chunk.shard for chunk in corpus.chunks} | failed
    known.update(failure.shard for failure in corpus.coverage.failures)
    left = [number for number in range(len(corpus.shards)) if number not in known]
    found.sha256.update(_digests(corpus, left, found.whole))


def _digests(corpus: Corpus, numbers: Sequence[int], into: PartialResult) -> Mapping[int, str]:
    """The digests of the files of these shards; those that cannot be read were not read."""
    digests, failures = map_readable_shards(
        lambda _, shard: file_sha256(shard), corpus.shards, numbers
    )
    for failure in failures:
        into.read.add_failure(failure)
    return digests


_NOTHING_KNOWN: Final = [DocumentMeta("", None, None, None, None)]


def search_piece(
    plan: Plan, name: str, corpus: Corpus, *, workers: int, progress: ScanProgress | None = None
) -> Part:
    """Search the corpus of a piece, and describe the documents that were found.

    A shard that is not as it was listed was not read.
    """
    partial = scan_chunks(plan, corpus, workers=workers, progress=progress)
    documents = described(corpus, partial)
    sha256: Mapping[int, str] = {}
    if plan.parameters.every_hit:
        failed = {failure.shard for failure in partial.read.failures}
        read = [number for number in range(len(corpus.shards)) if number not in failed]
        sha256 = _digests(corpus, read, partial)
    failed = {failure.shard for failure in partial.read.failures}
    for failure in changed_shards(corpus, range(len(corpus.shards)), failed):
        partial.read.add_failure(failure)
    return Part(
        name=name,
        chunks=frozenset(partial.chunks),
        collected=tuple(collection.collected() for collection in partial.collections),
        read=dict(sorted(partial.read.read.items())),
        failures=partial.read.failed(),
        documents=documents,
        sha256=sha256,
        sources=partial.sources.held() if partial.sources is not None else None,
    )


def unread_part(piece: Piece, plan: Plan, reason: str) -> Part:
    """The part of a piece of which nothing was read."""
    shards = piece.corpus.shards
    nothing = PartialResult.start(plan, piece.corpus)
    return Part(
        name=piece.name,
        chunks=frozenset(range(len(piece.corpus.chunks))),
        collected=tuple(collection.collected() for collection in nothing.collections),
        read={},
        failures=tuple(
            ShardFailure.noted(number, shard.name, reason) for number, shard in enumerate(shards)
        ),
    )


def described(corpus: Corpus, partial: PartialResult) -> dict[tuple[int, int], DocumentMeta]:
    """What is known of the documents that may become evidence.

    A shard that has changed, or cannot be reached any more, is a failure even here.
    """
    corpus = replace(corpus, documents=partial.found.known)
    wanted: dict[int, list[int]] = {}
    for number, row in zip(
        *(part.tolist() for part in named_documents(partial.collections)), strict=True
    ):
        wanted.setdefault(number, []).append(row)
    told, failures = map_readable_shards(
        lambda number, _: corpus.metadata(number, wanted[number]), corpus.shards, [*wanted]
    )
    for failure in failures:
        partial.read.add_failure(failure)
    return {
        (number, row): meta
        for number, rows in wanted.items()
        for row, meta in zip(rows, told.get(number) or _NOTHING_KNOWN * len(rows), strict=True)
    }
