"""Write every hit of a search beside its verdicts, and read those of a shard back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from contam.benchmark.items import ItemName
from contam.detect.match.pieces import Hits
from contam.detect.parts.part_store import hits_placed
from contam.detect.policies.common import EXPOSURES
from contam.detect.report import damaged
from contam.tables import hit_table, schemas
from contam.tables.schemas import Repeated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.detect.parts.part_store import Part, PartStore
    from contam.detect.parts.pieces import Piece
    from contam.detect.plan import Plan
    from contam.tables.schemas import Table


@dataclass(frozen=True, eq=False)
class PartHits:
    """The hits in the parts of a search; those of a piece at a time are read.

    store  where the parts are kept; without one their hits are held
    """

    plan: Plan
    store: PartStore | None
    _pieces: list[Piece] = field(default_factory=list)
    _held: dict[str, tuple[Hits, ...]] = field(default_factory=dict)

    def add(self, piece: Piece, part: Part) -> None:
        """A part was found."""
        self._pieces.append(piece)
        if self.store is None and self.plan.parameters.every_hit:
            self._held[piece.name] = part.hits

    def by_piece(self) -> Iterator[tuple[Hits, ...]]:
        """The hits of each piece, by view, in the order of the corpus. Raises OutputError."""
        for piece in sorted(self._pieces, key=lambda piece: piece.first):
            yield self._of_piece(piece)

    def by_shard(self) -> Iterator[tuple[int, dict[int, Hits]]]:
        """Shards that have hits, and these, piece by piece: a row is in one. Raises OutputError."""
        for tables in self.by_piece():
            for shard in sorted({n for table in tables for n in table.shard.tolist()}):
                yield shard, {view: _in_shard(hits, shard) for view, hits in enumerate(tables)}

    def of_shard(self, shard: int) -> dict[int, Hits]:
        """The hits of a shard, by view. Raises OutputError."""
        found = [self._of_piece(piece) for piece in self._pieces if shard in piece.shards]
        return {
            view: Hits.concat([_in_shard(hits, shard) for hits in tables]).in_order()
            for view, tables in enumerate(zip(*found, strict=True))
        }

    def _of_piece(self, piece: Piece) -> tuple[Hits, ...]:
        store = self.store
        found = self._held[piece.name] if store is None else store.hits(piece)
        return tuple(hits_placed(hits, piece.shards) for hits in found)


def _in_shard(hits: Hits, shard: int) -> Hits:
    return hits.take(np.flatnonzero(hits.shard == shard))


def table_of_hits(plan: Plan, shards: Sequence[str], hits: Sequence[Hits]) -> Table:
    """Hits of each view as rows of hits.parquet: by shard, row and item; shards  their names."""
    tables = []
    for view, found in enumerate(hits):
        policies = [
            policy.spec.id for policy, at in zip(plan.policies, plan.view_of, strict=True)
            if at == view
        ]  # fmt: skip
        counted_at = np.nonzero(found.counted)[1]
        columns = {
            **{name: Repeated(plan.items.column(name), found.item) for name in ItemName._fields},
            "shard": Repeated(shards, found.shard),
            "row": found.row,
            "policy": hit_table.text_lists(policies, counted_at, found.counted.sum(axis=1)),
            "exposure": Repeated(EXPOSURES, found.exposure),
            "spans": hit_table.span_lists(found.start, found.end, found.n_spans),
        }
        tables.append(schemas.table_of(columns, hit_table.HITS))
    together = schemas.concatenated(tables)
    keys = [
        np.concatenate([getattr(one, name) for one in hits]) for name in ("item", "row", "shard")
    ]
    return schemas.take(together, np.lexsort(keys))


@dataclass(frozen=True, eq=False)
class HitFile:
    """The hits of a result that was made of the same plan; those of a shard at a time are read.

    shards  the names of the corpus's shards, by number
    """

    path: Path
    plan: Plan
    shards: Sequence[str]

    @cached_property
    def _items(self) -> dict[ItemName, int]:
        return {name: number for number, name in enumerate(self.plan.items.names())}

    def by_shard(self) -> Iterator[tuple[int, dict[int, Hits]]]:
        """The number of each shard that has hits, and these. Raises OutputError."""
        numbers = {name: number for number, name in enumerate(self.shards)}
        try:
            names = hit_table.hit_shards(self.path)
        except (OSError, ValueError) as error:
            raise damaged(self.path) from error
        for name in names:
            yield numbers[name], self.of_shard(numbers[name])

    def of_shard(self, shard: int) -> dict[int, Hits]:
        """The hits of a shard that has some, by view. Raises OutputError."""
        try:
            table = hit_table.read_hits(self.path, self.shards[shard])
            return self._hits(table, shard)
        except (OSError, ValueError, KeyError) as error:
            raise damaged(self.path) from error

    def _hits(self, table: Table, shard: int) -> dict[int, Hits]:
        names, n_policies = hit_table.listed(table, "policy")
        number = {policy.spec.id: at for at, policy in enumerate(self.plan.policies)}
        policy = np.array([number[name] for name in names], np.int64)
        counted = np.zeros((len(table), len(number)), np.bool_)
        counted[np.repeat(np.arange(len(table)), n_policies), policy] = True
        columns = [schemas.column(table, name) for name in ItemName._fields]
        start, end, n_spans = hit_table.stretches(table)
        whole = Hits(
            item=np.array(
                [self._items[ItemName(*name)] for name in zip(*columns, strict=True)], np.int32
            ),
            shard=np.full(len(table), shard, np.int32),
            row=np.array(schemas.column(table, "row"), np.int64),
            counted=counted,
            exposure=np.array(
                [EXPOSURES.index(name) for name in schemas.column(table, "exposure")], np.int8
            ),
            n_spans=n_spans,
            start=start,
            end=end,
        )
        view_of = np.array(self.plan.view_of)
        found = {}
        for view in range(len(self.plan.views)):
            own = np.flatnonzero(view_of == view)
            some = whole.take(np.flatnonzero(counted[:, own].any(axis=1)))
            found[view] = replace(some, counted=some.counted[:, own])
        return found
