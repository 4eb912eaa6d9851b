"""Write and check a pack's manifest: digests of every file, every input and the list itself."""

from __future__ import annotations

import hashlib
import json
import platform
from typing import TYPE_CHECKING, Any, Final

from contam.errors import OutputError
from contam.files.single import fingerprint, reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_GIVE_AUDIT_FOLDER: Final = "give the folder that `contam audit run` wrote"


MANIFEST: Final = "manifest.json"
TIMES: Final = "times.json"
"""The only file of a pack that differs between equal audits."""

FORMAT: Final = 1


def files_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file below a folder with its relative name, in order; links count as files."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            yield path.relative_to(folder).as_posix(), path


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> str:
    """Write the manifest of all other files in the folder; returns its own digest.

    facts  inputs, parameters and versions: JSON-able, equal for equal audits
    """
    tree = {
        "tool": "contam",
        "format": FORMAT,
        **facts,
        "environment": {"machine": platform.machine(), "system": platform.system()},
        "files": {
            name: fingerprint(path)
            for name, path in files_of(folder)
            if name not in {MANIFEST, TIMES}
        },
    }
    return _write_with_digest(folder / MANIFEST, tree)


def write_times(folder: Path, times: Mapping[str, Any]) -> None:
    """Write when, how long, and what finished stages were made of, with a digest of its own.

    The manifest must not depend on it: a stage depends on where its files are, a pack does not.
    """
    _write_with_digest(folder / TIMES, dict(times))


def read_verified(path: Path) -> dict[str, Any]:
    """A manifest or times file that is byte for byte what was written. Raises OutputError."""
    with reading(path, OutputError, _GIVE_AUDIT_FOLDER):
        if not path.exists():
            missing = OutputError("there is no {}", path, hint=_GIVE_AUDIT_FOLDER)
            raise missing if path.parent.exists() else missing.of_call()
        raw = path.read_bytes()
    try:
        tree = json.loads(raw)
    except ValueError as error:
        raise _altered(path) from error
    if not isinstance(tree, dict) or "digest" not in tree:
        raise _altered(path)
    digest = tree.pop("digest")
    if digest != _digest(tree) or raw != _with_digest(tree, digest):
        raise _altered(path)
    return {**tree, "digest": digest}


def _write_with_digest(path: Path, tree: Mapping[str, Any]) -> str:
    digest = _digest(tree)
    path.write_bytes(_with_digest(tree, digest))
    return digest


def _digest(tree: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode("ascii")).hexdigest()


def _with_digest(tree: Mapping[str, Any], digest: str) -> bytes:
    return (json.dumps({**tree, "digest": digest}, indent=1) + "\n").encode("ascii")


def _altered(path: Path) -> OutputError:
    return OutputError("{} was altered since the audit", path, hint="run the audit again")
