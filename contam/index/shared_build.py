"""Build one index on many machines: a plan, a folder of segments for each group, and a merge.

plan     PLAN/index-plan.json       every shard as it is now, the recipe, the memory
build    PARTS/group-00007/         segments of a group, and group.json when all are there
merge    INDEX/                     the same bytes as those of one build
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from contam.errors import OutputError, Place, Public
from contam.files.addresses import Address
from contam.files.publish import output_errors
from contam.files.single import read_file, whole_file, write_file
from contam.files.uploads import (
    names_below,
    place,
    upload,
    writable,
    write_files,
)
from contam.index.build import (
    DEFAULT_MEMORY,
    check_limits,
    fresh_manifest,
    read_pending,
    refuse_inside,
)
from contam.index.cut import Group, cut_groups
from contam.index.json_values import PlainError, from_plain, to_plain
from contam.index.manifest import SEGMENTS, writer_lock
from contam.index.model import Manifest, SegmentRecord, ShardRecord
from contam.index.recipe import load_recipe
from contam.index.writing.intake import failed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contam.index.model import Recipe
    from contam.index.states import States
    from contam.index.writing.intake import BuildProgress

    PathLike = str | Path

Record = TypeVar("Record")

PLAN_FILE: Final = "index-plan.json"
GROUP_FILE: Final = "group.json"
_PLAN_FORMAT, _GROUP_FORMAT = "contam-index-plan-1", "contam-index-group-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPlan:
    """What an index will be made of.

    version   of contam, which decides the bytes of segments
    manifest  every shard as it was listed, all of them pending
    memory    bytes that decide how the segments of a group are cut
    """

    version: str
    manifest: Manifest
    memory: int

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that are indexed apart."""
        return cut_groups(self.manifest.shards)

    def n_bytes(self, group: Group) -> int:
        """Bytes of the files of a group."""
        return sum(shard.size_bytes for shard in self.manifest.shards[group.first : group.end])

    def to_bytes(self) -> bytes:
        """The plan as its file has it."""
        return _file_of(_PLAN_FORMAT, self)

    @property
    def question(self) -> str:
        """Digest of all of it: groups of another plan do not fit."""
        return hashlib.sha256(_spelt(to_plain(self))).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecord:
    """The state a shard was read in, see `contam.files.listed.FileState`."""

    uri: str
    sha256: str
    size: int
    modified_ns: int
    changed_ns: int
    device: int
    inode: int
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """What the indexing of a group gave, besides the files of its segments."""

    question: str
    number: int
    shards: tuple[ShardRecord, ...]
    segments: tuple[SegmentRecord, ...]
    states: tuple[StateRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a worker did: numbers of groups, those that were there before, and failed shards.

    not_whole  groups among the done ones with a shard that could not be read
    """

    done: tuple[int, ...]
    kept: tuple[int, ...]
    not_whole: tuple[int, ...]
    failures: tuple[ShardRecord, ...]


@cache
def _version() -> str:
    """The version of contam that is installed; of a checkout that is not, "0"."""
    try:
        return version("contam")
    except PackageNotFoundError:
        return "0"


def plan_index(
    corpus: Sequence[PathLike],
    out: PathLike,
    recipe: str | Recipe = "standard",
    *,
    memory: int = DEFAULT_MEMORY,
    text: str | None = None,
    columns: Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
    overwrite: bool = False,
    progress: BuildProgress | None = None,
) -> IndexPlan:
    """Write the plan of an index into a folder; the options are those of `contam.index.build`.

    Raises CorpusError, UsageError, and OutputError when there is a plan and `overwrite` is not set.
    """
    check_limits(None, memory)
    folder = place(out)
    refuse_inside(folder, corpus)
    if isinstance(recipe, str):
        recipe = load_recipe(recipe)
    manifest = fresh_manifest(corpus, recipe, text, columns, exclude, progress)
    plan = IndexPlan(version=_version(), manifest=manifest, memory=memory)
    if isinstance(folder, Address):
        writable(folder)
    else:
        with output_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
    _write(folder / PLAN_FILE, _PLAN_FORMAT, plan, overwrite=overwrite)
    return plan


def open_index_plan(folder: PathLike) -> IndexPlan:
    """The plan in a folder. Raises OutputError when there is none, or one of another version."""
    path = place(folder) / PLAN_FILE
    try:
        plan = _read(path, _PLAN_FORMAT, IndexPlan)
    except FileNotFoundError as error:
        raise OutputError(
            "{} holds no plan of an index",
            place(folder),
            hint="give the folder that `contam index plan` wrote",
        ).of_call() from error
    if plan.version != _version():
        raise OutputError(
            "{}: made with contam {}, here {}",
            path,
            Public(plan.version),
            Public(_version()),
            hint="install the same on every machine, or make the plan again with what is here",
        )
    return plan


def group_folder(parts: Path, number: int) -> Path:
    """Where the segments of a group are."""
    return parts / f"group-{number:05d}"


def build_groups(
    plan: IndexPlan,
    groups: Sequence[Group],
    parts: PathLike,
    *,
    workers: int | None = None,
    progress: BuildProgress | None = None,
) -> Built:
    """Index these groups, each in a folder of its own; one that is there and whole is kept.

    A group with a shard that could not be read is indexed again. Raises OutputError.
    """
    check_limits(workers, plan.memory)
    kept, waiting = claim_groups(plan, groups, parts)
    home = place(parts)
    failures = dict[int, list[ShardRecord]]()
    for group in waiting:
        record = _build_group(plan, group, home, workers, progress)
        failures[group.number] = failures_of(plan, record)
    return Built(
        done=tuple(group.number for group in waiting),
        kept=tuple(group.number for group in kept),
        not_whole=tuple(number for number, some in failures.items() if some),
        failures=tuple(shard for some in failures.values() for shard in some),
    )


def claim_groups(
    plan: IndexPlan, groups: Sequence[Group], parts: PathLike
) -> tuple[list[Group], list[Group]]:
    """The groups that are in a folder, whole, and those that are to be indexed.

    Raises OutputError for one of another plan, and where nothing can be written; UsageError for a
    folder inside the corpus.
    """
    home = place(parts)
    if isinstance(home, Address):
        writable(home)
    refuse_inside(home, plan.manifest.paths)
    kept, waiting = list[Group](), list[Group]()
    for group in groups:
        there = finished_group(plan, home, group)
        is_whole = there is not None and not failures_of(plan, there)
        (kept if is_whole else waiting).append(group)
    return kept, waiting


def group_by_number(plan: IndexPlan, number: int) -> Group:
    """The group with this number."""
    return plan.groups[number - 1]


def read_group(plan: IndexPlan, parts: Path, group: Group) -> GroupRecord:
    """What the indexing of a group gave. Raises OutputError where it was not indexed."""
    record = finished_group(plan, parts, group)
    if record is None:
        raise missing_group(plan, group, [parts])
    return record


def files_of_group(parts: Path, group: Group) -> tuple[tuple[str, int], ...]:
    """Names and sizes of the files of a group that was indexed, its record last."""
    home = group_folder(parts, group.number)
    files = sorted(path for path in (home / SEGMENTS).rglob("*") if path.is_file())
    return tuple(
        (str(path.relative_to(home)), path.stat().st_size) for path in (*files, home / GROUP_FILE)
    )


def receive_group(
    plan: IndexPlan,
    parts: Path,
    group: Group,
    files: Sequence[tuple[str, int]],
    fetch: Callable[[str, int], bytes],
) -> GroupRecord:
    """Write a group that was indexed elsewhere; it is there when its record is.

    fetch  gives the bytes of a file from a position on, some at a time

    Raises OutputError when it cannot be written, or is not what the plan asks for.
    """
    home = group_folder(parts, group.number)
    with writer_lock(home):
        _clear(home)
        with output_errors(home):
            for name, size in files:
                path = home / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with whole_file(path) as file:
                    while (at := file.tell()) < size:
                        file.write(fetch(name, at))
        return read_group(plan, parts, group)


def give_up_group(plan: IndexPlan, parts: Path, group: Group, reason: str) -> GroupRecord:
    """Write the record of a group that nobody could index: none of its shards was read."""
    home = group_folder(parts, group.number)
    record = GroupRecord(
        question=plan.question,
        number=group.number,
        shards=tuple(
            shard if shard.failure else failed(shard, f"{shard.name}: {reason}")
            for shard in plan.manifest.shards[group.first : group.end]
        ),
        segments=(),
        states=(),
    )
    with writer_lock(home):
        _clear(home)
        _write(home / GROUP_FILE, _GROUP_FORMAT, record, overwrite=True)
    return record


def _clear(home: Path) -> None:
    """Remove what was there of a group, its record first."""
    with output_errors(home):
        (home / GROUP_FILE).unlink(missing_ok=True)
        if (home / SEGMENTS).exists():
            shutil.rmtree(home / SEGMENTS)


def _build_group(
    plan: IndexPlan,
    group: Group,
    home: Path,
    workers: int | None,
    progress: BuildProgress | None,
) -> GroupRecord:
    if isinstance(home, Address):
        with tempfile.TemporaryDirectory(prefix="contam-group-") as local:
            record = _build_group(plan, group, Path(local), workers, progress)
            _upload_group(group_folder(Path(local), group.number), home)
        return record
    folder = group_folder(home, group.number)
    names = tuple(record.name for record in plan.manifest.shards[group.first : group.end])
    states: States = {}
    with writer_lock(folder):
        _clear(folder)
        manifest = read_pending(
            folder,
            replace(plan.manifest, pending=names),
            lambda _, fresh: states.update(fresh),
            workers=workers,
            memory=plan.memory,
            progress=progress,
        )
        record = GroupRecord(
            question=plan.question,
            number=group.number,
            shards=manifest.shards[group.first : group.end],
            segments=manifest.segments,
            states=tuple(
                StateRecord(uri=uri, sha256=sha256, **state._asdict())
                for uri, (sha256, state) in sorted(states.items())
            ),
        )
        _write(folder / GROUP_FILE, _GROUP_FORMAT, record, overwrite=True)
    return record


def _upload_group(folder: Path, home: Address) -> None:
    """Copy a group to a store, the file last that says what it holds. Raises OutputError."""
    files = sorted(path for path in (folder / SEGMENTS).rglob("*") if path.is_file())
    made = {str(path.relative_to(folder)): path for path in (*files, folder / GROUP_FILE)}
    target = home / folder.name
    write_files(target, made, names_below(target), last=GROUP_FILE)


def missing_group(plan: IndexPlan, group: Group, folders: Sequence[Path]) -> OutputError:
    """The error of a group that is in none of the folders."""
    return OutputError(
        "group {} of {} was not built, or not in {}",
        group.number,
        len(plan.groups),
        Place(", ".join(map(str, folders))),
        hint="build it with `contam index build --plan`, then merge again",
    )


def finished_group(plan: IndexPlan, home: Path, group: Group) -> GroupRecord | None:
    """The record of a group that was indexed; None where it was not, or not to its end.

    Raises OutputError for one of another plan, or one that is not as it was written.
    """
    path = group_folder(home, group.number) / GROUP_FILE
    try:
        record = _read(path, _GROUP_FORMAT, GroupRecord)
    except FileNotFoundError:
        return None
    names = [shard.name for shard in plan.manifest.shards[group.first : group.end]]
    if record.question != plan.question or record.number != group.number:
        raise OutputError(
            "{}: belongs to another plan",
            path,
            hint="give the folders that workers on this plan wrote",
        )
    if [shard.name for shard in record.shards] != names:
        raise OutputError(
            "{}: is not as it was written",
            path,
            hint="remove the folder of the group, and build the group again",
        )
    return record


def failures_of(plan: IndexPlan, record: GroupRecord) -> list[ShardRecord]:
    """The shards of a group that could not be read, and that were no failures when planned."""
    known = {shard.name for shard in plan.manifest.shards if shard.failure is not None}
    return [shard for shard in record.shards if shard.failure and shard.name not in known]


def _spelt(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def _write(path: Path, form: str, value: Any, *, overwrite: bool) -> None:  # noqa: ANN401 - a dataclass
    written = _file_of(form, value)
    if not isinstance(path, Address):
        write_file(path, written, overwrite=overwrite)
        return
    if not overwrite and path.name in names_below(path.parent):
        raise OutputError("{} already exists", path, hint="choose another name, or --overwrite")
    upload(path, written)


def _file_of(form: str, value: Any) -> bytes:  # noqa: ANN401 - a dataclass
    body = to_plain(value)
    digest = hashlib.sha256(_spelt(body)).hexdigest()
    return _spelt({"format": form, "sha256": digest, "body": body}) + b"\n"


def _read(path: Path, form: str, kind: type[Record]) -> Record:
    """What `_write` wrote. Raises OutputError, and FileNotFoundError where there is nothing."""
    try:
        found = json.loads(read_file(path))
        body, digest, written = found["body"], found["sha256"], found["format"]
        if (written, digest) != (form, hashlib.sha256(_spelt(body)).hexdigest()):
            raise PlainError("its content is not what its digest says")
        return from_plain(kind, body, "body")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OutputError(
            "{}: cannot be read: {}", path, Public(error.strerror),
            hint="check that the file is there and may be read",
        ) from error  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(
            "{}: is not as it was written", path, hint="copy the file again"
        ) from error
