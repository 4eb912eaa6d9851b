"""Keep every match that a policy counts, with its stretches, for those who take documents out.

Evidence keeps the best documents of an item; these are all of them, so they go to disk when they
are many.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from contam.detect.policies.exposure import exposures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.detect.match.pieces import Pieces
    from contam.detect.model import Bools, Int8s, Int32s, Int64s, Matches

#: Bytes that are held in memory before they go to disk.
_MOST_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hits:
    """Matches that at least one of the p policies of a view counts: m rows, k stretches.

    item, shard  int32[m];  row  int64[m]
    counted      bool[m, p], which policies count the document
    exposure     int8[m], what the document shows of the item: an index into EXPOSURES
    n_spans      int32[m], stretches of each match, which lie behind each other
    start, end   int32[k], code points of the document
    """

    item: Int32s
    shard: Int32s
    row: Int64s
    counted: Bools
    exposure: Int8s
    n_spans: Int32s
    start: Int32s
    end: Int32s

    def __len__(self) -> int:
        return len(self.item)

    @property
    def n_bytes(self) -> int:
        """Bytes of all columns."""
        return sum(int(getattr(self, column.name).nbytes) for column in fields(self))

    @classmethod
    def none(cls, n_policies: int) -> Self:
        """No match."""
        no = np.empty(0, np.int32)
        return cls(
            item=no, shard=no, row=no.astype(np.int64), counted=np.empty((0, n_policies), np.bool_),
            exposure=no.astype(np.int8), n_spans=no, start=no, end=no,
        )  # fmt: skip

    @classmethod
    def of(cls, matches: Matches, pieces: Pieces, hits: Sequence[Bools]) -> Self:
        """The matches that are counted.

        hits  of each policy; one that does not see variants has the first rows of `matches` only
        """
        counted = np.zeros((len(matches), len(hits)), np.bool_)
        for policy, hit in enumerate(hits):
            counted[: len(hit), policy] = hit
        keep = np.flatnonzero(counted.any(axis=1))
        some = matches.take(keep)
        edges = np.searchsorted(pieces.match, keep), np.searchsorted(pieces.match, keep + 1)
        n_spans = (edges[1] - edges[0]).astype(np.int32)
        at = _ranges(edges[0], n_spans)
        return cls(
            item=some.item,
            shard=some.shard,
            row=some.row,
            counted=counted[keep],
            exposure=exposures(some),
            n_spans=n_spans,
            start=pieces.start[at],
            end=pieces.end[at],
        )

    @classmethod
    def concat(cls, tables: Sequence[Hits]) -> Self:
        """The rows of all tables, one table after the other; at least one table."""
        names = [column.name for column in fields(cls)]
        return cls(
            **{name: np.concatenate([getattr(table, name) for table in tables]) for name in names}
        )

    def take(self, index: Int64s) -> Hits:
        """The matches at these positions, in that order."""
        begin = np.cumsum(self.n_spans, dtype=np.int64) - self.n_spans
        at = _ranges(begin[index], self.n_spans[index])
        rest = ("item", "shard", "row", "counted", "exposure", "n_spans")
        return Hits(
            **{name: getattr(self, name)[index] for name in rest},
            start=self.start[at],
            end=self.end[at],
        )

    def in_order(self) -> Hits:
        """By shard, row and item: the same whoever found what first."""
        return self.take(np.lexsort((self.item, self.row, self.shard)))

    def save(self, path: Path) -> None:
        """Add the columns to the end of a file."""
        with path.open("ab") as file:
            for column in fields(self):
                np.save(file, getattr(self, column.name), allow_pickle=False)

    @classmethod
    def load(cls, path: Path) -> list[Self]:
        """All tables that were saved to a file."""
        found, size = [], path.stat().st_size
        with path.open("rb") as file:
            while file.tell() < size:
                found.append(
                    cls(
                        **{column.name: np.load(file, allow_pickle=False) for column in fields(cls)}
                    )
                )
        return found


@dataclass(eq=False)
class HitStore:
    """The hits of one view, of all workers; memory stays bounded where there is a folder.

    folder  where hits go that are too many to hold, a file a shard; None holds them all
    """

    n_policies: int
    folder: Path | None = None
    _tables: list[Hits] = field(default_factory=list)
    _held: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, hits: Hits) -> None:
        """Take hits of matches not added before."""
        if not len(hits):
            return
        with self._lock:
            self._tables.append(hits)
            self._held += hits.n_bytes
            if self._held > _MOST_BYTES and self.folder is not None:
                self._spill(self.folder)

    def held(self) -> Hits:
        """All that is in memory, in order."""
        return Hits.concat([Hits.none(self.n_policies), *self._tables]).in_order()

    def settle(self) -> None:
        """Write what is held in memory to the folder, where there is one; nothing is added then."""
        with self._lock:
            if self.folder is not None:
                self._spill(self.folder)

    def shards(self) -> list[int]:
        """The shards that have hits, ascending."""
        held = set(
            np.concatenate([np.empty(0, np.int32), *(t.shard for t in self._tables)]).tolist()
        )
        spilled = self.folder.glob("*.hits") if self.folder is not None else ()
        return sorted(held | {int(path.stem) for path in spilled})

    def of_shard(self, shard: int) -> Hits:
        """The hits of one shard, by row and item."""
        tables = [table.take(np.flatnonzero(table.shard == shard)) for table in self._tables]
        if self.folder is not None and (path := self._path(self.folder, shard)).exists():
            tables += Hits.load(path)
        return Hits.concat([Hits.none(self.n_policies), *tables]).in_order()

    def _spill(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for shard, hits in _by_shard(self.held()):
            hits.save(self._path(folder, shard))
        self._tables.clear()
        self._held = 0

    @staticmethod
    def _path(folder: Path, shard: int) -> Path:
        return folder / f"{shard:08d}.hits"


def _by_shard(hits: Hits) -> Iterator[tuple[int, Hits]]:
    edges = np.flatnonzero(np.diff(hits.shard, prepend=-1, append=-1))
    for lo, hi in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        yield int(hits.shard[lo]), hits.take(np.arange(lo, hi))


def _ranges(begin: Int64s, count: Int32s) -> Int64s:
    """All positions of ranges that begin here and have so many, one range after the other."""
    ends = np.cumsum(count, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    found: Int64s = np.arange(total) + np.repeat(begin - ends + count, count)
    return found
