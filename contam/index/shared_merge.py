"""Merge the groups of one index, built on many machines, into it."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.errors import IndexDamageError, OutputError, Public
from contam.files.addresses import NAME_LOCAL_FOLDER, Address, refuse_address
from contam.files.listed import FileState
from contam.files.publish import output_errors
from contam.files.uploads import fetch, place, store_errors
from contam.index.array_files import sync
from contam.index.build import check_free, refuse_inside
from contam.index.manifest import MANIFEST, SEGMENTS, publish_manifest, writer_lock
from contam.index.segment import Segment
from contam.index.shared_build import finished_group, group_folder, missing_group
from contam.index.states import note_states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.index.cut import Group
    from contam.index.model import Manifest, Recipe, SegmentRecord
    from contam.index.shared_build import GroupRecord, IndexPlan

    PathLike = str | Path

_REMOVE_ONE_GROUP: Final = "remove the folder of the group, and build the group again"


def merge_groups(
    plan: IndexPlan, folders: Sequence[PathLike], index: PathLike, *, overwrite: bool = False
) -> Manifest:
    """Make the index of all groups in the folder `index`, and publish it once.

    Segments are linked, or copied where that cannot be, and from a store.

    Raises OutputError for a group that is missing, damaged or of another plan, and when the index
    cannot be written or is there already; UsageError for an index inside the corpus.
    """
    refuse_address(index, "an index", NAME_LOCAL_FOLDER)
    target = Path(index)
    refuse_inside(target, plan.manifest.paths)
    check_free(target, overwrite=overwrite)
    found = [(_one_group(plan, [place(folder) for folder in folders], one)) for one in plan.groups]
    records = [record for _, record in found]
    segments = {
        segment.id: _check_segment(folder, segment, plan.manifest.recipe)
        for folder, record in found
        for segment in record.segments
    }
    manifest = replace(
        plan.manifest,
        shards=tuple(shard for record in records for shard in record.shards),
        segments=tuple(segment for record in records for segment in record.segments),
        pending=(),
    )
    with writer_lock(target):
        with output_errors(target):
            # First: an index that is replaced must not list segments that are gone.
            (target / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(target / SEGMENTS, ignore_errors=True)
            (target / SEGMENTS).mkdir(parents=True)
            for name, files in segments.items():
                _take_segment(files, target / SEGMENTS / name)
            sync(target / SEGMENTS)
        for folder, record in found:
            if isinstance(folder, Address):
                for segment in record.segments:
                    _open_segment(target, folder, segment, plan.manifest.recipe)
        note_states(
            target,
            {
                state.uri: (
                    state.sha256,
                    FileState(
                        state.size, state.modified_ns, state.changed_ns, state.device,
                        state.inode, state.version,
                    ),
                )
                for record in records
                for state in record.states
            },
        )  # fmt: skip
        publish_manifest(target, manifest)
    return manifest


def _one_group(plan: IndexPlan, folders: Sequence[Path], group: Group) -> tuple[Path, GroupRecord]:
    """The folder of a group and its record; of several equal ones the first."""
    found = [
        (group_folder(home, group.number), record)
        for home in folders
        if (record := finished_group(plan, home, group)) is not None
    ]
    if not found:
        raise missing_group(plan, group, folders)
    first, record = found[0]
    for other, its_record in found[1:]:
        # States differ from machine to machine.
        if replace(its_record, states=record.states) != record:
            raise OutputError(
                "{} and {} differ, and are of the same group", first, other,
                hint=_REMOVE_ONE_GROUP,
            )  # fmt: skip
    return first, record


def _check_segment(folder: Path, segment: SegmentRecord, recipe: Recipe) -> tuple[Path, ...]:
    """The files of a segment in the folder of a group; one in a store is opened when it is here.

    Raises OutputError for one that is gone or not as it was written. Of large arrays what an index
    compares when it is opened: each block is compared when it is read.
    """
    found = []
    for file in segment.files:
        path = folder / SEGMENTS / segment.id / file.name
        found += [path] if file.checks is None else [path, path.with_suffix(".crc")]
        try:
            sizes = [FileState.at(str(one)).size for one in found]
        except FileNotFoundError:
            sizes = []
        except OSError as error:
            raise OutputError(
                "{}: {}",
                path,
                Public(error.strerror),
                hint="check that the file is there and may be read",
            ) from error
        if not sizes or dict(zip(found, sizes, strict=True))[path] != file.n_bytes:
            raise _altered(path)
    if not isinstance(folder, Address):
        _open_segment(folder, folder, segment, recipe)
    return tuple(found)


def _open_segment(copy: Path, folder: Path, segment: SegmentRecord, recipe: Recipe) -> None:
    """Open a segment, which is below `copy` and came from `folder`, to see that it can be.

    Raises OutputError.
    """
    try:
        Segment.open(copy, segment, recipe).document_table()
    except IndexDamageError as error:
        raise _altered(folder / SEGMENTS / segment.id / Path(error.file).name) from error


def _altered(path: Path) -> OutputError:
    return OutputError("{}: is gone, or not as it was written", path, hint=_REMOVE_ONE_GROUP)


def _take_segment(files: Sequence[Path], folder: Path) -> None:
    """Link the files of a segment into a folder, or copy them to another file system."""
    folder.mkdir()
    for file in files:
        if isinstance(file, Address):
            with store_errors(file):
                fetch(file, folder / file.name)
            continue
        try:
            os.link(file, folder / file.name)
        except OSError:
            shutil.copyfile(file, folder / file.name)
    sync(folder)
