"""Index groups of shards apart, on any machines, for one build to take.

INDEX/parts/NAME/segments/              segments of a group
INDEX/parts/NAME/MANIFEST.json.states   times of its shards' files
INDEX/parts/NAME/group.json             what they are; written last

NAME is a digest of all that decides the segments: recipe, memory, version, the group's shards and
their places. A group that is not there, or not as it was written, is read by the build itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from contam.errors import IndexDamageError
from contam.files.disk import output_errors
from contam.files.single import read_file, write_file
from contam.index.array_files import sync
from contam.index.manifest import SEGMENTS
from contam.index.model import (
    FORMAT,
    Manifest,
    SegmentRecord,
    ShardRecord,
    digest_of,
    from_plain,
    spell,
)
from contam.index.segment import Segment
from contam.index.states import note_states, read_states
from contam.version import contam_version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PARTS: Final = "parts"

#: Bytes of the files of a group: with most codecs about three times as much text.
MOST_BYTES: Final = 8 << 30
LEAST_BYTES: Final = 256 << 20
#: Groups of a corpus between the two, so that 100 machines end at about the same time.
_WANTED: Final = 256
GROUP: Final = "group.json"
_NAME_DIGITS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """What the indexing of a group gave: its shards, and the segments that hold them."""

    shards: tuple[ShardRecord, ...]
    segments: tuple[SegmentRecord, ...]

    @property
    def failures(self) -> tuple[ShardRecord, ...]:
        """Shards that could not be read."""
        return tuple(shard for shard in self.shards if shard.failure)


def cut_groups(sizes: Sequence[int]) -> tuple[range, ...]:
    """Places of consecutive shards that no segment leaves: by their sizes alone."""
    size = min(MOST_BYTES, max(LEAST_BYTES, sum(sizes) // _WANTED))
    ends: list[int] = []
    held = 0
    for place, n_bytes in enumerate(sizes):
        if held and held + n_bytes > size:
            ends.append(place)
            held = 0
        held += n_bytes
    if sizes:
        ends.append(len(sizes))
    return tuple(range(first, end) for first, end in zip([0, *ends], ends, strict=False))


def groups_of(manifest: Manifest) -> tuple[range, ...]:
    """The groups of a manifest's shards."""
    return cut_groups([shard.size_bytes for shard in manifest.shards])


def with_groups(index: Path, manifest: Manifest, memory: int) -> Manifest:
    """The manifest with the groups that were indexed apart, of which every shard is pending.

    Their segments are linked, or copied to another file system; nothing is published.
    Raises OutputError.
    """
    pending = set(manifest.pending)
    for group in groups_of(manifest) if (index / PARTS).is_dir() else ():
        names = {manifest.shards[place].name for place in group}
        home = group_folder(index, manifest, group, memory)
        record = known_group(home, manifest) if names <= pending else None
        if record is None:
            continue
        for segment in record.segments:
            _take_segment(home / SEGMENTS / segment.id, index / SEGMENTS / segment.id)
        note_states(index, read_states(home))
        shards = list(manifest.shards)
        # Another machine may have the corpus elsewhere.
        for place, shard in zip(group, record.shards, strict=True):
            shards[place] = replace(shard, uri=shards[place].uri)
        manifest = replace(
            manifest,
            shards=tuple(shards),
            segments=(*manifest.segments, *record.segments),
            pending=tuple(name for name in manifest.pending if name not in names),
        )
    return manifest


def write_group(home: Path, record: GroupRecord) -> None:
    """Write what the segments in a group's folder are. Raises OutputError."""
    whole = {"sha256": digest_of(record), "body": record}
    write_file(home / GROUP, spell(whole), overwrite=True)


def group_folder(index: Path, manifest: Manifest, group: range, memory: int) -> Path:
    """Where the segments of a group are kept; the manifest has the records of its shards."""
    shards = manifest.shards[group.start : group.stop]
    decisive = [contam_version(), FORMAT, manifest.recipe, memory, group.start]
    decisive.append([replace(shard, uri="") for shard in shards])
    return index / PARTS / digest_of(decisive)[:_NAME_DIGITS]


def known_group(home: Path, manifest: Manifest) -> GroupRecord | None:
    """The record of a group whose segments can be opened; None where there is none.

    Large arrays are compared block by block, when they are read.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexDamageError):
        found = json.loads(read_file(home / GROUP))
        if found["sha256"] != digest_of(found["body"]):
            return None
        record = from_plain(GroupRecord, found["body"], "body")
        read_states(home)
        for segment in record.segments:
            Segment(home, segment, manifest.recipe).document_table()
        return record
    return None


def _take_segment(source: Path, target: Path) -> None:
    """Link the files of a segment into a folder, or copy them to another file system."""
    with output_errors(target):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for file in source.iterdir():
            try:
                os.link(file, target / file.name)
            except OSError:
                shutil.copyfile(file, target / file.name)
    sync(target)
    sync(target.parent)
