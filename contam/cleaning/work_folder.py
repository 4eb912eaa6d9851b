"""Keep what an unfinished run has done beside where its result will be.

state.json      which run it is
scan/           parts of the search
result/         what becomes OUT: corpus/, removed/ and clean.json
draft/          shards that are being written
done/N.json     shard N is whole in result/; written last, so that a kill loses one shard a thread
lock            shared by processes that write shards of their shares; alone it lets one publish

Two processes that write the same shard write the same bytes, and the last takes its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.errors import OutputError
from contam.files.disk import lock_file, output_errors, refuse_foreign, sync_path
from contam.files.listed import state_at
from contam.files.publish import work_folder
from contam.files.single import fingerprint, read_file, write_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


CORPUS: Final = "corpus"
REMOVED: Final = "removed"
RECORD: Final = "clean.json"
_STATE: Final = "state.json"
#: It quotes the corpus.
_RIGHTS: Final = 0o700


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """The folder of the runs that make one result."""

    folder: Path

    @classmethod
    def beside(cls, out: str | Path) -> WorkFolder:
        """The one of the result in `out`."""
        return cls(work_folder(out, "clean"))

    @property
    def result(self) -> Path:
        """What becomes the result."""
        return self.folder / "result"

    @contextlib.contextmanager
    def locked(self, *, shared: bool = False) -> Iterator[None]:
        """Let nobody else publish the result in the block, or write shards for it.

        shared  others may write shards, too

        Raises OutputError where somebody does.
        """
        with output_errors(self.folder):
            while True:
                self.folder.parent.mkdir(parents=True, exist_ok=True)
                self.folder.mkdir(mode=_RIGHTS, exist_ok=True)
                refuse_foreign(self.folder)
                # Whoever has published removes the folder.
                with contextlib.suppress(FileNotFoundError):
                    handle = lock_file(self.folder / "lock", shared=shared)
                    break
        if handle is None:
            raise OutputError(
                "another run works in {}",
                self.folder,
                hint="wait until it has ended, or choose another folder",
            )
        try:
            yield
        finally:
            os.close(handle)

    def begin(self, question: str, written: str, *, shared: bool = False) -> None:
        """Go on from what a run has done that writes the same, and let go of all else.

        question  digest of what this run is asked
        written   digest of what decides every byte of a shard
        shared    whether this process writes only some of the shards: then it lets go of nothing

        Raises OutputError where the folder holds shards that were written for another result, and
        by several processes or before this one of several.
        """
        old = _json(self.folder / _STATE)
        same = old.get("run") == written
        if not same and self.n_done() and (shared or old.get("shared")):
            raise OutputError(
                "{} holds shards of another run: with other items, shards, options or packages",
                self.folder, hint="give all calls the same arguments, or remove the folder",
            )  # fmt: skip
        with output_errors(self.folder):
            if not shared:
                for name in ("draft", *(() if same else ("done", "result"))):
                    shutil.rmtree(self.folder / name, ignore_errors=True)
            for name in ("done", "draft", "result"):
                (self.folder / name).mkdir(exist_ok=True)
        said = {
            "tool": "contam",
            "question": question,
            "run": written,
            "shared": shared or (same and old.get("shared", False)),
        }
        # Of several that begin at once each writes the same.
        if said != old:
            write_file(self.folder / _STATE, json.dumps(said).encode(), overwrite=True)

    def n_done(self) -> int:
        """Shards that are done, of whichever run."""
        return len(list((self.folder / "done").glob("*.json")))

    def holds(self) -> bool:
        """Whether there is something to go on from: parts of the search, or shards done."""
        return any((self.folder / "scan").glob("*.part")) or self.n_done() > 0

    def published(self, out: Path, question: str) -> dict[str, Any] | None:
        """The record in `out`, where this folder's run published it and did not live to end."""
        record = published_record(out, question)
        # The folder may be half removed.
        ours = (
            self.folder.exists()
            and _json(self.folder / _STATE).get("question", question) == question
        )
        return record if ours and not self.result.exists() else None

    def draft(self, number: int, name: str) -> Path:
        """A path for a draft of a shard, with the last part of its name."""
        folder = self.folder / "draft" / f"{number:08d}-{secrets.token_hex(4)}"
        with output_errors(folder):
            folder.mkdir()
        return folder / Path(name).name

    def put(self, draft: Path, kind: str, name: str) -> dict[str, Any]:
        """Move a draft to where it belongs in the result; returns its size and digest."""
        target = self.target(kind, name)
        with output_errors(target):
            found = fingerprint(draft)
            target.parent.mkdir(parents=True, exist_ok=True)
            sync_path(draft)
            draft.replace(target)
            sync_path(target.parent)
        return found

    def target(self, kind: str, name: str) -> Path:
        """Where a shard's file of this kind belongs in the result."""
        home = self.result / kind
        path = home / name
        if not path.resolve().is_relative_to(home.resolve()) or path == home:
            raise OutputError(
                "the shard {} has a name that is no path below a folder", name,
                hint="choose another folder",
            )  # fmt: skip
        return path

    def done(self, number: int, written: str, files: Mapping[str, Path]) -> dict[str, Any] | None:
        """What was noted of a shard that is done, if its files are there as they were written.

        written  what it must have been written for, as for `begin`
        files    of each kind that a shard may have, by kind
        """
        try:
            marker = _json(self._marker(number))
            if marker["run"] != written:
                return None
            noted: dict[str, Any] = marker["noted"]
            for kind, path in files.items():
                if noted[kind] is None or marker["stamps"][kind] == state_at(str(path)).stamp:
                    continue
                if fingerprint(path) != noted[kind]:
                    return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return noted

    def note_done(
        self, number: int, written: str, noted: Mapping[str, Any], files: Mapping[str, Path]
    ) -> None:
        """A shard is done; see `done`."""
        with output_errors(self.folder):
            stamps = {
                kind: state_at(str(path)).stamp
                for kind, path in files.items()
                if noted[kind] is not None
            }
        marker = {"run": written, "noted": noted, "stamps": stamps}
        write_file(self._marker(number), json.dumps(marker).encode(), overwrite=True)

    def keep_only(self, files: set[Path]) -> None:
        """Remove what lies in the result besides these files, and folders without any."""
        with output_errors(self.result):
            # What lies in a folder comes before it.
            for path in sorted(self.result.rglob("*"), reverse=True):
                if path.is_dir():
                    if not any(path.iterdir()):
                        path.rmdir()
                elif path not in files:
                    path.unlink()

    def discard(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _marker(self, number: int) -> Path:
        return self.folder / "done" / f"{number:08d}.json"


def published_record(out: Path, question: str) -> dict[str, Any] | None:
    """The clean.json in `out`, where it is that of a run of this question."""
    record = _json(out / RECORD)
    return record if record.get("question") == question else None


def _json(path: Path) -> dict[str, Any]:
    """An object in a file; an empty one where there is none."""
    try:
        found = json.loads(read_file(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def digest_of(*facts: object) -> str:
    """One digest of plain values."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
