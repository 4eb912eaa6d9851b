"""Work on the leases of a plan, wherever it was copied to, and merge the parts.

Every worker writes a part for each of its leases into one folder; a part is there whole or not at
all. A merge gives the bytes of one scan, whoever did which lease, and how often.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from contam.corpus.coverage import ShardFailure
from contam.corpus.documents import DocumentMeta
from contam.corpus.each import of_each_readable
from contam.corpus.shards import file_sha256
from contam.detect.chunk_scan import scan_chunks
from contam.detect.corpus_checks import changed_shards
from contam.detect.judge import judge_partial
from contam.detect.leases.cut import cut_leases
from contam.detect.leases.part_file import Part, part_bytes
from contam.detect.leases.parts_folder import claim_leases, one_part, parts_by_lease, write_part
from contam.detect.leases.plan_folder import OpenPlan, machine
from contam.detect.partial import Partial
from contam.detect.sources import named_documents
from contam.errors import Public, ShardError, UsageError
from contam.files.listed import FileState, not_answered
from contam.files.stores import StoreError
from contam.files.uploads import place

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping, Sequence

    from contam.corpus.shards import Shard
    from contam.detect.leases.cut import Lease
    from contam.detect.plan import Plan
    from contam.detect.result import ScanResult
    from contam.detect.scan import Corpus, ScanProgress

#: Documents that a merge may describe before it drops those that nothing names any more.
_LEAST_KEPT: Final = 100_000
#: In place of the digest of what was asked, for parts that never leave this process.
_OWN: Final = ""
_NOTHING_KNOWN: Final = [DocumentMeta("", None, None, None, None)]
_NO_PART: Final = "lease {} of {} has no part"


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a worker did.

    done, kept  numbers of leases that were worked on, and whose parts were there before
    not_whole   those among the done ones of which a shard could not be read
    failures    shards that could not be read
    """

    done: tuple[int, ...]
    kept: tuple[int, ...]
    not_whole: tuple[int, ...]
    failures: tuple[ShardFailure, ...]


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
    folder = place(parts)
    kept, waiting, replaced = claim_leases(opened, leases, folder)
    failures: list[ShardFailure] = []
    done: list[int] = []
    not_whole: list[int] = []
    if progress is not None:
        progress.start(sum(lease.n_bytes for lease in waiting))
    for lease in waiting:
        part = scan_lease(opened, lease, workers=workers, progress=progress)
        if part.answer.failures and claim_leases(opened, [lease], folder).kept:
            # Meanwhile another worker could read all of it.
            kept.append(lease)
            continue
        write_part(folder, lease.number, part_bytes(part), replaced.get(lease.number, ()))
        done.append(lease.number)
        failures += part.answer.failures
        not_whole += [lease.number] if part.answer.failures else []
    if progress is not None:
        progress.finish()
    return Work(
        done=tuple(done),
        kept=tuple(lease.number for lease in kept),
        not_whole=tuple(not_whole),
        failures=tuple(failures),
    )


def scan_leases(
    plan: Plan, corpus: Corpus, *, workers: int, progress: ScanProgress | None = None
) -> Partial:
    """What is found in a corpus, lease by lease, with the parts in memory alone.

    Shards are not compared with what was listed: that is done once, when all were read.
    """
    leases = cut_leases(corpus.chunks)
    opened = OpenPlan(
        folder=Path(), question=_OWN, leases=leases, plan=plan, corpus=corpus, is_own=True
    )
    whole = Partial.start(plan, corpus)
    for lease in leases:
        part = scan_lease(opened, lease, workers=workers, progress=progress, compared=False)
        whole.take(part.answer, _OWN)
        whole.found.merge(part.documents)
        whole.found.shrink(whole.collections)
    return whole


def failed_part(opened: OpenPlan, lease: Lease, reason: str) -> Part:
    """The part of a lease that nobody could do: none of its shards was read."""
    partial = Partial.start(opened.plan, opened.corpus)
    partial.chunks.update(range(lease.first, lease.end))
    _note_unread(partial, opened, lease, reason)
    return Part(lease=lease.number, machine=machine(), answer=partial.answer(opened.question))


def scan_lease(
    opened: OpenPlan,
    lease: Lease,
    *,
    workers: int,
    progress: ScanProgress | None = None,
    stop: threading.Event | None = None,
    compared: bool = True,
) -> Part:
    """Search the chunks of a lease, and describe the documents that were found.

    stop      as for `contam.detect.chunk_scan.scan_chunks`
    compared  whether shards are compared with what was listed, when the lease is done
    """
    chunks = opened.corpus.chunks[lease.first : lease.end]
    numbers = sorted({chunk.shard for chunk in chunks})
    corpus, gone = (opened.corpus, {}) if opened.is_own else present(opened.corpus, numbers)
    readable = [chunk for chunk in chunks if chunk.shard not in gone]
    partial = scan_chunks(
        opened.plan, corpus, workers=workers, chunks=readable, progress=progress, stop=stop
    )
    for failure in gone.values():
        partial.read.add_failure(failure)
    partial.chunks.update(range(lease.first, lease.end))
    documents = _described(replace(corpus, documents=partial.found.known), partial)
    failed = {failure.shard for failure in partial.read.failures}
    sha256: Mapping[int, str] = {}
    if opened.plan.parameters.every_hit:
        whole = [number for number in numbers if number not in failed]
        if not lease.first:
            # No lease has a chunk of these: what comes to stand in them was not searched.
            known = {chunk.shard for chunk in opened.corpus.chunks}
            known.update(failure.shard for failure in opened.corpus.coverage.failures)
            whole += [number for number in range(len(corpus.shards)) if number not in known]
        sha256, unread = of_each_readable(lambda _, shard: file_sha256(shard), corpus.shards, whole)
        for failure in unread:
            partial.read.add_failure(failure)
        failed.update(failure.shard for failure in unread)
    for failure in changed_shards(corpus, numbers if compared else (), failed):
        partial.read.add_failure(failure)
    return Part(
        lease=lease.number,
        machine=machine(),
        answer=partial.answer(opened.question),
        documents=documents,
        sha256=sha256,
    )


def present(corpus: Corpus, numbers: Sequence[int]) -> tuple[Corpus, dict[int, ShardFailure]]:
    """The corpus with these shards as they are on this machine, and those that are not as listed.

    On another machine a file has another device and inode, and the same size and time of writing.
    """
    found, failures = of_each_readable(lambda _, shard: as_listed(shard), corpus.shards, numbers)
    shards = tuple(found.get(number, shard) for number, shard in enumerate(corpus.shards))
    return replace(corpus, shards=shards), {failure.shard: failure for failure in failures}


def here(corpus: Corpus) -> Corpus:
    """The corpus of a plan with its shards as they are on this machine.

    A shard that is not as it was when the plan was made is a failure in the coverage.
    """
    found, gone = present(corpus, range(len(corpus.shards)))
    return replace(found, coverage=corpus.coverage.with_failures(*gone.values()))


def as_listed(shard: Shard) -> Shard:
    """A shard of a plan as it is on this machine. Raises ShardError if it is not as it was."""
    listed = shard.state
    if listed is None:
        return shard
    try:
        now = FileState.at(shard.uri)
    except StoreError as error:
        raise not_answered(shard.uri, error).renamed(shard.uri, shard.name) from error
    except OSError as error:
        raise ShardError(
            "{shard}: {}", Public(error.strerror), shard=shard.name,
            hint="it existed when the shards were listed",
        ) from error  # fmt: skip
    if now.stamp != listed.stamp:
        raise ShardError(
            "{shard}: is not as it was when the plan was made", shard=shard.name,
            hint="copy the corpus with its times (rsync -a, cp -p), or make the plan again",
        )  # fmt: skip
    return replace(shard, state=now)


def _described(corpus: Corpus, partial: Partial) -> dict[tuple[int, int], DocumentMeta]:
    """What is known of the documents that may become evidence.

    A shard that has changed, or cannot be reached any more, is a failure even here.
    """
    shards, rows = named_documents(partial.collections)
    wanted: dict[int, list[int]] = {}
    for number, row in zip(shards.tolist(), rows.tolist(), strict=True):
        wanted.setdefault(number, []).append(row)
    told, failures = of_each_readable(
        lambda number, _: corpus.metadata(number, wanted[number]), corpus.shards, [*wanted]
    )
    for failure in failures:
        partial.read.add_failure(failure)
    return {
        (number, row): meta
        for number, its_rows in wanted.items()
        for row, meta in zip(
            its_rows, told.get(number) or _NOTHING_KNOWN * len(its_rows), strict=True
        )
    }


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
    parts counts once; of different ones, see `contam.detect.leases.parts_folder.one_part`.

    Raises OutputError for parts of another plan, damaged ones, and unequal ones of one lease;
    CorpusError when nothing that was read has a text.
    """
    started = time.time() if started is None else started
    first = gathered_parts(opened, folders, progress=progress)
    return judge_partial(first.plan, first.corpus, first.whole, workers=workers, started=started)


class Gathered(NamedTuple):
    """The parts of a plan as one, with the plan and the corpus to judge them by.

    whole  without the hits of parts that kept every one: nobody could hold them
    paths  the part that counts, by the number of its lease
    sha256  of the shards that were searched for a cleaning, by their numbers
    """

    plan: Plan
    corpus: Corpus
    whole: Partial
    paths: Mapping[int, Path]
    sha256: Mapping[int, str]


def gathered_parts(
    opened: OpenPlan, folders: Sequence[Path], *, progress: ScanProgress | None = None
) -> Gathered:
    """The parts of a plan as one; see `merge_parts`."""
    parts = parts_by_lease(opened, [place(folder) for folder in folders])
    plan = opened.plan
    paths: dict[int, Path] = {}
    sha256: dict[int, str] = {}
    gathered = _Gathering(opened)
    if progress is not None:
        progress.start(sum(lease.n_bytes for lease in opened.leases))
    for lease in opened.leases:
        if lease.number not in parts:
            reason = _NO_PART.format(lease.number, len(opened.leases))
            _note_unread(gathered.whole, opened, lease, reason)
            # A plan allows shards that cannot be read, not leases that nobody did.
            plan = replace(plan, parameters=replace(plan.parameters, allow_missing=False))
        else:
            part, passed_over = one_part(opened, parts[lease.number], lease)
            paths[lease.number] = next(p for p in parts[lease.number] if p not in passed_over)
            if passed_over and progress is not None:
                progress.note(f"{passed_over[0]} was passed over: of lease {lease.number} another "
                              "part was read further")  # fmt: skip
            gathered.take(part)
            for number, found in part.sha256.items():
                if sha256.setdefault(number, found) != found:
                    gathered.whole.read.add_failure(_changed_meanwhile(number, opened.corpus))
        if progress is not None:
            progress.advance(lease.n_bytes)
    if progress is not None:
        progress.finish()
    whole = gathered.whole
    if opened.is_own:
        failed = {failure.shard for failure in whole.coverage.failures}
        for failure in changed_shards(opened.corpus, range(len(opened.corpus.shards)), failed):
            whole.read.add_failure(failure)
    # All of them were described by those who read them.
    corpus = replace(opened.corpus, documents=gathered.documents)
    return Gathered(plan, corpus, whole, paths, sha256)


def _changed_meanwhile(number: int, corpus: Corpus) -> ShardFailure:
    name = corpus.shards[number].name
    error = ShardError(
        "{shard}: was written to between two leases", shard=name,
        hint="let nobody write to the corpus while it is read",
    )  # fmt: skip
    return ShardFailure.of(number, name, error)


class _Gathering:
    """What all parts say together."""

    def __init__(self, opened: OpenPlan) -> None:
        self._question = opened.question
        self.whole = Partial.start(opened.plan, opened.corpus)
        self.documents: dict[tuple[int, int], DocumentMeta] = {}
        self._most = _LEAST_KEPT

    def take(self, part: Part) -> None:
        """Add what a part says."""
        collected = tuple(replace(each, hits=None) for each in part.answer.collected)
        self.whole.take(replace(part.answer, collected=collected), self._question)
        self.documents.update(part.documents)
        if len(self.documents) > self._most:
            self.documents = _still_named(self.documents, self.whole)
            self._most = max(_LEAST_KEPT, 2 * len(self.documents))


def _still_named(
    documents: Mapping[tuple[int, int], DocumentMeta], whole: Partial
) -> dict[tuple[int, int], DocumentMeta]:
    """Those that verdicts or evidence may name in the end: they grow with items, not with leases.

    What the best of some parts have displaced never comes back.
    """
    shards, rows = named_documents(whole.collections)
    named = zip(shards.tolist(), rows.tolist(), strict=True)
    return {place: documents[place] for place in named if place in documents}


def _note_unread(partial: Partial, opened: OpenPlan, lease: Lease, reason: str) -> None:
    corpus = opened.corpus
    for shard in sorted({chunk.shard for chunk in corpus.chunks[lease.first : lease.end]}):
        partial.read.add_failure(ShardFailure.noted(shard, corpus.shards[shard].name, reason))


def lease_by_number(opened: OpenPlan, number: int) -> Lease:
    """The lease with this number. Raises UsageError."""
    if not 1 <= number <= len(opened.leases):
        raise UsageError(
            "the plan has leases 1 to {}, not {}", len(opened.leases), number,
            hint="plan.json lists the leases",
        )  # fmt: skip
    return opened.leases[number - 1]
