"""Search one piece of a corpus, in whatever process; its part is returned as bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contam.corpus.coverage import ShardFailure
from contam.corpus.documents import DocumentMeta
from contam.corpus.opening import map_readable_shards
from contam.corpus.shards import file_sha256
from contam.detect.chunk_scan import scan_chunks
from contam.detect.corpus import changed_shards
from contam.detect.partial import PartialResult
from contam.detect.parts.part_file import Part
from contam.detect.sources import named_documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.detect.corpus import Corpus, ScanProgress
    from contam.detect.parts.pieces import Piece
    from contam.detect.plan import Plan

_NOTHING_KNOWN: Final = [DocumentMeta("", None, None, None, None)]


def search_piece(
    plan: Plan, name: str, corpus: Corpus, *, workers: int, progress: ScanProgress | None = None
) -> Part:
    """Search the corpus of a piece, and describe the documents that were found.

    A shard that is not as it was listed was not read.
    """
    partial = scan_chunks(plan, corpus, workers=workers, progress=progress)
    documents = described(corpus, partial)
    failed = {failure.shard for failure in partial.read.failures}
    numbers = range(len(corpus.shards))
    sha256: Mapping[int, str] = {}
    if plan.parameters.every_hit:
        left = [number for number in numbers if number not in failed]
        sha256, unread = map_readable_shards(
            lambda _, shard: file_sha256(shard), corpus.shards, left
        )
        for failure in unread:
            partial.read.add_failure(failure)
        failed.update(failure.shard for failure in unread)
    for failure in changed_shards(corpus, numbers, failed):
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
