"""Keep what an unfinished run has done beside where its result will be.

state.json      which run it is
scan/           parts of the search, a lease each
hits/           what the policies count, by view and shard
result/         what becomes OUT: corpus/, removed/ and clean.json
done/N.json     shard N is whole in result/; written last, so that a kill loses one shard a thread
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.detect.leases.workshop import Workshop
from contam.errors import OutputError, Remedy
from contam.files.publish import output_errors, sync_path, work_folder
from contam.files.single import fingerprint, read_file, write_file

if TYPE_CHECKING:
    from contam.detect.leases.workshop import RayCluster

CORPUS: Final = "corpus"
REMOVED: Final = "removed"
RECORD: Final = "clean.json"
_STATE: Final = "state.json"


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """The folder of one run; see `contam.detect.leases.workshop.folder_held`."""

    folder: Path

    @classmethod
    def beside(cls, out: str | Path) -> WorkFolder:
        """The one of the result in `out`."""
        return cls(work_folder(out, "clean"))

    def workshop(self, *, resume: bool, cluster: RayCluster | None) -> Workshop:
        """Where the search is done."""
        return Workshop(self.folder / "scan", resume, cluster)

    @property
    def hits(self) -> Path:
        """Where hits go that are too many to hold."""
        return self.folder / "hits"

    @property
    def result(self) -> Path:
        """What becomes the result."""
        return self.folder / "result"

    def begin(self, question: str, *, resume: bool) -> None:
        """Let the results of another run go; `question`  digest of what decides this one's."""
        path = self.folder / _STATE
        said = json.dumps({"tool": "contam", "question": question}).encode()
        with output_errors(self.folder):
            if not (resume and path.exists() and read_file(path) == said):
                for name in ("done", "result"):
                    shutil.rmtree(self.folder / name, ignore_errors=True)
            shutil.rmtree(self.hits, ignore_errors=True)
            shutil.rmtree(self.folder / "draft", ignore_errors=True)
            for folder in ("done", "draft", "result"):
                (self.folder / folder).mkdir(exist_ok=True)
        write_file(path, said, overwrite=True)

    def published(self, out: Path, question: str) -> dict[str, Any] | None:
        """The record in `out`, where this folder's run published it and did not live to end."""
        try:
            record: dict[str, Any] = json.loads(read_file(out / RECORD))
            said = json.loads(read_file(self.folder / _STATE))
            same = record["question"] == said["question"] == question
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return record if same and not self.result.exists() else None

    def draft(self, number: int, name: str) -> Path:
        """A path for the draft of a shard, with the last part of its name."""
        folder = self.folder / "draft" / f"{number:08d}"
        with output_errors(folder):
            shutil.rmtree(folder, ignore_errors=True)
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
                remedy=Remedy.CHOOSE_ANOTHER_FOLDER,
            )  # fmt: skip
        return path

    def done(self, number: int, files: dict[str, Path]) -> dict[str, Any] | None:
        """What was noted of a shard that is done, if its files are there as they were written.

        files  of each kind that a shard may have, by kind
        """
        try:
            noted: dict[str, Any] = json.loads(read_file(self._marker(number)))
            for kind, path in files.items():
                if noted[kind] is not None and fingerprint(path) != noted[kind]:
                    return None
        except (OSError, ValueError, KeyError):
            return None
        return noted

    def note_done(self, number: int, noted: dict[str, Any]) -> None:
        """A shard is done."""
        write_file(self._marker(number), json.dumps(noted).encode(), overwrite=True)

    def discard(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _marker(self, number: int) -> Path:
        return self.folder / "done" / f"{number:08d}.json"


def digest_of(*facts: object) -> str:
    """One digest of plain values."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
