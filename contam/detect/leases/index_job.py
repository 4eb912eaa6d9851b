"""The groups of an index as tasks for a cluster, and a whole index made by one.

A group is some gigabytes of segments. The process that made them keeps them in a temporary folder
of its node until they have been fetched, piece by piece, so that nodes need share no folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.detect.leases.jobs import Outcome
from contam.files.addresses import NAME_LOCAL_FOLDER, refuse_address
from contam.index.build import check_free, refuse_inside
from contam.index.shared_build import (
    PLAN_FILE,
    build_groups,
    failures_of,
    files_of_group,
    give_up_group,
    group_by_number,
    open_index_plan,
    plan_index,
    read_group,
    receive_group,
)
from contam.index.shared_merge import merge_groups
from contam.index.warm import build_a_little
from contam.index.writing.intake import Tools
from contam.kernels.warm_up import compile_once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contam.detect.scan import ScanProgress
    from contam.index.model import Manifest, Recipe, ShardRecord
    from contam.index.shared_build import GroupRecord, IndexPlan

_PIECE_BYTES: Final = 32 << 20
_PREFIX: Final = "contam-groups-"


class GroupWorker:
    """Indexes groups of a plan."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._plan = open_index_plan(folder)
        # A tokenizer file that this node does not have is no fault of a group.
        Tools.of(self._plan.manifest.recipe)
        self._threads = threads
        self._home, self._lock = _own_folder()
        compile_once("build", build_a_little, None)

    def do(self, number: int) -> Outcome:
        """Index a group; its files are there until the next."""
        for old in self._home.iterdir():
            shutil.rmtree(old)
        group = group_by_number(self._plan, number)
        build_groups(self._plan, [group], self._home, workers=self._threads)
        record = read_group(self._plan, self._home, group)
        failed = {shard.name for shard in failures_of(self._plan, record)}
        return Outcome(
            files=files_of_group(self._home, group),
            failures=tuple(
                (place, shard.name, shard.failure or "")
                for place, shard in enumerate(record.shards, group.first)
                if shard.name in failed
            ),
        )

    def piece(self, name: str, begin: int) -> bytes:
        """Bytes of a file of the group, from a position on. Raises OSError."""
        (home,) = self._home.iterdir()
        with (home / name).open("rb") as file:
            file.seek(begin)
            return file.read(_PIECE_BYTES)


class IndexJob:
    """The groups of a plan of an index, which go into a folder."""

    noun = "group"
    worker = GroupWorker

    def __init__(self, plan: IndexPlan, parts: Path) -> None:
        self._plan = plan
        self._parts = parts
        self._failures: dict[int, list[ShardRecord]] = {}

    @property
    def failures(self) -> tuple[ShardRecord, ...]:
        """Shards that could not be read."""
        return tuple(shard for _, some in sorted(self._failures.items()) for shard in some)

    @property
    def not_whole(self) -> tuple[int, ...]:
        """Groups of which a shard could not be read."""
        return tuple(number for number, some in sorted(self._failures.items()) if some)

    def files(self) -> Mapping[str, bytes]:
        """The plan."""
        return {PLAN_FILE: self._plan.to_bytes()}

    def finish(self, number: int, outcome: Outcome, fetch: Callable[[str, int], bytes]) -> None:
        """Fetch the files of a group."""
        group = group_by_number(self._plan, number)
        self._note(receive_group(self._plan, self._parts, group, outcome.files, fetch))

    def give_up(self, number: int, reason: str) -> None:
        """Write a record in which nothing was read."""
        group = group_by_number(self._plan, number)
        self._note(give_up_group(self._plan, self._parts, group, reason))

    def _note(self, record: GroupRecord) -> None:
        self._failures[record.number] = failures_of(self._plan, record)


def build_index_on_ray(
    corpus: Sequence[str | Path],
    index: Path,
    recipe: Recipe,
    *,
    memory: int,
    text: str | None = None,
    columns: Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
    overwrite: bool = False,
    address: str = "auto",
    workers: int | None = None,
    progress: ScanProgress | None = None,
) -> Manifest:
    """Index a corpus on a Ray cluster: the bytes of `contam.index.build.build`.

    What is done is kept in a hidden folder beside the index, and the same call goes on from there.

    Raises as `plan_index`, `contam.detect.leases.on_ray.build_on_ray` and `merge_groups`.
    """
    from contam.detect.leases.on_ray import build_on_ray  # which not everybody has

    refuse_address(index, "an index", NAME_LOCAL_FOLDER)
    refuse_inside(index, corpus)
    check_free(index, overwrite=overwrite)
    home = Path(os.path.realpath(index))
    workshop = home.with_name(f".{home.name}.contam-groups")
    plan = plan_index(
        corpus, workshop, recipe, memory=memory, text=text, columns=columns, exclude=exclude,
        overwrite=True, progress=progress,
    )  # fmt: skip
    # What is left there of another state of the corpus is of no use.
    parts = workshop / plan.question[:16]
    build_on_ray(plan, plan.groups, parts, address=address, workers=workers, progress=progress)
    manifest = merge_groups(plan, [parts], index, overwrite=overwrite)
    shutil.rmtree(workshop, ignore_errors=True)
    return manifest


def _own_folder() -> tuple[Path, int]:
    """A folder for this process, and the lock that says that it lives; what killed ones left goes.

    Whoever gives tasks out ends processes without a warning.
    """
    for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            handle = os.open(old, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old)
            finally:
                os.close(handle)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        # Another process may have come between.
        if folder.exists():
            return folder, lock
        os.close(lock)
