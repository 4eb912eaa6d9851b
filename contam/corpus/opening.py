"""Open every shard of a corpus once: for its digest, its columns and its chunks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from contam.corpus.columns import select_columns
from contam.corpus.coverage import ShardFailure
from contam.corpus.shards import errors_named, shard_digest, unchanged
from contam.corpus.tokens import following_of
from contam.errors import AccessError, CorpusError, ShardError
from contam.files.addresses import is_address
from contam.files.listed import may_pass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contam.corpus.columns import Selection
    from contam.corpus.formats.base import Chunk
    from contam.corpus.shards import Shard


CHUNK_BYTES = 32 << 20
"""Small neighbouring row groups are merged up to this size (bytes of text, uncompressed); JSONL and
Arrow files without compression of the whole file are cut into pieces of about this size."""


def cut_shard(number: int, shard: Shard, selection: Selection | None) -> tuple[Chunk, ...]:
    """Cut the shard with this number into chunks, in row order. Raises ShardError."""
    if selection is None or selection.text is None:
        return ()
    with errors_named(shard):
        found = shard.kind.chunks(shard.path, selection.text, shard.size_bytes, CHUNK_BYTES)
        return tuple(replace(chunk, shard=number) for chunk in found)


Found = TypeVar("Found")

#: Requests to an object store that wait at a time; files of a disk need fewer.
_MOST_THREADS: Final = 32
#: Fewer files are not worth a thread; an object is, since its store answers late.
_FILES_A_THREAD: Final = 16


def map_shards(
    work: Callable[[int, Shard], Found],
    shards: Sequence[Shard],
    numbers: Sequence[int] | None = None,
) -> list[Found]:
    """What `work` gives for the number of each shard and the shard, in their order.

    numbers  those of the shards to work on, in the order wanted; None takes all

    Called from several threads where there are many shards. Raises what `work` raises for the first
    shard for which it does.
    """
    numbers = range(len(shards)) if numbers is None else numbers
    chosen = [shards[number] for number in numbers]
    per_thread = 1 if any(is_address(shard.uri) for shard in chosen) else _FILES_A_THREAD
    n_threads = min(_MOST_THREADS, len(chosen) // per_thread)
    if n_threads <= 1:
        return [work(number, shard) for number, shard in zip(numbers, chosen, strict=True)]
    with ThreadPoolExecutor(n_threads, thread_name_prefix="contam-list") as pool:
        try:
            return list(pool.map(work, numbers, chosen))
        finally:
            pool.shutdown(cancel_futures=True)


def map_readable_shards(
    work: Callable[[int, Shard], Found], shards: Sequence[Shard], numbers: Sequence[int]
) -> tuple[dict[int, Found], list[ShardFailure]]:
    """What `map_shards` gives, by number, and the shards for which `work` raises ShardError."""

    def tried(number: int, shard: Shard) -> Found | ShardFailure:
        try:
            return work(number, shard)
        except ShardError as error:
            return ShardFailure.of(number, shard.name, error)

    found, failures = {}, []
    for number, one in zip(numbers, map_shards(tried, shards, numbers), strict=True):
        if isinstance(one, ShardFailure):
            failures.append(one)
        else:
            found[number] = one
    return found, failures


@dataclass(frozen=True, slots=True)
class OpenedShard:
    """What one opening of a shard told.

    shard      in the state it was opened in, where it had none before
    digest     `contam.corpus.shards.shard_digest`, None where its bytes cannot be read
    selection  the columns to read, None where none was found
    chunks     all of its text; none where it cannot be read
    refused    why it cannot be read, None where it can
    """

    shard: Shard
    digest: str | None = None
    selection: Selection | None = None
    chunks: tuple[Chunk, ...] = ()
    refused: CorpusError | ShardError | None = None


@dataclass(frozen=True, slots=True)
class OpenedShards:
    """What opening some shards told, each at its place in their list.

    chunks    of all shards, in their order
    failures  shards that cannot be read
    """

    shards: tuple[Shard, ...]
    digests: tuple[str | None, ...]
    selections: list[Selection | None]
    chunks: list[Chunk]
    failures: list[ShardFailure]


def open_shards(
    shards: Sequence[Shard], text: str | None = None, named: Mapping[str, str] | None = None
) -> OpenedShards:
    """Open all shards, many at a time; those without columns are failures, not silence.

    text, named  as `contam.corpus.columns.select_columns` takes them

    Raises CorpusError when the text column, or one of the named ones, is in none of the readable
    shards.
    """
    return collected(
        map_shards(
            lambda number, shard: open_shard(
                number, shard, text, following_of(shards, number, named or {})
            ),
            shards,
        )
    )


def collected(found: Sequence[OpenedShard]) -> OpenedShards:
    """What the openings of shards told, in their order. Raises CorpusError as `open_shards`."""
    refused = [one.refused for one in found if isinstance(one.refused, CorpusError)]
    if refused and not any(one.selection for one in found):
        raise refused[0]
    return OpenedShards(
        shards=tuple(one.shard for one in found),
        digests=tuple(one.digest for one in found),
        selections=[one.selection for one in found],
        chunks=[chunk for one in found for chunk in one.chunks],
        failures=[
            ShardFailure.of(number, one.shard.name, one.refused)
            for number, one in enumerate(found)
            if one.refused is not None
        ],
    )


def open_shard(
    number: int, shard: Shard, text: str | None, named: Mapping[str, str] | None
) -> OpenedShard:
    """Open one shard, whose place in the list is `number`; the rest is as for `open_shards`."""
    found = OpenedShard(shard)
    try:
        with unchanged(shard) as one:
            found = OpenedShard(one)
            try:
                found = replace(found, digest=shard_digest(one))
            except ShardError as error:
                found = replace(found, refused=error)
                if may_pass(error):
                    return found  # its store would be waited for once more
            try:
                found = replace(found, selection=select_columns(one, text, named))
                found = replace(found, chunks=cut_shard(number, one, found.selection))
            except AccessError:
                raise
            except (CorpusError, ShardError) as error:
                # Why a shard has no columns says more than that it could not be read.
                found = replace(found, refused=error)
    except ShardError as error:
        # It changed meanwhile: nothing of this is of one state of it.
        return OpenedShard(found.shard, refused=found.refused or error)
    return found
