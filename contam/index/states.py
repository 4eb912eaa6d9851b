"""Record the file states of shards whose bytes were verified against the index.

A change in the middle of a shard shows in none of the digests that an answer has time for, but in
the time of the file. These states are stored next to the manifest, not in it: copying a corpus
changes times and not what is indexed. See docs/adr/0007-the-index.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from contam.files.disk import FileState
from contam.files.single import read_file
from contam.index.array_files import damaged, reading, sync, write_synced, writing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STATES: Final = "MANIFEST.json.states"

_SECOND: Final = 1_000_000_000

States = dict[str, tuple[str, FileState]]
"""Place of a file -> SHA-256 of its bytes, and its state when they were read."""


def read_states(folder: Path) -> States:
    """The states that an index knows, none where it has noted none yet.

    Raises IndexDamageError when the file is not as it was written.
    """
    path = folder / STATES
    if not path.exists():
        return {}
    with reading(path):
        raw = read_file(path)
    try:
        found = json.loads(raw)
        return {
            place: (str(sha256), _state(state))
            for place, (sha256, state) in found["states"].items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise damaged(path, "is no list of states; remove it and verify the index") from error


def note_states(folder: Path, fresh: Mapping[str, tuple[str, FileState]]) -> bool:
    """Add or replace states, and return whether that changed any; the caller has the lock.

    Raises OutputError when the folder cannot be written.
    """
    known = read_states(folder)
    found = {**known, **fresh}
    if found == known:
        return False
    path = folder / STATES
    draft = folder / f"{STATES}.draft"
    text = json.dumps({"states": found}, sort_keys=True, separators=(",", ":"))
    with writing(path):
        write_synced(draft, text.encode("ascii") + b"\n")
        draft.replace(path)
    sync(folder)
    return True


def state_for(states: States, place: str, sha256: str) -> FileState | None:
    """The state in which the file at a place had these bytes; None when none is known."""
    found = states.get(place)
    return found[1] if found is not None and found[0] == sha256 else None


def change_since(known: FileState, now: FileState) -> str:
    """Why a file may have other bytes than in a known state; "" when it has those.

    The time of change of a copy is its own, and its time of writing may have lost its fraction.
    """
    if known[:3] == now[:3] and known.version == now.version:
        return ""
    if known.version or now.version:
        return _change_of_object(known, now)
    if known[3:] == now[3:]:
        if known.modified_ns != now.modified_ns:
            return "was written to since it was indexed"
        return "was changed since it was indexed, or its rights, links or name were"
    times = {known.modified_ns, now.modified_ns}
    if len(times) == 1 or (now.modified_ns % _SECOND == 0 and _same_second(*times)):
        return ""
    return "may differ from the indexed file: it was written at another time"


def _change_of_object(known: FileState, now: FileState) -> str:
    """Why an object may have other bytes; either of the two may be a file on disk."""
    if not known.version:
        return "was indexed in a folder, and this copy in a store may differ"
    if not now.version:
        return "was indexed in a store, and this copy in a folder may differ"
    return "has another version in its store than the indexed one"


def _same_second(first_ns: int, second_ns: int) -> bool:
    return first_ns // _SECOND == second_ns // _SECOND


def _state(found: list[object]) -> FileState:
    *numbers, version = found
    size, modified_ns, changed_ns, device, inode = map(_whole, numbers)
    return FileState(size, modified_ns, changed_ns, device, inode, str(version))


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value
