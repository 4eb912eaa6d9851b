"""Index one share of a corpus's groups, beside other machines that index the others."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contam.files.disk import output_errors
from contam.index.build import DEFAULT_MEMORY, Work, begun, read_pending
from contam.index.groups import (
    GROUP,
    GroupRecord,
    group_folder,
    groups_of,
    known_group,
    write_group,
)
from contam.index.manifest import SEGMENTS, writer_lock
from contam.index.states import STATES, note_states

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contam.index.build import PathLike
    from contam.index.model import Manifest, Recipe, ShardRecord
    from contam.index.states import States
    from contam.index.writing.intake import BuildProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one of several machines did.

    n_done, n_kept  groups it indexed, and those of its share that were there before
    n_groups        groups of all machines
    failures        shards of the share that could not be read
    """

    n_done: int
    n_kept: int
    n_groups: int
    failures: tuple[ShardRecord, ...]


def build_share(
    corpus: PathLike | Sequence[PathLike],
    index: PathLike,
    share: tuple[int, int],
    recipe: str | Recipe = "complete",
    *,
    workers: int | None = None,
    memory: int = DEFAULT_MEMORY,
    text: str | None = None,
    columns: Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
    lines: bool = False,
    overwrite: bool = False,
    progress: BuildProgress | None = None,
) -> Share:
    """Write the segments of every n-th group, which `build` with the same options takes.

    share  the number of the machine, from 0, and how many there are

    What is there is kept, except a group with a shard that could not be read. Raises as `build`.
    """
    work = Work(workers, memory, progress)
    folder, manifest = begun(
        *(corpus, index, recipe, work, share),
        text=text, columns=columns, exclude=exclude, lines=lines, overwrite=overwrite,
    )  # fmt: skip
    number, count = share
    groups = groups_of(manifest)
    failures: list[ShardRecord] = []
    n_kept = 0
    mine = groups[number::count]
    for group in mine:
        home = group_folder(folder, manifest, group, memory)
        with writer_lock(home):
            record = known_group(home, manifest)
            if record is not None and not record.failures:
                n_kept += 1
                continue
            record = _build_group(home, manifest, group, work)
        failures += record.failures
    return Share(
        n_done=len(mine) - n_kept,
        n_kept=n_kept,
        n_groups=len(groups),
        failures=tuple(failures),
    )


def _build_group(home: Path, manifest: Manifest, group: range, work: Work) -> GroupRecord:
    """Index a group afresh; the caller has its lock."""
    with output_errors(home):
        for name in (GROUP, STATES):
            (home / name).unlink(missing_ok=True)
        shutil.rmtree(home / SEGMENTS, ignore_errors=True)
    states: States = {}
    pending = tuple(manifest.shards[place].name for place in group)
    done = read_pending(
        home, replace(manifest, pending=pending), lambda _, fresh: states.update(fresh), work
    )
    note_states(home, states)
    record = GroupRecord(shards=done.shards[group.start : group.stop], segments=done.segments)
    write_group(home, record)
    return record
