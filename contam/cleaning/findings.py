"""Say what the parts of a search found in a corpus, without holding all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from contam.cleaning.choice import choice_of, judged
from contam.cleaning.shard import Cleaning
from contam.cleaning.writer import counts_of
from contam.detect.corpus_checks import refuse_without_text, undecoded_shards
from contam.detect.leases.parts_folder import hits_in
from contam.detect.leases.work import gathered_parts
from contam.detect.match.hits import Hits
from contam.errors import Hint, IncompleteError, InternalError, Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contam.cleaning.choice import CleanOptions
    from contam.corpus.coverage import Coverage
    from contam.detect.leases.plan_folder import OpenPlan
    from contam.detect.model import Int8s
    from contam.detect.scan import ScanProgress

_EXCLUDE_SHARDS: Final = (
    "repair them, or leave them out with --exclude NAME: they are not in the result either"
)


_NAMED: Final = 3


@dataclass(frozen=True, eq=False)
class PartHits:
    """The hits in the parts of a search: those of a lease at a time are read.

    opened  the plan
    paths   the part of each lease, by its number
    """

    opened: OpenPlan
    paths: Mapping[int, Path]

    def of_lease(self, number: int) -> tuple[Hits, ...]:
        """The hits of a lease, by view. Raises OutputError."""
        return hits_in(self.opened, self.paths[number], self.opened.leases[number - 1])

    def of_shard(self, shard: int) -> dict[int, Hits]:
        """The hits of a shard, by view. Raises OutputError."""
        chunks = self.opened.corpus.chunks
        found = [
            self.of_lease(lease.number)
            for lease in self.opened.leases
            if chunks[lease.first].shard <= shard <= chunks[lease.end - 1].shard
        ]
        return {
            view: Hits.concat([_of_shard(hits, shard) for hits in tables]).in_order()
            for view, tables in enumerate(zip(*found, strict=True))
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """What a search found.

    labels   int8[n, p], of every item and policy, before anything is taken out
    touched  what goes of each shard that something goes of, by its number
    sha256   of the shards as they were searched
    """

    coverage: Coverage
    cleaning: Cleaning
    labels: Int8s
    touched: dict[int, dict[str, Any]]
    hits: PartHits
    sha256: Mapping[int, str]

    @classmethod
    def of(
        cls,
        opened: OpenPlan,
        folders: Sequence[Path],
        options: CleanOptions,
        progress: ScanProgress | None = None,
        *,
        unread: Hint = _EXCLUDE_SHARDS,
    ) -> Self:
        """What lies in the parts of a plan in these folders.

        unread  what helps where shards could not be read

        Raises IncompleteError unless everything was read, and OutputError as `merge_parts`.
        """
        found = gathered_parts(opened, folders, progress=progress)
        if len(found.paths) < len(opened.leases):
            missing = [one.number for one in opened.leases if one.number not in found.paths]
            raise IncompleteError(
                "{} of {} leases have no part in {}, the first is lease {}: the search is not done",
                len(missing),
                len(opened.leases),
                Place(", ".join(map(str, folders))),
                missing[0],
                hint=(
                    "wait until `contam scan --plan` has done the other leases, and repeat the call"
                ),
            )
        coverage = found.whole.coverage
        coverage = coverage.with_failures(*undecoded_shards(opened.corpus, coverage))
        refuse_unread(coverage, unread)
        if not coverage.complete:
            raise InternalError("a shard was neither read nor failed")
        refuse_without_text(coverage, allow_missing=False)
        plan = opened.plan
        labels, n_documents = judged(plan, found.whole.collections)
        cleaning = Cleaning(
            plan=plan,
            options=options,
            choice=choice_of(plan, options, labels),
            after=choice_of(plan, options, labels, n_documents),
        )
        hits = PartHits(opened, found.paths)
        return cls(
            coverage=coverage,
            cleaning=cleaning,
            labels=labels,
            touched=_touched(hits, cleaning),
            hits=hits,
            sha256=found.sha256,
        )

    @property
    def n_found(self) -> int:
        """Documents that go."""
        return sum(shard["found"] for shard in self.touched.values())


def refuse_unread(coverage: Coverage, hint: Hint = _EXCLUDE_SHARDS) -> None:
    """Raise IncompleteError where shards could not be read: nobody knows what is in them."""
    if coverage.complete or not coverage.failures:
        return
    failures = coverage.failures
    more = f" and {len(failures) - _NAMED:,} more" if len(failures) > _NAMED else ""
    said = "; ".join(
        # Most reasons begin with the shard's name.
        f"{one.name}: {one.reason.removeprefix(f'{one.name}: ')}"
        for one in failures[:_NAMED]
    )
    raise IncompleteError(
        "{} of {} shards could not be read, and what is in them cannot be taken out: {}{}",
        len(failures), len(coverage.names), Place(said), more, hint=hint,
    )  # fmt: skip


def _touched(hits: PartHits, cleaning: Cleaning) -> dict[int, dict[str, Any]]:
    """What goes of each shard, lease by lease: a row is in one lease."""
    opened = hits.opened
    touched: dict[int, dict[str, Any]] = {}
    for lease in opened.leases:
        tables = hits.of_lease(lease.number)
        for shard in sorted({n for table in tables for n in table.shard.tolist()}):
            found = cleaning.choice.documents(
                {view: _of_shard(table, shard) for view, table in enumerate(tables)}
            )
            if not found:
                continue
            counts = counts_of(opened.plan.items.names().__getitem__, found)
            facts = touched.setdefault(
                shard,
                {
                    "name": opened.corpus.shards[shard].name,
                    "found": 0,
                    "benchmarks": {},
                    "items": [],
                },
            )
            facts["found"] += len(found)
            sums = facts["benchmarks"]
            for name, n in counts["benchmarks"].items():
                sums[name] = sums.get(name, 0) + n
            facts["benchmarks"] = dict(sorted(sums.items()))
            facts["items"] = sorted({*facts["items"], *counts["items"]})
    return dict(sorted(touched.items()))


def _of_shard(hits: Hits, shard: int) -> Hits:
    return hits.take(np.flatnonzero(hits.shard == shard))
