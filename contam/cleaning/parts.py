"""Clean a corpus of what many workers found in it, on one machine or several."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.cleaning.choice import refuse_unfit
from contam.cleaning.clean import (
    question_of_run,
    refuse_nested,
    refuse_shards_in,
    write_and_publish,
)
from contam.cleaning.findings import Findings, refuse_unread
from contam.cleaning.run import NAMES, Cleaned, Run
from contam.cleaning.shares import share_of
from contam.cleaning.work_folder import RECORD, WorkFolder, published_record
from contam.detect.leases.parts_folder import question_of_parts
from contam.detect.leases.plan_folder import open_plan
from contam.detect.leases.work import here, present
from contam.errors import UsageError
from contam.files.publish import check_publishable
from contam.files.uploads import place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.cleaning.choice import CleanOptions
    from contam.cleaning.clean import How
    from contam.detect.leases.plan_folder import OpenPlan
    from contam.detect.scan import PathLike

#: What helps where shards could not be read, which the plan has settled.
_UNREAD: Final = "repair them and do their leases again, or make a new plan"


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one of several workers did.

    done, kept  names of shards that it wrote, and of those of its share that were there before
    n_shards    shards of all workers
    """

    done: tuple[str, ...]
    kept: tuple[str, ...]
    n_shards: int


def clean_parts(
    parts: Sequence[PathLike],
    out: PathLike,
    options: CleanOptions,
    how: How,
    plan: PathLike | None = None,
) -> Cleaned:
    """Write a cleaned copy of a corpus that workers searched on a plan, see `contam.clean`.

    Shards that `clean_share` has written are looked at and taken.

    parts  folders with the parts of all leases;  plan  where it is now, unless the parts know

    Raises UsageError for a plan that was not made to clean, IncompleteError when a lease has no
    part or a shard is not as it was when the plan was made, and OutputError while others write.
    """
    started = time.time()
    folders = [place(folder) for folder in parts]
    opened = _opened(folders, out, options, plan)
    corpus = here(opened.corpus)
    refuse_unread(corpus.coverage, _UNREAD)
    question = question_of_run(opened.question, options)
    work = WorkFolder.beside(out)
    if (record := work.published(Path(out), question)) is not None:
        # It was killed between its last two steps.
        work.discard()
        return Cleaned(record=record, folder=Path(out))
    check_publishable(out, names=NAMES, last=RECORD, overwrite=how.overwrite)
    run = Run(
        corpus=corpus,
        findings=Findings.of(opened, folders, options, how.progress, unread=_UNREAD),
        question=question,
        workers=how.workers,
        started=started,
    )
    counted = run.refused()
    if counted is not None:
        return counted
    with work.alone() as lock:
        try:
            result = write_and_publish(run, work, lock, Path(out), how)
        except BaseException:
            if not work.n_done():
                work.discard()
            raise
        work.discard()
    return result


def clean_share(
    parts: Sequence[PathLike],
    out: PathLike,
    options: CleanOptions,
    how: How,
    share: tuple[int, int],
    plan: PathLike | None = None,
) -> Share | Cleaned:
    """Write the shards of one of several workers, for `clean_parts` to publish.

    share  the number of the worker, from 0, and how many there are

    Nothing is written, and what would go is returned, where more would go than `options.most`.

    Raises as `clean_parts`, and OutputError where others have begun with other options.
    """
    folders = [place(folder) for folder in parts]
    opened = _opened(folders, out, options, plan)
    corpus = opened.corpus
    refuse_unread(corpus.coverage, _UNREAD)
    run = Run(
        corpus=corpus,
        findings=Findings.of(opened, folders, options, how.progress, unread=_UNREAD),
        question=question_of_run(opened.question, options),
        workers=how.workers,
        started=time.time(),
    )
    counted = run.refused()
    if counted is not None:
        return counted
    sizes = [shard.size_bytes for shard in corpus.shards]
    numbers = share_of(sizes, run.findings.touched, *share)
    names = {number: corpus.shards[number].name for number in numbers}
    all_there = Share(done=(), kept=tuple(names.values()), n_shards=len(sizes))
    if published_record(Path(out), run.question) is not None:
        return all_there
    check_publishable(out, names=NAMES, last=RECORD, overwrite=how.overwrite)
    found, gone = present(corpus, numbers)
    refuse_unread(corpus.coverage.with_failures(*gone.values()), _UNREAD)
    work = WorkFolder.beside(out)
    with work.shared():
        if published_record(Path(out), run.question) is not None:
            # Published since, which had the folder removed.
            work.discard()
            return all_there
        work.begin(run.question, shared=True)
        writer = run.writer(work, found)
        kept = tuple(name for number, name in names.items() if writer.known(number) is not None)
        left = [number for number, name in names.items() if name not in kept]
        writer.write_all(left, how.workers, how.progress)
    done = tuple(names[number] for number in left)
    return Share(done=done, kept=kept, n_shards=len(sizes))


def _opened(
    folders: Sequence[Path], out: PathLike, options: CleanOptions, plan: PathLike | None
) -> OpenPlan:
    """The plan, which must be one to clean by. Raises UsageError."""
    opened = open_plan(plan or question_of_parts(folders[0])[1], with_items=True)
    if not opened.plan.parameters.every_hit:
        raise UsageError(
            "the plan was not made to clean: it keeps only some documents of each item",
            hint="make it with `contam plan --to-clean`, and do its leases again",
        )
    refuse_nested(out, opened.corpus.paths)
    refuse_unfit(opened.plan, options)
    refuse_shards_in(out, opened.corpus)
    return opened
