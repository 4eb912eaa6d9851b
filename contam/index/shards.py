"""Locate the shards an index was made of, and check that they are unchanged."""

from __future__ import annotations

import glob
import itertools
import os
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from contam.corpus.listing import file_at, list_files
from contam.corpus.shards import Shard, file_sha256, is_excluded, seen, shard_digest, survey
from contam.errors import ContamError, ShardError
from contam.files.addresses import is_address
from contam.files.natural_order import natural_key
from contam.index.writing.intake import shard_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contam.index.model import Manifest, ShardRecord


def check_shards(
    manifest: Manifest, moved: Mapping[str, Shard]
) -> Iterator[tuple[int, Shard | str]]:
    """Tell for each shard that counts and was indexed whether every byte of it is as it was.

    moved  present paths of shards, by their digests
    Yields its place in the manifest, and the shard in its present state or what is wrong with it.
    """
    for place, record in enumerate(manifest.shards):
        if record.retired or record.failure is not None or record.name in manifest.pending:
            continue
        yield place, _compared(placed(record, moved), record)


def placed(record: ShardRecord, moved: Mapping[str, Shard]) -> Shard:
    """The shard of a record, at its present path."""
    shard = shard_of(record)
    there = moved.get(record.digest)
    return shard if there is None else replace(shard, uri=there.uri)


def by_digest(paths: Sequence[str | Path]) -> dict[str, Shard]:
    """The shards below some paths by their digests. Raises CorpusError when there is none."""
    found: dict[str, Shard] = {}
    for shard in survey(paths)[0]:
        try:
            found.setdefault(shard_digest(shard), shard)
        except ShardError:
            continue
    return found


def not_indexed(manifests: Sequence[Manifest], moved: Mapping[str, Shard]) -> tuple[str, ...]:
    """Names of files in the corpora of some indexes that none of them has, in order.

    moved  present paths of shards, by their digests; empty: where they were
    What was retired, or could not be read, is in an index all the same, and what an index excludes
    is left out on purpose.
    """
    records = [record for manifest in manifests for record in manifest.shards]
    known = {record.uri for record in records}
    digests = {record.digest for record in records}
    patterns = [pattern for manifest in manifests for pattern in manifest.exclude]
    found = {
        shard.name
        for digest, shard in moved.items()
        if digest not in digests and not is_excluded(shard.name, patterns)
    }
    places: dict[str, set[str]] = {}
    for manifest in () if moved else manifests:
        for place in _places(manifest):
            places.setdefault(place, set()).update(manifest.exclude)
    for place, own in sorted(places.items()):
        try:
            listed, _ = list_files([place])
        except ContamError:
            continue  # gone: its shards are reported as missing
        new = [file for file in listed if str(file.path) not in known]
        # Where a corpus has links, the index may have a file by another of its names.
        same = {file_at(Path(uri)) for uri in known if new and not is_address(uri)}
        found |= {
            file.name
            for file in new
            if file_at(file.path) not in same and not is_excluded(file.name, [*own])
        }
    return tuple(sorted(found, key=natural_key))


def _places(manifest: Manifest) -> Iterator[str]:
    """The folders and globs that the user named as corpus.

    They are as somebody typed them, perhaps in another folder than this: a relative one is looked
    for above the shards.
    """
    above = {folder for record in manifest.shards for folder in PurePath(record.uri).parents}
    roots = {
        PurePath(record.uri.removesuffix(record.name))
        for record in manifest.shards
        if record.uri.endswith(record.name)
    }
    for text in manifest.paths:
        if is_address(text):
            yield text
            continue
        given = PurePath(os.path.normpath(Path(text).expanduser()))
        if given.is_absolute():
            yield str(given)
            continue
        parts = tuple(part for part in given.parts if part != "..")
        fixed = tuple(itertools.takewhile(lambda part: not glob.has_magic(part), parts))
        rest = parts[len(fixed) :]
        for folder in above if fixed else roots:
            if not fixed or folder.parts[-len(fixed) :] == fixed:
                yield str(folder.joinpath(*rest))


def _compared(shard: Shard, record: ShardRecord) -> Shard | str:
    try:
        now, digest = seen(shard)
        if digest != record.digest:
            return f"{record.name}: its content has changed since it was indexed"
        if file_sha256(now) != record.sha256:
            return f"{record.name}: its content has changed since it was indexed, in the middle"
    except ShardError as error:
        return error.message
    return now
