"""Rebuild an index of an older normaliser from its shards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.corpus.coverage import ShardCoverage
from contam.corpus.shards import shard_digest, survey
from contam.errors import IndexMismatchError, OutputError, Public, Remedy, ShardError
from contam.index.build import DEFAULT_MEMORY, check_free, check_limits, index_pending
from contam.index.manifest import MANIFEST, read_manifest, writer_lock
from contam.index.recipe import current_normaliser
from contam.index.retired import read_retired, write_retired
from contam.index.shards import check_shards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.index.model import Manifest, ShardRecord
    from contam.index.writing.intake import BuildProgress

_NAMED: Final = 5


def upgrade(
    old: str | Path,
    out: str | Path,
    *,
    corpus: Sequence[str | Path] = (),
    workers: int | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: BuildProgress | None = None,
) -> Manifest:
    """Build in `out` what the index `old` holds, with the normaliser of this version.

    corpus  present paths of shards that were moved; they are known by name and content

    Recipe, shards, columns and what is retired stay as they are, and `old` is only read. A call
    that was stopped goes on when it is repeated. Raises IndexMismatchError when a shard is gone or
    is not what it was, OutputError when `out` holds something else, and what `build` raises.
    """
    folder, source = Path(out), Path(old)
    check_limits(workers, memory)
    check_free(folder, overwrite=False)
    before = read_manifest(source)
    if before.pending:
        raise IndexMismatchError(
            "{} is unfinished: {} shards are not in it", source, len(before.pending),
            remedy=Remedy.BUILD_INDEX_OF_CORPUS,
        )  # fmt: skip
    recipe = replace(before.recipe, normaliser=current_normaliser(before.recipe.unit))
    if recipe == before.recipe:
        raise IndexMismatchError(
            "{} is of the normaliser {} already", source, Public(recipe.normaliser),
            remedy=Remedy.USE_AS_IT_IS,
        )  # fmt: skip
    moved = _moved(corpus)
    shards = tuple(
        replace(shard, uri=moved.get((shard.name, shard.digest), shard.uri))
        for shard in before.shards
    )
    _check_unchanged(replace(before, shards=shards))
    retired = read_retired(source, before.retired).pairs
    with writer_lock(folder):
        fresh = replace(
            before,
            recipe=recipe,
            shards=tuple(map(_unread, shards)),
            segments=(),
            pending=tuple(shard.name for shard in shards if not shard.retired),
            retired=write_retired(folder, retired),
        )
        if (folder / MANIFEST).exists():
            fresh = _going_on(folder, fresh)
        return index_pending(folder, fresh, workers=workers, memory=memory, progress=progress)


def _moved(corpus: Sequence[str | Path]) -> dict[tuple[str, str], str]:
    """Paths of the shards in the given corpus, by their names and digests."""
    found = {}
    for shard in survey(list(corpus))[0] if corpus else ():
        try:
            found[shard.name, shard_digest(shard)] = shard.uri
        except ShardError:
            continue
    return found


def _check_unchanged(manifest: Manifest) -> None:
    wrong = [found for _, found in check_shards(manifest, whole=True) if isinstance(found, str)]
    if wrong:
        more = f", and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        raise IndexMismatchError(
            "shards are not as they were indexed: {}{}", "; ".join(wrong[:_NAMED]), Public(more),
            remedy=Remedy.NAME_SHARDS_OR_BUILD_INDEX,
        )  # fmt: skip


def _unread(record: ShardRecord) -> ShardRecord:
    """The record of a shard that is to be read; one that is retired is not."""
    if record.retired:
        return record
    return replace(record, sha256="", counts=ShardCoverage().to_dict(), failure=None)


def _going_on(folder: Path, fresh: Manifest) -> Manifest:
    """What an upgrade that was stopped has published, ready to go on."""
    there = read_manifest(folder)
    same = (
        there.recipe,
        [(shard.name, shard.digest) for shard in there.shards],
        there.retired,
    ) == (
        fresh.recipe,
        [(shard.name, shard.digest) for shard in fresh.shards],
        fresh.retired,
    )
    if not same:
        raise OutputError("{} holds another index", folder, remedy=Remedy.CHOOSE_EMPTY_FOLDER)
    return there
