"""Clean a corpus of what many workers found in it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from contam.cleaning.clean import Search, clean_searched, refuse_nested
from contam.detect.leases.parts_folder import question_of_parts
from contam.detect.leases.plan_folder import open_plan
from contam.detect.leases.work import gathered_parts, here
from contam.errors import UsageError
from contam.files.uploads import place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from contam.cleaning.choice import CleanOptions
    from contam.cleaning.clean import How
    from contam.cleaning.run import Cleaned
    from contam.detect.partial import Partial
    from contam.detect.scan import PathLike


def clean_parts(
    parts: Sequence[PathLike],
    out: PathLike,
    options: CleanOptions,
    how: How,
    plan: PathLike | None = None,
) -> Cleaned:
    """Write a cleaned copy of a corpus that workers searched on a plan, see `contam.clean`.

    parts  folders with the parts of all leases;  plan  where it is now, unless the parts know

    Raises UsageError for a plan that was not made to clean, IncompleteError when a lease has no
    part or a shard is not as it was when the plan was made.
    """
    started = time.time()
    folders = [place(folder) for folder in parts]
    opened = open_plan(plan or question_of_parts(folders[0])[1], with_items=True)
    if not opened.plan.parameters.every_hit:
        raise UsageError(
            "the plan was not made to clean: it keeps only some documents of each item",
            hint="make it with `every_hit` (`contam plan --to-clean`), and do its leases again",
        )
    refuse_nested(out, opened.corpus.paths)
    corpus = here(opened.corpus)

    def gather(hits: Path, begin: Callable[[], None]) -> Partial:
        begin()
        return gathered_parts(opened, folders, hits=hits, progress=how.progress)[2]

    search = Search(
        corpus=corpus,
        plan=opened.plan,
        question=opened.question,
        gather=gather,
        n_done=lambda: 0,
    )
    return clean_searched(search, out, options, how, started)
