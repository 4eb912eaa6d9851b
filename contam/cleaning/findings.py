"""Say what the parts of a search found in a corpus, without holding all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from contam.cleaning.choice import choice_of, judged
from contam.cleaning.shard import Cleaning
from contam.cleaning.writer import counts_of
from contam.detect.corpus_checks import refuse_without_text, undecoded_shards
from contam.detect.match.hits import Hits
from contam.detect.parts.part import hits_placed
from contam.errors import IncompleteError, InternalError, Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.cleaning.choice import CleanOptions
    from contam.corpus.coverage import Coverage
    from contam.detect.model import Int8s
    from contam.detect.parts.division import Division
    from contam.detect.parts.part_store import PartStore
    from contam.detect.parts.pieces import Piece
    from contam.detect.parts.search import Searched
    from contam.detect.plan import Plan
    from contam.detect.scan import Corpus

_EXCLUDE_SHARDS: Final = (
    "repair them, or leave them out with --exclude NAME: they are not in the result either"
)


_NAMED: Final = 3


@dataclass(frozen=True, eq=False)
class PartHits:
    """The hits in the parts of a search: those of a piece at a time are read."""

    plan: Plan
    pieces: Sequence[Piece]
    store: PartStore

    def of_piece(self, piece: Piece) -> tuple[Hits, ...]:
        """The hits of a piece, by view. Raises OutputError."""
        return tuple(hits_placed(hits, piece.shards) for hits in self.store.hits(piece, self.plan))

    def of_shard(self, shard: int) -> dict[int, Hits]:
        """The hits of a shard, by view. Raises OutputError."""
        found = [self.of_piece(piece) for piece in self.pieces if shard in piece.shards]
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
    def of(cls, found: Searched, corpus: Corpus, division: Division, options: CleanOptions) -> Self:
        """What a search has found, whose parts are kept.

        Raises IncompleteError unless everything was read, and OutputError.
        """
        coverage = found.whole.coverage
        coverage = coverage.with_failures(*undecoded_shards(corpus, coverage))
        refuse_unread(coverage)
        if not coverage.complete:
            raise InternalError("a shard was neither read nor failed")
        refuse_without_text(coverage, allow_missing=False)
        plan = found.plan
        labels, n_documents = judged(plan, found.whole.collections)
        cleaning = Cleaning(
            plan=plan,
            options=options,
            choice=choice_of(plan, options, labels),
            after=choice_of(plan, options, labels, n_documents),
        )
        store = division.store
        if store is None:
            raise InternalError("the parts of a search for every hit are kept")
        hits = PartHits(plan, found.pieces, store)
        return cls(
            coverage=coverage,
            cleaning=cleaning,
            labels=labels,
            touched=_touched(hits, cleaning, corpus),
            hits=hits,
            sha256=found.sha256,
        )

    @property
    def n_found(self) -> int:
        """Documents that go."""
        return sum(shard["found"] for shard in self.touched.values())


def refuse_unread(coverage: Coverage) -> None:
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
        len(failures), len(coverage.names), Place(said), more, hint=_EXCLUDE_SHARDS,
    )  # fmt: skip


def _touched(hits: PartHits, cleaning: Cleaning, corpus: Corpus) -> dict[int, dict[str, Any]]:
    """What goes of each shard, piece by piece: a row is in one piece."""
    touched: dict[int, dict[str, Any]] = {}
    for piece in hits.pieces:
        tables = hits.of_piece(piece)
        for shard in sorted({n for table in tables for n in table.shard.tolist()}):
            found = cleaning.choice.documents(
                {view: _of_shard(table, shard) for view, table in enumerate(tables)}
            )
            if not found:
                continue
            counts = counts_of(hits.plan.items.names().__getitem__, found)
            facts = touched.setdefault(
                shard,
                {
                    "name": corpus.shards[shard].name,
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
