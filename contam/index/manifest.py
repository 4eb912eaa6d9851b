"""Publish and read the manifest, which lists the segments of an index.

    {"body":{...},"format":1,"sha256":"digest of the body"}

One line of JSON with sorted keys and no spaces, so that there is one spelling of every manifest: a
file that is not spelt that way was altered.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from contam.errors import ConfigError, IndexBusyError, IndexMismatchError, UsageError
from contam.files.single import read_file
from contam.index.array_files import damaged, reading, sync, write_synced, writing
from contam.index.checks.consistency import Inconsistent, check_manifest
from contam.index.json_values import PlainError, from_plain, to_plain
from contam.index.model import FORMAT, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MANIFEST: Final = "MANIFEST.json"
SEGMENTS: Final = "segments"
LOCK: Final = "lock"

_DRAFT: Final = ".draft"
_ID_DIGITS: Final = 16


def read_manifest(folder: Path) -> Manifest:
    """What the index in the folder consists of.

    Raises UsageError when there is no index, IndexMismatchError when it is of another format, and
    IndexDamageError when the manifest is missing, altered or contradicts itself.
    """
    path = folder / MANIFEST
    if not path.exists() and not (folder / SEGMENTS).exists():
        raise UsageError(
            "{}: there is no index here", folder, hint="make one with `contam index build`"
        )
    with reading(path):
        raw = read_file(path)
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
    if found.keys() != {"body", "format", "sha256"} or _json(found) + b"\n" != raw:
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
        write_synced(draft, _spell(manifest))
        draft.replace(path)
    sync(folder)


def index_id(manifest: Manifest) -> str:
    """What an answer calls the index in this very state: 16 hexadecimal digits."""
    return digest_of(to_plain(manifest))[:_ID_DIGITS]


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
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = _is_at(handle, path)
        except BlockingIOError:
            is_ours = False
        if not is_ours:
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


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one at its path: a writer that failed removes its lock."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _remove_empty(folder: Path, made: Sequence[Path]) -> None:
    """Remove a folder that holds nothing but our lock, and the folders made for it.

    made  innermost first
    """
    with contextlib.suppress(OSError):
        if [path.name for path in folder.iterdir()] == [LOCK]:
            (folder / LOCK).unlink()
            for one in made:
                one.rmdir()


def _spell(manifest: Manifest) -> bytes:
    body = to_plain(manifest)
    return _json({"body": body, "format": FORMAT, "sha256": digest_of(body)}) + b"\n"


def digest_of(body: object) -> str:
    """SHA-256 of a JSON value in its one spelling, hexadecimal."""
    return hashlib.sha256(_json(body)).hexdigest()


def _json(value: object) -> bytes:
    # In ASCII, because a path may hold bytes that are no UTF-8.
    return json.dumps(cast("Any", value), sort_keys=True, separators=(",", ":")).encode("ascii")
