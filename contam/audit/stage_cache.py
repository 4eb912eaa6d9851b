"""Cache finished stages of an audit, until the pack is published and after."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from typing import TYPE_CHECKING, Any, Final

from contam.audit.verify import MANIFEST, TIMES, files_of, read_verified
from contam.errors import OutputError
from contam.files.disk import output_errors
from contam.files.single import fingerprint
from contam.tables.memory import give_back

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contam.detect.corpus import ScanProgress

_RECORD: Final = ".stage.json"


class StageCache:
    """A folder beside the pack that holds finished stages until all are done.

    A stage is a folder under a name such as `checks/pretraining`, made from inputs that its key
    stands for. It is taken from here, or from an earlier pack, when key and every byte agree.

    tell      is told the name of each stage that begins; what it returns follows its progress
    progress  of the stage that is being made
    """

    def __init__(self, out: Path, tell: Callable[[str], ScanProgress | None]) -> None:
        self.out = out
        self.tell = tell
        self.progress: ScanProgress | None = None
        self.folder = out.with_name(f"{out.name}.work")
        self.keys: dict[str, str] = {}
        self.times: dict[str, Any] = {}
        self.reused: list[str] = []
        with output_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    def stage(self, name: str, key: str, make: Callable[[Path], dict[str, Any]]) -> Path:
        """The folder of a finished stage; `make` fills it and returns its timings when it is not.

        Raises what `make` raises; a stage that failed leaves nothing.
        """
        folder = self.folder / name
        self.keys[name] = key
        if self._kept(name, key) or self._published(name, key):
            self.reused.append(name)
            return folder
        with output_errors(folder):
            shutil.rmtree(folder, ignore_errors=True)
            draft = folder.with_name(f".{folder.name}.draft")
            shutil.rmtree(draft, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
        self.progress = self.tell(name)
        try:
            times = make(draft)
            with output_errors(folder):
                files = {entry: fingerprint(path) for entry, path in files_of(draft)}
                draft.replace(folder)
                record = json.dumps({"key": key, "times": times, "files": files})
                self._record(name).write_text(record, "ascii")
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            give_back()
        self.times[name] = times
        return folder

    def remove(self) -> None:
        """Remove the cache: all stages are in the pack."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _record(self, name: str) -> Path:
        return self.folder / f"{name}{_RECORD}"

    def _kept(self, name: str, key: str) -> bool:
        try:
            record = json.loads(self._record(name).read_bytes())
        except (OSError, ValueError):
            return False
        folder = self.folder / name
        if record.get("key") != key or not _intact(folder, record.get("files")):
            return False
        self.times[name] = record["times"]
        return True

    def _published(self, name: str, key: str) -> bool:
        """Take the stage out of an earlier pack, whose files are linked or copied, never moved."""
        try:
            manifest = read_verified(self.out / MANIFEST)
            known = read_verified(self.out / TIMES).get("stages", {})
        except OutputError:
            return False
        prefix = f"{name}/"
        files = {
            entry.removeprefix(prefix): digest
            for entry, digest in manifest.get("files", {}).items()
            if entry.startswith(prefix)
        }
        if known.get(name) != key or not files or not _intact(self.out / name, files):
            return False
        folder = self.folder / name
        with output_errors(folder):
            shutil.rmtree(folder, ignore_errors=True)
            copy_tree(self.out / name, folder)
        self.times[name] = {"taken_from": "the earlier pack"}
        return True


def copy_tree(source: Path, target: Path) -> None:
    """A folder with the same files, which share their bytes where the disk allows it."""
    shutil.copytree(source, target, copy_function=_link)


def _link(source: str, target: str) -> str:
    with contextlib.suppress(OSError):
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))


def _intact(folder: Path, files: object) -> bool:
    try:
        return (
            isinstance(files, dict)
            and {name: fingerprint(path) for name, path in files_of(folder)} == files
        )
    except OSError:
        return False
