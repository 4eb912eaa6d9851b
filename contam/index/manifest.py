"""Publish and read the manifest, which lists the segments of an index.

    {"body":{...},"format":1,"sha256":"digest of the body"}

One line of JSON with sorted keys and no spaces, so that there is one spelling of every manifest: a
file that is not spelt that way was altered.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from contam.corpus.formats.registry import NAMED
from contam.errors import ConfigError, IndexBusyError, IndexMismatchError, UsageError
from contam.files.addresses import Address
from contam.files.disk import lock_file
from contam.files.single import read_file
from contam.index.array_files import damaged, reading, sync, write_synced, writing
from contam.index.model import (
    DOCUMENT_BITS,
    FORMAT,
    Manifest,
    PlainError,
    digest_of,
    from_plain,
    spell,
)
from contam.index.recipe import check_recipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from contam.index.model import FileRecord, RowSpan, SegmentRecord


MANIFEST: Final = "MANIFEST.json"
SEGMENTS: Final = "segments"
LOCK: Final = "lock"

_DRAFT: Final = ".draft"
_ID_DIGITS: Final = 16


def read_manifest(folder: Path) -> Manifest:
    """What the index in the folder consists of.

    Raises UsageError when there is no index, IndexMismatchError when it is of another format,
    IndexDamageError when the manifest is missing, altered or contradicts itself, and
    IndexUnreachableError when its store does not answer.
    """
    path = folder / MANIFEST
    with reading(path):
        try:
            raw = read_file(path)
        except FileNotFoundError as error:
            if not isinstance(folder, Address) and (folder / SEGMENTS).exists():
                raise
            raise UsageError(
                "{}: there is no index here", folder, hint="make one with `contam index build`"
            ) from error
    return parse_manifest(raw, path)


def parse_manifest(raw: bytes, path: Path) -> Manifest:
    """The manifest in these bytes; `path` is where they are from. Raises as above."""
    try:
        found = json.loads(raw)
    except ValueError as error:
        raise damaged(path, f"is no JSON: {error}") from error
    if not isinstance(found, dict) or type(found.get("format")) is not int:
        raise damaged(path, "does not say which format it has")
    if found["format"] != FORMAT:
        raise IndexMismatchError(
            "{}: is of format {}, this version of contam reads {}",
            path,
            found["format"],
            FORMAT,
            hint="use the version of contam that built the index, or build it again",
        )
    if found.get("sha256") != digest_of(found.get("body")):
        raise damaged(path, "its content is not what its digest says")
    try:
        manifest = from_plain(Manifest, found["body"], "body")
        check_manifest(manifest)
    except (PlainError, Inconsistent, ConfigError) as error:
        raise damaged(path, str(error)) from error
    # Every key and type has been looked at: only the spelling could still differ.
    if found.keys() != {"body", "format", "sha256"} or spell(found) + b"\n" != raw:
        raise damaged(path, "the manifest is not in canonical form")
    return manifest


def publish_manifest(folder: Path, manifest: Manifest) -> None:
    """Let the index consist of this from now on; after a crash it is the old or the new one.

    The files it speaks of must be on disk already. Raises OutputError when it cannot be written,
    ValueError when the manifest contradicts itself.
    """
    check_manifest(manifest)
    path = folder / MANIFEST
    draft = folder / f"{MANIFEST}{_DRAFT}"
    sync(folder)
    with writing(path):
        body = {"body": manifest, "format": FORMAT, "sha256": digest_of(manifest)}
        write_synced(draft, spell(body), b"\n")
        draft.replace(path)
    sync(folder)


def index_id(manifest: Manifest) -> str:
    """What an answer calls the index in this very state: 16 hexadecimal digits."""
    return digest_of(manifest)[:_ID_DIGITS]


def content_id(manifest: Manifest) -> str:
    """The same, wherever the corpus was when it was indexed: 16 hexadecimal digits."""
    shards = tuple(replace(record, uri="") for record in manifest.shards)
    return index_id(replace(manifest, paths=(), shards=shards))


@contextlib.contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Keep other writers out while the block runs; the system lifts the lock if we are killed.

    Makes the folder when it is not there, and removes what it made where the block fails before
    anything else is in it. Raises IndexBusyError when another process or thread has the lock,
    OutputError when the folder cannot be written.
    """
    path = folder / LOCK
    with writing(path):
        made = [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        handle = lock_file(path)
    if handle is None:
        raise IndexBusyError(
            "{}: another process is changing this index",
            folder,
            hint="wait for it to end; readers are not held up",
        )
    try:
        yield
    except BaseException:
        _remove_empty(folder, made)
        raise
    finally:
        os.close(handle)


def _remove_empty(folder: Path, made: Sequence[Path]) -> None:
    """Remove a folder that holds nothing but our lock, and the folders made for it.

    made  innermost first
    """
    with contextlib.suppress(OSError):
        if [path.name for path in folder.iterdir()] == [LOCK]:
            (folder / LOCK).unlink()
            for one in made:
                one.rmdir()


_FILE: Final = re.compile(r"[a-z][a-z0-9_-]*\.(npy|parquet)")
_SEGMENT: Final = re.compile(r"[0-9a-f]{8,64}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
#: What every index of this format counts of a shard. Later versions of contam may count more.
_COUNTS: Final = frozenset(
    {"units", "rows", "n_bytes", "n_null", "n_empty", "n_undecodable", "undecodable_bytes"}
)


class Inconsistent(ValueError):  # noqa: N818 - it states a fact about a manifest
    """A manifest contradicts itself; the message names the place."""


def check_manifest(manifest: Manifest) -> None:
    """Raise Inconsistent when two parts cannot both be true, ConfigError for a wrong recipe.

    Names of shards that count are unique, no row is indexed twice, and the rows of every shard
    that is neither pending, failed nor retired are all in a segment.
    """
    check_recipe(manifest.recipe)
    for fault in _faults(manifest):
        raise Inconsistent(fault)


def _faults(manifest: Manifest) -> Iterator[str]:
    if not manifest.recipe.key_bits:
        yield "its recipe does not say how many bits of a gram are kept"
    for shard in manifest.shards:
        unread = shard.name in manifest.pending and not shard.counts
        if not (unread or shard.counts.keys() >= _COUNTS):
            yield f"shard {shard.name}: counts lack some of {', '.join(sorted(_COUNTS))}"
        if min(shard.size_bytes, 0, *shard.counts.values()) < 0:
            yield f"shard {shard.name}: a count is negative"
        if shard.format not in NAMED:
            yield f"shard {shard.name}: unknown format {shard.format!r}"
    for name in _twice(shard.name for shard in manifest.shards if not shard.retired):
        yield f"shard {name} is listed twice"
    for name in _twice(manifest.pending):
        yield f"shard {name} is pending twice"
    for name in _twice(segment.id for segment in manifest.segments):
        yield f"segment {name} is listed twice"
    for segment in manifest.segments:
        yield from _segment_faults(segment, len(manifest.shards))
    yield from _row_faults(manifest)
    if manifest.retired is not None:
        yield from _file_faults(manifest.retired, "the retired documents")


def _segment_faults(segment: SegmentRecord, n_shards: int) -> Iterator[str]:
    where = f"segment {segment.id}"
    if not _SEGMENT.fullmatch(segment.id):
        yield f"{where}: is no name for a segment"
    if min(segment.n_documents, segment.n_tokens, segment.n_entries, segment.n_bytes) < 0:
        yield f"{where}: a count is negative"
    if segment.n_documents > 1 << DOCUMENT_BITS:
        yield f"{where}: has more documents than can be numbered"
    for span in segment.spans:
        if not (0 <= span.shard < n_shards and span.first_row >= 0 and span.n_rows > 0):
            yield f"{where}: has rows of a shard that is not there"
    if sum(span.n_rows for span in segment.spans) != segment.n_documents:
        yield f"{where}: its rows are not as many as its documents"
    for name in _twice(file.name for file in segment.files):
        yield f"{where}: file {name} is listed twice"
    for file in segment.files:
        yield from _file_faults(file, where)


def _file_faults(file: FileRecord, where: str) -> Iterator[str]:
    if not _FILE.fullmatch(file.name):
        # A name is joined to a folder: it must not lead out of it.
        yield f"{where}: {file.name!r} is no name for a file"
    if file.n_bytes < 0 or not (_SHA256.fullmatch(file.sha256) and _SHA256.fullmatch(file.checks)):
        yield f"{where}: the record of {file.name} is wrong"


def _row_faults(manifest: Manifest) -> Iterator[str]:
    spans: dict[int, list[RowSpan]] = {}
    for segment in manifest.segments:
        for span in segment.spans:
            spans.setdefault(span.shard, []).append(span)
    for number, shard in enumerate(manifest.shards):
        held = sorted(spans.get(number, []), key=lambda span: span.first_row)
        for span, following in pairwise(held):
            if span.first_row + span.n_rows > following.first_row:
                yield f"shard {shard.name}: row {following.first_row} is indexed twice"
        if shard.failure is not None and held:
            yield f"shard {shard.name}: could not be indexed, and yet is"
        whole = shard.failure is None and not shard.retired and shard.name not in manifest.pending
        if whole and sum(span.n_rows for span in held) != shard.n_rows:
            yield f"shard {shard.name}: not all of its rows are indexed"


def _twice(names: Iterable[str]) -> Iterator[str]:
    return (name for name, count in Counter(names).items() if count > 1)
