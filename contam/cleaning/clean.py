"""Take the documents that hold benchmark items out of a corpus, and prove that they are gone."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from contam.cleaning.choice import CleanOptions, refuse_unfit
from contam.cleaning.findings import Findings, refuse_unread
from contam.cleaning.record import facts_of
from contam.cleaning.run import NAMES, Cleaned, Run
from contam.cleaning.work_folder import RECORD, WorkFolder, digest_of
from contam.detect.leases.cut import cut_leases
from contam.detect.leases.local import do_leases
from contam.detect.leases.plan_folder import question_of_leases
from contam.detect.parameters import CorpusOptions, ScanParameters
from contam.detect.scan import as_list, open_scan, worker_count
from contam.errors import Place, UsageError
from contam.files.addresses import NAME_LOCAL_FOLDER, is_address, refuse_address
from contam.files.publish import check_publishable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.leases.workshop import RayCluster
    from contam.detect.scan import Corpus, PathLike, ScanProgress


class CleaningOptions(CorpusOptions, total=False):
    """What `clean` may be told: of items and corpus, as `scan`; the others: see `CleanOptions`."""

    action: str
    labels: str | Sequence[str]
    exposures: str | Sequence[str]
    weights: Mapping[str, float] | None
    most: str | None
    around: int
    min_piece: int
    max_cuts: int | None
    keep_removed: bool


def clean(
    corpus: PathLike | Sequence[PathLike],
    benchmark: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    cluster: RayCluster | None = None,
    progress: ScanProgress | None = None,
    **options: Unpack[CleaningOptions],
) -> Cleaned:
    """Write a copy of a corpus without the documents, or the stretches, that hold benchmark items.

    corpus, benchmark  files, folders or globs, one or several
    out                a folder: `corpus/` with every shard, `removed/` with a table for each shard
                       that something was found in, and `clean.json`
    resume             go on from what an interrupted run had done

    Options: action ("drop", "mask", "cut" or "list"), labels, exposures, weights, most, around,
    min_piece, max_cuts and keep_removed, as `contam.cleaning.choice.CleanOptions` says; those of
    items and of the corpus are the ones of `contam.scan`.

    Raises ContamError subclasses: a shard that cannot be read, or what still matches after the last
    pass, is an error, and nothing is published.
    """
    started = time.time()
    chosen = CleanOptions.of(options)
    own = {one.name for one in fields(CleanOptions)}
    parameters = ScanParameters.of(
        {key: value for key, value in options.items() if key not in own},
        CorpusOptions.__optional_keys__,
        max_evidence=1,
        every_hit=True,
    )
    how = How(
        workers=worker_count(workers),
        overwrite=overwrite,
        resume=resume,
        cluster=cluster,
        progress=progress,
    )
    paths = as_list(corpus)
    refuse_nested(out, paths)
    if not resume:
        check_publishable(out, names=NAMES, last=RECORD, overwrite=overwrite)
    opened, plan = open_scan(paths, as_list(benchmark), parameters)
    question = question_of_run(question_of_leases(plan, opened, cut_leases(opened.chunks)), chosen)
    refuse_unfit(plan, chosen)
    refuse_shards_in(out, opened)
    refuse_unread(opened.coverage)
    work = WorkFolder.beside(out)
    if resume and (record := work.published(Path(out), question)) is not None:
        # It was killed between its last two steps.
        work.discard()
        return Cleaned(record=record, folder=Path(out))
    check_publishable(out, names=NAMES, last=RECORD, overwrite=overwrite)
    workshop = work.workshop(resume=resume, cluster=cluster)
    with work.alone() as lock:
        try:
            with workshop.held():
                planned = do_leases(opened, plan, workshop, workers=how.workers, progress=progress)
                found = Findings.of(planned, [workshop.parts], chosen)
            run = Run(
                corpus=opened,
                findings=found,
                question=question,
                workers=how.workers,
                started=started,
            )
            result = run.refused(kept=work.folder)
            if result is None:
                result = write_and_publish(run, work, lock, Path(out), how)
        except BaseException:
            if not (workshop.n_done() or work.n_done()):
                work.discard()
            raise
        if result.folder is not None:
            work.discard()
    return result


@dataclass(frozen=True, kw_only=True)
class How:
    """How a run goes about it; see `clean`."""

    workers: int
    overwrite: bool = False
    resume: bool = False
    cluster: RayCluster | None = None
    progress: ScanProgress | None = None


def write_and_publish(run: Run, work: WorkFolder, lock: list[int], out: Path, how: How) -> Cleaned:
    """Write the shards that are not done, and publish all; the folder of the run stays.

    lock  as `WorkFolder.alone` gives it
    """
    work.begin(run.question, resume=how.resume)
    writer = run.writer(work)
    numbers = range(len(run.corpus.shards))
    noted: dict[int, dict[str, Any]] = {}
    if how.cluster is not None:
        from contam.cleaning.on_cluster import write_on_cluster

        with work.joined(lock):
            noted = write_on_cluster(writer, run.findings.hits, how.cluster, how.progress)
    left = [number for number in numbers if number not in noted]
    if left:
        noted |= writer.write_all(left, how.workers, how.progress)
    return run.published(writer, noted, out, overwrite=how.overwrite)


def refuse_nested(out: PathLike, paths: Sequence[PathLike]) -> None:
    """Raise UsageError where the result would lie in the corpus, whose next scan would read it.

    It cannot lie in a store, either: there a shard cannot be made aside and put in its place.
    """
    refuse_address(out, "the folder of a cleaned corpus", NAME_LOCAL_FOLDER)
    home = Path(os.path.realpath(out))
    for path in paths:
        if is_address(str(path)):
            continue
        steps = Path(path).parts
        n_plain = next((n for n, step in enumerate(steps) if set(step) & set("*?[")), len(steps))
        folder = Path(os.path.realpath(Path(*steps[:n_plain])))
        if (n_plain == len(steps) or "**" in steps) and home.is_relative_to(folder):
            raise UsageError(
                "the result would lie in the corpus: {} in {}", Place(out), Place(path),
                hint="its files would be taken for corpus: choose a folder outside",
            )  # fmt: skip


def refuse_shards_in(out: PathLike, corpus: Corpus) -> None:
    """Raise UsageError where shards of the corpus lie where the result would.

    Folders in a corpus may be links: the result may not lie in what these lead to, either.
    """
    home = Path(os.path.realpath(out))
    folders: set[Path] = set()
    for shard in corpus.shards:
        if is_address(shard.uri):
            continue
        path = Path(shard.uri)
        if Path(os.path.realpath(path)).is_relative_to(home):
            raise UsageError(
                "the shard {} lies where the result would: in {}", Place(shard.name), Place(out),
                hint="choose another folder",
            )  # fmt: skip
        folders.update(path.parents[: len(Path(shard.name).parts) - 1])
    refuse_nested(out, sorted(folder for folder in folders if folder.is_symlink()))


def question_of_run(question: str, options: CleanOptions) -> str:
    """Digest of all that decides what is written: of a search, and of what is done with its finds.

    `most` only decides whether.
    """
    return digest_of(question, facts_of(replace(options, most=None)))
