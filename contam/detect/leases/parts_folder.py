"""Keep the parts of a plan in a folder or below an address, each there whole or not at all.

On disk a part is written aside and renamed to `lease-00007.part`. A store has no renaming, and not
every one refuses to replace an object; so there the name has a digest of the content, too: workers
that do a lease twice write the same object, and two different answers both stay, and are noticed.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from contam.detect.leases.part_file import hits_of, part_of
from contam.detect.leases.plan_folder import machine
from contam.errors import ASK_STORE_LATER, OutputError, Place, Public
from contam.files.addresses import Address
from contam.files.publish import output_errors
from contam.files.single import read_file, write_file
from contam.files.stores import StoreError
from contam.files.uploads import (
    names_below,
    place,
    store_errors,
    upload,
    writable,
    write_files,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contam.detect.leases.cut import Lease
    from contam.detect.leases.part_file import Part
    from contam.detect.leases.plan_folder import OpenPlan
    from contam.detect.match.hits import Hits

_GIVE_PARTS_FOLDER: Final = "give the folder that `contam scan --plan` wrote"
_GIVE_PARTS_OF_PLAN: Final = "give the folders that workers on this plan wrote"
_REPEAT_CALL_OF_WORKER: Final = "repeat the call of its worker, which does such a lease again"


#: Says of which plan the parts in a folder are.
PARTS_FILE: Final = "parts.json"
FORMAT: Final = "contam-parts-1"
_PART: Final = re.compile(r"lease-(\d+)(?:\.([0-9a-f]{16}))?\.part")


class Claimed(NamedTuple):
    """The leases whose parts are there, those to do, and the parts that theirs replace."""

    kept: list[Lease]
    waiting: list[Lease]
    replaced: Mapping[int, Sequence[Path]]


def part_path(parts: Path, number: int) -> Path:
    """The file of a lease's part in a folder on disk."""
    return parts / f"lease-{number:05d}.part"


def claim_leases(opened: OpenPlan, leases: Sequence[Lease], folder: Path) -> Claimed:
    """Make a folder for parts, and look which of these leases are done there.

    Raises OutputError when the folder holds parts of another plan, or cannot be written.
    """
    _claim(folder, opened)
    there = _parts_in(folder)
    kept: list[Lease] = []
    waiting: list[Lease] = []
    for lease in leases:
        done = any(_is_done(opened, path, lease) for path in there.get(lease.number, ()))
        (kept if done else waiting).append(lease)
    return Claimed(kept, waiting, there)


def write_part(folder: Path, number: int, data: bytes, replaced: Sequence[Path] = ()) -> Path:
    """Write the part of a lease, and remove those that it replaces; returns its place.

    Raises OutputError.
    """
    path = part_path(folder, number)
    if isinstance(path, Address):
        path = path.with_name(f"lease-{number:05d}.{_digest(data)}.part")
        old = {each.name for each in replaced} - {path.name}
        there = old.intersection(names_below(path.parent) if old else ())
        write_files(path.parent, {path.name: data}, there)
        return path
    write_file(path, data, overwrite=True)
    for each in replaced:
        if each != path:
            with output_errors(each):
                each.unlink(missing_ok=True)
    return path


def question_of_parts(folder: Path) -> tuple[str, Path]:
    """Digest of the question that the parts in a folder answer, and the folder of their plan.

    Raises OutputError for a folder that holds no parts.
    """
    try:
        said = json.loads(read_file(folder / PARTS_FILE))
        question, plan, form = str(said["question"]), place(said["plan"]), said["format"]
    except StoreError as error:
        raise _unreadable(folder / PARTS_FILE, error) from error
    except OSError as error:
        if isinstance(error, FileNotFoundError) and _has_parts(folder):
            raise OutputError(
                "{} holds parts, but not the {} that names their plan", folder, Public(PARTS_FILE),
                hint=_GIVE_PARTS_FOLDER,
            ).of_call() from error  # fmt: skip
        raise OutputError(
            "{} holds no parts of a plan", folder, hint=_GIVE_PARTS_FOLDER
        ).of_call() from error
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(
            "{} is not what contam wrote there", folder / PARTS_FILE,
            hint=_GIVE_PARTS_FOLDER,
        ) from error  # fmt: skip
    if form != FORMAT:
        raise OutputError(
            "{} holds parts in another format ({})",
            folder,
            form,
            hint="install the same on every machine, or make the plan again with what is here",
        )
    return question, plan


def parts_by_lease(opened: OpenPlan, folders: Sequence[Path]) -> dict[int, list[Path]]:
    """The parts in these folders by the numbers of their leases.

    Raises OutputError for parts of another plan, and for one of a lease that the plan lacks.
    """
    found: dict[int, list[Path]] = {}
    for folder in folders:
        if question_of_parts(folder)[0] != opened.question:
            raise OutputError("{} holds parts of another plan", folder, hint=_GIVE_PARTS_OF_PLAN)
        for number, paths in _parts_in(folder).items():
            if not 1 <= number <= len(opened.leases):
                raise OutputError(
                    "{}: the plan has no such lease", paths[0], hint=_GIVE_PARTS_OF_PLAN
                )
            found.setdefault(number, []).extend(paths)
    return found


def one_part(opened: OpenPlan, paths: Sequence[Path], lease: Lease) -> tuple[Part, list[Path]]:
    """The part of a lease, and those that say the lease could not be done to its end.

    A part of which every shard was read beats those; of several with failures the one with the
    fewest counts. Raises OutputError for parts that are damaged or do not fit, and for two
    different ones without a failure.
    """
    parts: dict[bytes, tuple[Path, Part]] = {}
    for path in paths:
        data = _read(path)
        if data not in parts:
            parts[data] = path, _fitting(opened, path, data, lease)
    whole = [one for one in parts.values() if not one[1].answer.failures]
    if len(whole) > 1:
        raise OutputError(
            "{} and {} differ, and are of the same lease", whole[0][0], whole[1][0],
            hint="remove the file, and do its lease again",
        )  # fmt: skip
    best = min(parts, key=lambda data: (len(parts[data][1].answer.failures), data))
    return parts[best][1], [path for data, (path, _) in parts.items() if data != best]


def hits_in(opened: OpenPlan, path: Path, lease: Lease) -> tuple[Hits, ...]:
    """The hits of each view in the part of a lease that `one_part` has taken.

    Raises OutputError for a part that is not that any more.
    """
    number, hits = hits_of(_read(path), path, opened.plan, opened.question)
    if number != lease.number:
        raise OutputError("{}: is the part of another lease", path, hint=_REPEAT_CALL_OF_WORKER)
    return hits


def _fitting(opened: OpenPlan, path: Path, data: bytes, lease: Lease) -> Part:
    named = _PART.fullmatch(path.name)
    if named and named[2] and named[2] != _digest(data):
        raise OutputError("{}: is not whole", path, hint=_REPEAT_CALL_OF_WORKER)
    part = part_of(data, path, opened.plan, opened.question)
    if part.machine != machine():
        raise OutputError(
            "{}: made on another kind of processor: {}, here {}", path, Public(part.machine),
            Public(machine()), hint=_REPEAT_CALL_OF_WORKER,
        )  # fmt: skip
    expected = set(range(lease.first, lease.end))
    if part.lease != lease.number or part.answer.chunks != expected:
        raise OutputError("{}: is the part of another lease", path, hint=_REPEAT_CALL_OF_WORKER)
    return part


def _is_done(opened: OpenPlan, path: Path, lease: Lease) -> bool:
    """Whether a part is whole and of this lease, of which every shard could be read."""
    if isinstance(path, Address):
        data = _read(path)
    try:
        if not isinstance(path, Address):
            data = read_file(path)
        part = _fitting(opened, path, data, lease)
    except (OSError, OutputError):
        return False
    return not part.answer.failures


def _claim(folder: Path, opened: OpenPlan) -> None:
    """Make the folder, and say in it of which plan its parts are."""
    path = folder / PARTS_FILE
    if isinstance(folder, Address):
        writable(folder)
        names = names_below(folder)
    else:
        with output_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            names = sorted(entry.name for entry in folder.iterdir())
    if PARTS_FILE in names:
        if question_of_parts(folder)[0] != opened.question:
            raise OutputError(
                "{} holds parts of another plan", folder, hint="choose another folder"
            )
        return
    if foreign := [name for name in names if not name.endswith((".part", ".draft"))]:
        raise OutputError(
            "{} holds other files: {}", folder, foreign[0], hint="choose a new or empty folder"
        )
    home = opened.folder
    said = {
        "tool": "contam",
        "format": FORMAT,
        "question": opened.question,
        "plan": str(home if isinstance(home, Address) else home.resolve()),
    }
    # Of several workers that begin at once each writes the same.
    data = (json.dumps(said, indent=1) + "\n").encode()
    if isinstance(path, Address):
        upload(path, data)
    else:
        write_file(path, data, overwrite=True)


def _parts_in(folder: Path) -> dict[int, list[Path]]:
    """The parts in a folder by the numbers of their leases."""
    if isinstance(folder, Address):
        names = names_below(folder)
    else:
        with output_errors(folder):
            names = sorted(path.name for path in folder.iterdir())
    found: dict[int, list[Path]] = {}
    for name in names:
        if named := _PART.fullmatch(name):
            found.setdefault(int(named[1]), []).append(folder / name)
    return found


def _has_parts(folder: Path) -> bool:
    """Whether there is a part, whose plan is not known."""
    try:
        return bool(_parts_in(folder))
    except OutputError:
        return False


def _read(path: Path) -> bytes:
    if isinstance(path, Address):
        with store_errors(path):
            return read_file(path)
    try:
        return read_file(path)
    except OSError as error:
        raise OutputError(
            "{}: cannot be read: {}", path, Public(error.strerror),
            hint="check that the file is there and may be read",
        ) from error  # fmt: skip


def _unreadable(path: Path, error: OSError) -> OutputError:
    return OutputError("{}: {}", Place(path), Public(error.strerror), hint=ASK_STORE_LATER)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
