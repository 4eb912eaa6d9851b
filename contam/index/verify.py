"""Verify every byte of an index and of the corpus behind it."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from contam.errors import IndexBusyError, IndexDamageError, OutputError
from contam.index.array_files import CheckedFile, damaged
from contam.index.manifest import MANIFEST, SEGMENTS, index_id, read_manifest, writer_lock
from contam.index.open import local_folder
from contam.index.segment import Segment
from contam.index.shards import by_digest, check_shards
from contam.index.states import note_states, read_retired, read_states

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.corpus.shards import Shard
    from contam.index.model import FileRecord, Manifest


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was written.

    what   "index": a file of the index; "corpus": a shard it was made of
    place  the file or the shard;  fact  what is wrong with it
    """

    what: Literal["index", "corpus"]
    place: str
    fact: str


@dataclass
class VerificationReport:
    """What a verification looked at and what it found wrong.

    index_id   of the manifest; None when that cannot be read
    n_files, n_bytes      files of the index compared whole, with their tables of checksums
    n_noted               shards whose times queries may rely on from now on, and could not before
    not_noted             why those times could not be written down; "" when they were
    leftovers             files that no manifest speaks of; harmless
    """

    index_id: str | None = None
    n_segments: int = 0
    n_files: int = 0
    n_bytes: int = 0
    n_shards: int = 0
    n_noted: int = 0
    not_noted: str = ""
    findings: list[Finding] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Take damage that the block finds into the findings."""
        try:
            yield
        except IndexDamageError as error:
            self.findings.append(Finding("index", error.file, error.message))

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def damaged(self) -> bool:
        """Whether the index itself is not as it was written."""
        return any(finding.what == "index" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with `ok`."""
        return {"ok": self.ok, **asdict(self)}


def verify(
    index: Path,
    *,
    corpus: Sequence[str | Path] = (),
) -> VerificationReport:
    """Compare an index with its own checksums, and its shards with the digests in it.

    index   folder of the index
    corpus  present paths of the shards, if they were moved

    Of shards whose bytes are all as they were, the times of their files are noted in the index, so
    that queries take those for unchanged.
    Raises UsageError when there is no index, IndexMismatchError when it is of another format; all
    else that is wrong is in the report.
    """
    index = local_folder(index)
    report = VerificationReport()
    try:
        manifest = read_manifest(index)
    except IndexDamageError as error:
        report.findings.append(Finding("index", str(index / MANIFEST), error.message))
        return report
    report.index_id = index_id(manifest)
    report.n_segments = len(manifest.segments)
    report.leftovers = _leftovers(index, manifest)
    _check_files(index, manifest, report)
    moved = by_digest(corpus) if corpus else {}
    _note(index, manifest, _check_corpus(manifest, report, moved), report)
    return report


def _check_files(index: Path, manifest: Manifest, report: VerificationReport) -> None:
    """Compare every file with its record, and open the segments whose files are intact."""
    for segment in manifest.segments:
        folder = index / SEGMENTS / segment.id
        # All files are looked at, whatever the first ones are like.
        same = [_check_file(folder, file, report) for file in segment.files]
        if all(same):
            with report.noting():
                Segment(index, segment, manifest.recipe).document_table()
    if manifest.retired is not None and _check_file(index, manifest.retired, report):
        with report.noting():
            read_retired(index, manifest.retired)


def _check_file(folder: Path, record: FileRecord, report: VerificationReport) -> bool:
    report.n_files += 1
    report.n_bytes += record.n_bytes
    before = len(report.findings)
    with report.noting():
        file = CheckedFile(folder, record)
        file.check_file()
        if file.sha256() != record.sha256:
            raise damaged(file.path, "its content is not what its digest says")
    return len(report.findings) == before


def _check_corpus(
    manifest: Manifest, report: VerificationReport, moved: dict[str, Shard]
) -> dict[int, Shard]:
    """Compare the shards with their records; returns those that are as they were, by place."""
    readable = {}
    for place, found in check_shards(manifest, moved):
        report.n_shards += 1
        if isinstance(found, str):
            report.findings.append(Finding("corpus", manifest.shards[place].uri, found))
        else:
            readable[place] = found
    return readable


def _note(
    index: Path, manifest: Manifest, readable: dict[int, Shard], report: VerificationReport
) -> None:
    """Write down the states of shards whose bytes have all been compared."""
    try:
        known = read_states(index)
    except IndexDamageError as error:
        report.findings.append(Finding("index", error.file, error.message))
        return
    fresh = {
        shard.uri: (manifest.shards[place].sha256, shard.state)
        for place, shard in readable.items()
        if shard.state is not None
    }
    changed = {place: found for place, found in fresh.items() if known.get(place) != found}
    if not changed:
        return
    try:
        with writer_lock(index):
            note_states(index, changed)
        report.n_noted = len(changed)
    except (OutputError, IndexBusyError) as error:
        report.not_noted = error.message


def _leftovers(index: Path, manifest: Manifest) -> list[str]:
    """Files below `segments/`, and lists of retired documents, that nothing speaks of."""
    known = {
        f"{SEGMENTS}/{segment.id}/{name}"
        for segment in manifest.segments
        for file in segment.files
        for name in (file.name, f"{file.name.partition('.')[0]}.crc")
    }
    if manifest.retired is not None:
        known |= {manifest.retired.name, manifest.retired.name.removesuffix(".npy") + ".crc"}
    there = [*(index / SEGMENTS).rglob("*"), *index.glob("retired-*")]
    names = {path.relative_to(index).as_posix() for path in there if not path.is_dir()}
    return sorted(names - known)
