"""Open every shard of a corpus once: for its digest, its columns and its chunks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contam.corpus.chunks import cut_shard
from contam.corpus.columns import select_columns
from contam.corpus.coverage import ShardFailure
from contam.corpus.each import of_each
from contam.corpus.shards import shard_digest, unchanged
from contam.errors import AccessError, CorpusError, ShardError
from contam.files.listed import may_pass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.corpus.chunks import Chunk
    from contam.corpus.columns import Selection
    from contam.corpus.shards import Shard


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
    return collected(of_each(lambda number, shard: open_shard(number, shard, text, named), shards))


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
            found = _look(OpenedShard(one), number, one, text, named)
    except ShardError as error:
        # It changed meanwhile: nothing of this is of one state of it.
        return OpenedShard(found.shard, refused=found.refused or error)
    return found


def _look(
    found: OpenedShard,
    number: int,
    shard: Shard,
    text: str | None,
    named: Mapping[str, str] | None,
) -> OpenedShard:
    """What the open shard tells, as far as it can be read."""
    try:
        found = replace(found, digest=shard_digest(shard))
    except ShardError as error:
        found = replace(found, refused=error)
        if may_pass(error):
            return found  # its store would be waited for once more
    try:
        selection = select_columns(shard, text, named)
        found = replace(found, selection=selection)
        chunks = cut_shard(number, shard, selection)
    except AccessError:
        raise
    except (CorpusError, ShardError) as error:
        # Why a shard has no columns says more than that it could not be read.
        return replace(found, refused=error)
    return replace(found, chunks=chunks)
