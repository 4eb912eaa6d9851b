"""Locate the shards an index was made of, check that they are unchanged, and describe an index."""

from __future__ import annotations

import glob
import itertools
import os
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from contam.corpus.dates import span_of
from contam.corpus.listing import file_at, list_files
from contam.corpus.shards import Shard, file_sha256, is_excluded, seen, shard_digest, survey
from contam.errors import ContamError, ShardError
from contam.files.addresses import is_address
from contam.files.natural_order import natural_key
from contam.index.writing.intake import shard_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contam.corpus.dates import Span
    from contam.index.model import Manifest, ShardRecord
    from contam.index.open import Index


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


#: Of these the first characters are the day, and there are few days: millions of times are not
#: parsed one by one.
_WITH_DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]"
_DAY_LENGTH: Final = 10


def describe(index: Index) -> dict[str, Any]:
    """Recipe, guarantee, coverage, sizes, capped grams and dates of an index, as plain values.

    n_text_bytes   raw text of the segments, as UTF-8; n_index_bytes  all their files
    not_indexed    names of files in the corpus that the index does not have
    capped_grams   grams of too many documents, of which some segment keeps only some
    dates          first and last day of all dates that can be read, as ISO 8601; None without one
    n_unreadable_dates  documents with a date that cannot be read
    Raises IndexDamageError.
    """
    segments = [segment.record for segment in index.segments]
    dates, n_unreadable = _dates_of(index)
    sizes: dict[str, int] = {}
    for record in segments:
        for file in record.files:
            sizes[file.name] = sizes.get(file.name, 0) + file.n_bytes
    capped = {key for segment in index.segments for key in segment.grams.capped_keys().tolist()}
    return {
        "index": str(index.folder),
        "index_id": index.id,
        "recipe": asdict(index.recipe),
        "guarantee_tokens": index.guarantee,
        "corpus": list(index.manifest.paths),
        "coverage": index.coverage().to_dict(),
        "pending": list(index.manifest.pending),
        "not_indexed": list(not_indexed([index.manifest], {})),
        "retired_shards": sum(shard.retired for shard in index.manifest.shards),
        "retired_documents": len(index.retired),
        "n_segments": len(segments),
        "n_documents": sum(record.n_documents for record in segments),
        "n_tokens": sum(record.n_tokens for record in segments),
        "n_text_bytes": sum(record.n_bytes for record in segments),
        "n_index_bytes": sum(sizes.values()),
        "bytes_by_file": dict(sorted(sizes.items())),
        "capped_grams": len(capped),
        "dates": dates,
        "n_unreadable_dates": n_unreadable,
    }


def _dates_of(index: Index) -> tuple[list[str] | None, int]:
    """First and last day that a document's date may mean, and how many dates cannot be read."""
    spans: set[Span] = set()
    n_unreadable = 0
    for segment in index.segments:
        counts = segment.document_table().counts_of("date", _WITH_DAY, _DAY_LENGTH)
        for text, n_documents in counts.items():
            span = span_of(text)
            if span is not None:
                spans.add(span)
            elif text.strip():
                n_unreadable += n_documents
    if not spans:
        return None, n_unreadable
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    return [first.isoformat(), last.isoformat()], n_unreadable
