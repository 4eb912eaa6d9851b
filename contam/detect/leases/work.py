"""Work on the leases of a plan, wherever it was copied to, and merge the parts.

Every worker writes a part for each of its leases into one folder; a part is there whole or not at
all. A merge gives the bytes of one scan, whoever did which lease, and how often.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.corpus.coverage import ShardFailure
from contam.corpus.documents import DocumentMeta
from contam.detect.corpus_checks import changed_shards
from contam.detect.leases.part_file import Part, part_bytes, read_part
from contam.detect.leases.plan_folder import machine
from contam.detect.partial import Partial
from contam.detect.scan import Corpus, judge_partial, scan_chunks
from contam.detect.sources import named_documents
from contam.errors import OutputError, Public, Remedy, ShardError, UsageError
from contam.files.listed import FileState
from contam.files.publish import output_errors
from contam.files.single import read_file, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contam.corpus.shards import Shard
    from contam.detect.leases.cut import Lease
    from contam.detect.leases.plan_folder import OpenPlan
    from contam.detect.plan import Plan
    from contam.detect.result import ScanResult
    from contam.detect.scan import ScanProgress

#: Says of which plan the parts in a folder are.
PARTS_FILE: Final = "parts.json"
FORMAT: Final = "contam-parts-1"
_NO_PART: Final = "lease {} of {} has no part"


@dataclass(frozen=True, eq=False, kw_only=True)
class PlannedCorpus(Corpus):
    """A corpus whose documents were described by those who read them.

    documents  (shard, row) -> what is known of every document that evidence names
    """

    documents: Mapping[tuple[int, int], DocumentMeta] = field(default_factory=dict)

    def metadata(self, shard: int, rows: Sequence[int]) -> list[DocumentMeta]:
        """What the parts say of the documents in these rows."""
        return [self.documents[shard, row] for row in rows]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a worker did.

    done, kept  numbers of leases that were worked on, and whose parts were there before
    failures    shards that could not be read
    """

    done: tuple[int, ...]
    kept: tuple[int, ...]
    failures: tuple[ShardFailure, ...]


def part_path(parts: Path, number: int) -> Path:
    """The file of a lease's part."""
    return parts / f"lease-{number:05d}.part"


def work_on(
    opened: OpenPlan,
    leases: Sequence[Lease],
    parts: str | Path,
    *,
    workers: int,
    progress: ScanProgress | None = None,
) -> Work:
    """Write the parts of these leases into a folder; one that is whole and there is kept.

    A part with shards that could not be read is made again.

    Raises OutputError when the folder holds parts of another plan, or cannot be written.
    """
    folder = Path(parts)
    kept, waiting = claim_leases(opened, leases, folder)
    failures: list[ShardFailure] = []
    if progress is not None:
        progress.start(sum(lease.n_bytes for lease in waiting))
    for lease in waiting:
        part = scan_lease(opened, lease, workers=workers, progress=progress)
        write_file(part_path(folder, lease.number), part_bytes(part), overwrite=True)
        failures += part.answer.failures
    if progress is not None:
        progress.finish()
    return Work(
        done=tuple(lease.number for lease in waiting),
        kept=tuple(lease.number for lease in kept),
        failures=tuple(failures),
    )


def claim_leases(
    opened: OpenPlan, leases: Sequence[Lease], folder: Path
) -> tuple[list[Lease], list[Lease]]:
    """Make a folder for parts; returns the leases whose parts are in it, and those to do.

    Raises OutputError when the folder holds parts of another plan, or cannot be written.
    """
    _claim(folder, opened)
    kept = [lease for lease in leases if is_done(opened, folder, lease)]
    there = {lease.number for lease in kept}
    return kept, [lease for lease in leases if lease.number not in there]


def failed_part(opened: OpenPlan, lease: Lease, reason: str) -> Part:
    """The part of a lease that nobody could do: none of its shards was read."""
    partial = Partial.start(opened.plan, opened.corpus)
    partial.chunks.update(range(lease.first, lease.end))
    _note_unread(partial, opened, lease, reason)
    return Part(lease=lease.number, machine=machine(), answer=partial.answer(opened.question))


def scan_lease(
    opened: OpenPlan, lease: Lease, *, workers: int, progress: ScanProgress | None = None
) -> Part:
    """Search the chunks of a lease, and describe the documents that were found."""
    chunks = opened.corpus.chunks[lease.first : lease.end]
    numbers = sorted({chunk.shard for chunk in chunks})
    corpus, gone = (opened.corpus, {}) if opened.is_own else _present(opened.corpus, numbers)
    readable = [chunk for chunk in chunks if chunk.shard not in gone]
    partial = scan_chunks(opened.plan, corpus, workers=workers, chunks=readable, progress=progress)
    for failure in gone.values():
        partial.read.add_failure(failure)
    partial.chunks.update(range(lease.first, lease.end))
    failed = {failure.shard for failure in partial.read.failures}
    for failure in changed_shards(corpus, numbers, failed):
        partial.read.add_failure(failure)
    documents = _described(corpus, partial)
    return Part(
        lease=lease.number,
        machine=machine(),
        answer=partial.answer(opened.question),
        documents=documents,
    )


def _present(corpus: Corpus, numbers: Iterable[int]) -> tuple[Corpus, dict[int, ShardFailure]]:
    """The corpus with these shards as they are on this machine, and those that are not as listed.

    On another machine a file has another device and inode, and the same size and time of writing.
    """
    shards = list(corpus.shards)
    gone = {}
    for number in numbers:
        try:
            shards[number] = _as_listed(shards[number])
        except ShardError as error:
            gone[number] = ShardFailure.of(number, shards[number].name, error)
    return replace(corpus, shards=tuple(shards)), gone


def here(corpus: Corpus) -> Corpus:
    """The corpus of a plan with its shards as they are on this machine.

    A shard that is not as it was when the plan was made is a failure in the coverage.
    """
    found, gone = _present(corpus, range(len(corpus.shards)))
    return replace(found, coverage=corpus.coverage.with_failures(*gone.values()))


def _as_listed(shard: Shard) -> Shard:
    listed = shard.state
    if listed is None:
        return shard
    try:
        now = FileState.at(shard.uri)
    except OSError as error:
        raise ShardError(
            "{shard}: {}", Public(error.strerror), shard=shard.name,
            remedy=Remedy.FILE_EXISTED_WHEN_LISTED,
        ) from error  # fmt: skip
    if now.stamp != listed.stamp:
        raise ShardError(
            "{shard}: is not as it was when the plan was made", shard=shard.name,
            remedy=Remedy.COPY_WITH_TIMES_OR_PLAN_AGAIN,
        )  # fmt: skip
    return replace(shard, state=now)


def _described(corpus: Corpus, partial: Partial) -> dict[tuple[int, int], DocumentMeta]:
    """What is known of the documents that may become evidence; a shard may fail even here."""
    shards, rows = named_documents(partial.collections)
    wanted: dict[int, list[int]] = {}
    for shard, row in zip(shards.tolist(), rows.tolist(), strict=True):
        wanted.setdefault(shard, []).append(row)
    found = {}
    for shard, its_rows in wanted.items():
        try:
            metas = corpus.metadata(shard, its_rows)
        except ShardError as error:
            partial.read.add_failure(ShardFailure.of(shard, corpus.shards[shard].name, error))
            metas = [DocumentMeta("", None, None, None, None)] * len(its_rows)
        found.update({(shard, row): meta for row, meta in zip(its_rows, metas, strict=True)})
    return found


def _claim(folder: Path, opened: OpenPlan) -> None:
    """Make the folder, and say in it of which plan its parts are."""
    path = folder / PARTS_FILE
    said = {"tool": "contam", "format": FORMAT, "question": opened.question}
    with output_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if question_of_parts(folder)[0] != opened.question:
                raise OutputError(
                    "{} holds parts of another plan", folder, remedy=Remedy.CHOOSE_ANOTHER_FOLDER
                )
            return
        if foreign := sorted(entry.name for entry in folder.iterdir() if not _is_ours(entry)):
            raise OutputError(
                "{} holds other files: {}", folder, foreign[0], remedy=Remedy.CHOOSE_EMPTY_FOLDER
            )
    said["plan"] = str(opened.folder.resolve())
    # Of several workers that begin at once each writes the same.
    write_file(path, (json.dumps(said, indent=1) + "\n").encode(), overwrite=True)


def _is_ours(entry: Path) -> bool:
    return entry.name.endswith((".part", ".draft")) or entry.name == PARTS_FILE


def question_of_parts(folder: Path) -> tuple[str, Path]:
    """Digest of the question that the parts in a folder answer, and the folder of their plan.

    Raises OutputError for a folder that holds no parts.
    """
    try:
        said = json.loads(read_file(folder / PARTS_FILE))
        question, plan, form = str(said["question"]), Path(said["plan"]), said["format"]
    except OSError as error:
        raise OutputError(
            "{} holds no parts of a plan", folder, remedy=Remedy.GIVE_PARTS_FOLDER
        ).of_call() from error
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(
            "{} is not what contam wrote there", folder / PARTS_FILE,
            remedy=Remedy.GIVE_PARTS_FOLDER,
        ) from error  # fmt: skip
    if form != FORMAT:
        raise OutputError(
            "{} holds parts in another format ({})", folder, form, remedy=Remedy.PLAN_AGAIN_HERE
        )
    return question, plan


def is_done(opened: OpenPlan, folder: Path, lease: Lease) -> bool:
    """Whether a part is there, whole, and of a lease of which every shard could be read."""
    path = part_path(folder, lease.number)
    if not path.exists():
        return False
    try:
        part = read_part(path, opened.plan, opened.question)
    except OutputError:
        return False
    return not part.answer.failures and part.machine == machine()


def merge_parts(
    opened: OpenPlan,
    folders: Sequence[Path],
    *,
    workers: int = 1,
    started: float | None = None,
    progress: ScanProgress | None = None,
) -> ScanResult:
    """The result of a plan whose parts lie in these folders; the plan is used up by it.

    workers  threads that the record of the run names

    The shards of a lease without a part were not read, nor were those of a plan of this very run
    that have changed since they were listed. A lease of which several folders have equal
    parts counts once.

    Raises OutputError for parts of another plan, damaged ones, and unequal ones of one lease;
    CorpusError when nothing that was read has a text.
    """
    started = time.time() if started is None else started
    plan, corpus, whole = gathered_parts(opened, folders, progress=progress)
    return judge_partial(plan, corpus, whole, workers=workers, started=started)


def gathered_parts(
    opened: OpenPlan,
    folders: Sequence[Path],
    *,
    hits: Path | None = None,
    progress: ScanProgress | None = None,
) -> tuple[Plan, PlannedCorpus, Partial]:
    """The parts of a plan as one, with the plan and the corpus to judge them by: `merge_parts`.

    hits  a folder for the hits of parts that kept every one, in it a folder a view; None holds them
          in memory
    """
    for folder in folders:
        _refuse_unknown(folder, opened)
    plan = opened.plan
    whole = Partial.start(plan, opened.corpus)
    for number, collection in enumerate(whole.collections):
        if hits is not None and collection.shared.hits is not None:
            collection.shared.hits.folder = hits / f"view-{number}"
    documents: dict[tuple[int, int], DocumentMeta] = {}
    if progress is not None:
        progress.start(sum(lease.n_bytes for lease in opened.leases))
    for lease in opened.leases:
        part = _one_part(opened, folders, lease)
        if part is None:
            _note_unread(whole, opened, lease, _NO_PART.format(lease.number, len(opened.leases)))
            # A plan allows shards that cannot be read, not leases that nobody did.
            plan = replace(plan, parameters=replace(plan.parameters, allow_missing=False))
        else:
            whole.take(part.answer, opened.question)
            documents.update(part.documents)
        if progress is not None:
            progress.advance(lease.n_bytes)
    if progress is not None:
        progress.finish()
    if opened.is_own:
        failed = {failure.shard for failure in whole.coverage.failures}
        for failure in changed_shards(opened.corpus, range(len(opened.corpus.shards)), failed):
            whole.read.add_failure(failure)
    known = {name: getattr(opened.corpus, name) for name in Corpus.__dataclass_fields__}
    return plan, PlannedCorpus(**known, documents=documents), whole


def _one_part(opened: OpenPlan, folders: Sequence[Path], lease: Lease) -> Part | None:
    """The part of a lease, which must be the same in every folder that has one."""
    paths = [path for folder in folders if (path := part_path(folder, lease.number)).exists()]
    parts: dict[bytes, Path] = {}
    with output_errors(folders[0]):
        for path in paths:
            parts.setdefault(read_file(path), path)
    if not parts:
        return None
    first, *others = parts.values()
    part = read_part(first, opened.plan, opened.question)
    for other in others:
        read_part(other, opened.plan, opened.question)
        raise OutputError(
            "{} and {} differ, and are of the same lease", first, other,
            remedy=Remedy.DO_LEASE_AGAIN,
        )  # fmt: skip
    if part.machine != machine():
        raise OutputError(
            "{}: made on another kind of processor: {}, here {}", first, Public(part.machine),
            Public(machine()), remedy=Remedy.DO_LEASE_AGAIN,
        )  # fmt: skip
    expected = set(range(lease.first, lease.end))
    if part.lease != lease.number or part.answer.chunks != expected:
        raise OutputError("{}: is the part of another lease", first, remedy=Remedy.DO_LEASE_AGAIN)
    return part


def _refuse_unknown(folder: Path, opened: OpenPlan) -> None:
    question, _ = question_of_parts(folder)
    if question != opened.question:
        raise OutputError(
            "{} holds parts of another plan", folder, remedy=Remedy.GIVE_PARTS_OF_PLAN
        )
    known = {part_path(folder, lease.number) for lease in opened.leases}
    if other := sorted(path for path in folder.glob("*.part") if path not in known):
        raise OutputError(
            "{}: the plan has no such lease", other[0], remedy=Remedy.GIVE_PARTS_OF_PLAN
        )


def _note_unread(partial: Partial, opened: OpenPlan, lease: Lease, reason: str) -> None:
    corpus = opened.corpus
    for shard in sorted({chunk.shard for chunk in corpus.chunks[lease.first : lease.end]}):
        partial.read.add_failure(ShardFailure.noted(shard, corpus.shards[shard].name, reason))


def lease_by_number(opened: OpenPlan, number: int) -> Lease:
    """The lease with this number. Raises UsageError."""
    if not 1 <= number <= len(opened.leases):
        raise UsageError(
            "the plan has leases 1 to {}, not {}", len(opened.leases), number,
            remedy=Remedy.CHOOSE_LEASE,
        )  # fmt: skip
    return opened.leases[number - 1]
