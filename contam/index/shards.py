"""The shards that an index was made of: are they still there, and still the same?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.corpus.shards import file_sha256, shard_digest
from contam.errors import ShardError
from contam.index.intake import shard_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.index.model import Manifest, ShardRecord


def check_shards(manifest: Manifest, *, whole: bool) -> Iterator[tuple[int, str | None]]:
    """Tell for each shard that counts and was indexed whether it is as it was.

    whole  compare all its bytes, else its size, beginning and end
    Yields its place in the manifest and what is wrong, None when nothing is.
    """
    for place, record in enumerate(manifest.shards):
        if record.retired or record.failure is not None or record.name in manifest.pending:
            continue
        yield place, _difference(record, whole=whole)


def _difference(record: ShardRecord, *, whole: bool) -> str | None:
    shard = shard_of(record)
    try:
        if shard_digest(shard) != record.digest:
            return f"{record.name}: its content has changed since it was indexed"
        if whole and file_sha256(shard) != record.sha256:
            return f"{record.name}: its content has changed since it was indexed, in the middle"
    except ShardError as error:
        return error.message
    return None
