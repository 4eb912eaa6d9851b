"""Search only the shards that are new or changed, and take the answers of the others from before.

A folder holds the parts of pieces of shards, each made as if its shard were the whole corpus, so
that it fits every corpus that has the shard. The name of a part is a digest of all that decides
what is in it: the plan, the state of the shard, its columns and the chunks of the piece.
"""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from contam.corpus.coverage import Coverage
from contam.detect.leases.cut import LEAST_BYTES, Lease, cut_leases
from contam.detect.leases.part_file import part_bytes, part_of
from contam.detect.leases.plan_folder import OpenPlan, machine, versions
from contam.detect.leases.work import scan_lease
from contam.detect.match.workers import on_threads
from contam.detect.partial import Partial, question_of
from contam.errors import OutputError
from contam.files.publish import output_errors
from contam.files.single import read_file, write_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.corpus.chunks import Chunk
    from contam.detect.leases.part_file import Part
    from contam.detect.match.collect import Collected
    from contam.detect.match.hits import Hits
    from contam.detect.model import Matches
    from contam.detect.plan import Plan
    from contam.detect.scan import Corpus, ScanProgress

Table = TypeVar("Table", "Matches", "Hits")

#: Text of a piece of a large shard: what a run that is killed may have done for nothing.
PIECE_BYTES: Final = LEAST_BYTES
#: Parts quote the corpus's metadata.
_RIGHTS: Final = 0o700


@dataclass(frozen=True, slots=True)
class _Piece:
    """Consecutive chunks of one shard.

    opened  a plan of this piece alone, in which the shard has the number 0
    shard   the number of the shard in the corpus;  first  number there of the piece's first chunk
    """

    opened: OpenPlan
    shard: int
    first: int

    @property
    def lease(self) -> Lease:
        return self.opened.leases[0]

    @property
    def path(self) -> Path:
        return self.opened.folder / f"{self.opened.question}.part"

    def kept(self) -> Part | None:
        """The part that an earlier run has left; None where there is none that is whole."""
        try:
            part = part_of(read_file(self.path), self.path, self.opened.plan, self.opened.question)
        except (OSError, OutputError):
            return None
        whole = part.answer.chunks == set(range(self.lease.end)) and not part.answer.failures
        return part if whole and part.machine == machine() else None


class KeptParts:
    """The parts of one corpus and one plan at a time, kept from run to run in a folder.

    Nobody else may use the folder at the same time.

    n_searched, n_kept  shards that the last search read, and those whose answer was there
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.n_searched = self.n_kept = 0

    def search(
        self, plan: Plan, corpus: Corpus, *, workers: int, progress: ScanProgress | None = None
    ) -> Partial:
        """What `scan_chunks` finds in all chunks, reading only what it must.

        A part is written as soon as its piece is read, so that a run that is killed is gone on with
        by the next. Parts with a shard that could not be read are made again, and those that
        nothing asks for any more are removed. Raises OutputError.
        """
        with output_errors(self._folder):
            self._folder.mkdir(mode=_RIGHTS, parents=True, exist_ok=True)
        whole = Partial.start(plan, corpus)
        pieces = list(_pieces(plan, corpus, self._folder))
        waiting = []
        for piece in pieces:
            part = piece.kept()
            if part is None:
                waiting.append(piece)
            else:
                _take(whole, part, piece)
        fresh = {piece.shard for piece in waiting}
        self.n_searched, self.n_kept = len(fresh), len({piece.shard for piece in pieces} - fresh)
        if progress is not None:
            progress.note(
                f"shards: {self.n_searched:,} to search, {self.n_kept:,} kept from earlier runs"
            )
            progress.start(sum(piece.lease.n_bytes for piece in waiting))
        _search(whole, waiting, workers, progress)
        names = {piece.path.name for piece in pieces}
        with output_errors(self._folder):
            for path in self._folder.iterdir():
                if path.name not in names:
                    path.unlink()
        return whole


def _search(
    whole: Partial, waiting: Sequence[_Piece], workers: int, progress: ScanProgress | None
) -> None:
    """Search pieces at the same time, write their parts, and add them to a partial answer."""
    lock = threading.Lock()
    each = max(1, workers // max(1, len(waiting)))

    def work(pieces: Iterator[_Piece], stop: threading.Event) -> None:
        for piece in pieces:
            part = scan_lease(piece.opened, piece.lease, workers=each, progress=progress, stop=stop)
            write_file(piece.path, part_bytes(part), overwrite=True)
            with lock:
                _take(whole, part, piece)

    with closing(on_threads(work, waiting, workers)) as ended:
        for _ in ended:
            pass


def _pieces(plan: Plan, corpus: Corpus, folder: Path) -> Iterator[_Piece]:
    """The pieces of all shards, in order; where they end depends on their own shard alone."""
    of_nothing = replace(
        corpus, shards=(), digests=(), selections=[], chunks=[], coverage=Coverage.expect((), ())
    )
    asked = [question_of(plan, of_nothing), versions()]
    chunks: dict[int, list[Chunk]] = {}
    first: dict[int, int] = {}
    for number, chunk in enumerate(corpus.chunks):
        chunks.setdefault(chunk.shard, []).append(replace(chunk, shard=0))
        first.setdefault(chunk.shard, number)
    for shard, own in chunks.items():
        for lease in cut_leases(own, PIECE_BYTES):
            piece = own[lease.first : lease.end]
            alone = replace(
                corpus,
                shards=(corpus.shards[shard],),
                digests=(corpus.digests[shard],),
                selections=[corpus.selections[shard]],
                chunks=piece,
                coverage=Coverage.expect((corpus.shards[shard],), piece),
            )
            opened = OpenPlan(
                folder=folder,
                question=_question(asked, alone),
                leases=(Lease(1, 0, len(piece), lease.n_bytes),),
                plan=plan,
                corpus=alone,
                is_own=True,
            )
            yield _Piece(opened, shard, first[shard] + lease.first)


def _question(asked: list[Any], alone: Corpus) -> str:
    """Digest of what is asked of a piece, and of everything that is known of its shard.

    Another inode alone is no other file: see `contam.files.listed.difference`.
    """
    shard = alone.shards[0]
    state = shard.state and (*shard.state[:3], shard.state.version)
    known = [shard.uri, shard.name, state, alone.digests[0], repr(alone.selections[0])]
    return hashlib.sha256(json.dumps([asked, known, repr(alone.chunks)]).encode()).hexdigest()


def _take(whole: Partial, part: Part, piece: _Piece) -> None:
    """Add a part under the numbers that its shard and chunks have in the corpus."""
    number, answer = piece.shard, part.answer
    moved = replace(
        answer,
        chunks=frozenset(piece.first + chunk for chunk in answer.chunks),
        collected=tuple(_of_shard(collected, number) for collected in answer.collected),
        read={number + shard: counts for shard, counts in answer.read.items()},
        failures=tuple(replace(failure, shard=number) for failure in answer.failures),
    )
    whole.take(moved, moved.question)
    whole.found.merge({(number, row): meta for (_, row), meta in part.documents.items()})
    whole.found.shrink(whole.collections)


def _of_shard(collected: Collected, number: int) -> Collected:
    """What was found in the only shard of a corpus, for one in which it has this number."""
    return replace(
        collected,
        counts=tuple(replace(count, best=_moved(count.best, number)) for count in collected.counts),
        matches=_moved(collected.matches, number),
        hits=None if collected.hits is None else _moved(collected.hits, number),
    )


def _moved(table: Table, number: int) -> Table:
    # Rows of no document have the number -1.
    return replace(table, shard=np.where(table.shard < 0, table.shard, np.int32(number)))
