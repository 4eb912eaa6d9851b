"""Record retired documents, and the states of shards whose bytes were verified against the index.

A change in the middle of a shard shows in none of the digests that an answer has time for, but in
the time of the file. These states are stored next to the manifest, not in it: copying a corpus
changes times and not what is indexed. See docs/adr/0007-the-index.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.files.disk import FileState
from contam.files.single import read_file
from contam.index.array_files import (
    CheckedArray,
    damaged,
    reading,
    sync,
    write_array,
    write_synced,
    writing,
)
from contam.index.model import spell

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.index.model import FileRecord


_ROW_BITS: Final = 40
#: Files that list retired documents.
RETIRED_NAME: Final = re.compile(r"retired-[0-9a-f]{8}\.(npy|crc)")


class Retired:
    """Retired documents of an index, looked up by shard and row.

    pairs  int64[n, 2], shard (its place in the manifest) and row, ascending, each once
    """

    def __init__(self, pairs: NDArray[np.int64]) -> None:
        self.pairs = pairs
        self._keys = (pairs[:, 0] << _ROW_BITS) | pairs[:, 1]

    def __len__(self) -> int:
        return len(self.pairs)

    def holds(self, shard: NDArray[np.integer], row: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which documents are retired, bool[m]; shard and row are integers [m]."""
        wanted = (shard.astype(np.int64) << _ROW_BITS) | row.astype(np.int64)
        if not len(self._keys):
            return np.zeros(len(wanted), np.bool_)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.asarray(self._keys[at] == wanted)


def read_retired(folder: Path, record: FileRecord | None) -> Retired:
    """The retired documents of an index, checked whole. Raises IndexDamageError."""
    if record is None:
        return Retired(np.empty((0, 2), np.int64))
    file = CheckedArray(folder, record)
    pairs = file.check_all()
    if pairs.dtype != np.int64 or pairs.ndim != 2 or pairs.shape[1] != 2:  # noqa: PLR2004 - shard and row
        raise damaged(file.path, "is no list of shards and rows")
    retired = Retired(pairs)
    keys = retired._keys  # noqa: SLF001 - our own
    if len(keys) and ((pairs < 0).any() or (keys[1:] <= keys[:-1]).any()):
        raise damaged(file.path, "is not in order")
    return retired


def write_retired(folder: Path, pairs: NDArray[np.int64]) -> FileRecord | None:
    """Write int64[n, 2] shards and rows, in any order, next to the manifest; None for none.

    The older file is left for readers that still need it: whoever publishes a manifest removes it.
    """
    if not len(pairs):
        return None
    distinct = np.unique(pairs.astype("<i8"), axis=0)
    name = hashlib.sha256(distinct.tobytes()).hexdigest()[:8]
    return write_array(folder, f"retired-{name}", distinct)


STATES: Final = "MANIFEST.json.states"

_SECOND: Final = 1_000_000_000

States = dict[str, tuple[str, FileState]]
"""Place of a file -> SHA-256 of its bytes, and its state when they were read."""


def read_states(folder: Path) -> States:
    """The states that an index knows, none where it has noted none yet.

    Raises IndexDamageError when the file is not as it was written.
    """
    path = folder / STATES
    with reading(path):
        try:
            raw = read_file(path)
        except FileNotFoundError:
            return {}
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        known = json.loads(raw)["states"].items()
        states = {place: (str(sha256), FileState(*state)) for place, (sha256, state) in known}
        fields = list(map(type, FileState(0, 0)))
        if all(list(map(type, state)) == fields for _, (_, state) in known):
            return states
    raise damaged(path, "is no list of states; remove it and verify the index")


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
    with writing(path):
        write_synced(draft, spell({"states": found}), b"\n")
        draft.replace(path)
    sync(folder)
    return True


def state_for(states: States, place: str, sha256: str) -> FileState | None:
    """The state in which the file at a place had these bytes; None when none is known."""
    found = states.get(place)
    return found[1] if found is not None and found[0] == sha256 else None


#: Why bytes may be others, by whether the file was in a store when it was indexed, and is now.
_CHANGES: Final = {
    (True, True): "has another version in its store than the indexed one",
    (True, False): "was indexed in a store, and this copy in a folder may differ",
    (False, True): "was indexed in a folder, and this copy in a store may differ",
}


def change_since(known: FileState, now: FileState) -> str:
    """Why a file may have other bytes than in a known state; "" when it has those.

    The time of change of a copy is its own, and its time of writing may have lost its fraction.
    """
    if known[:3] == now[:3] and known.version == now.version:
        return ""
    if known.version or now.version:
        return _CHANGES[bool(known.version), bool(now.version)]
    if known[3:] == now[3:]:
        if known.modified_ns != now.modified_ns:
            return "was written to since it was indexed"
        return "was changed since it was indexed, or its rights, links or name were"
    times = {known.modified_ns, now.modified_ns}
    same_second = len({time // _SECOND for time in times}) == 1
    if len(times) == 1 or (now.modified_ns % _SECOND == 0 and same_second):
        return ""
    return "may differ from the indexed file: it was written at another time"
