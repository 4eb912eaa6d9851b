"""Write a part to bytes, and read it back: a tree of our objects, packed.

Only items that something was found for are in it.
"""

from __future__ import annotations

import io
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from contam.detect.parts.mapped import TreeError, read_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.corpus.coverage import ShardCoverage, ShardFailure
    from contam.corpus.documents import DocumentMeta
    from contam.detect.match.by_source import BySource
    from contam.detect.match.collect import Collected
    from contam.detect.match.pieces import Hits
    from contam.detect.model import Matches

    Table = TypeVar("Table", Matches, Hits)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Part:
    """What was found in a piece of a corpus, whose shards and chunks are numbered from 0.

    name       digest of all that decides it
    chunks     numbers of the chunks that were tried, those that failed among them
    collected  what each view found
    read       what was read, by shard;  failures  shards that could not be read
    documents  (shard, row) -> what is known of a document that may become evidence
    sha256     of the files that were searched, by shard, where every hit is kept
    sources    what was counted by source, where a shard names the sources of its documents
    """

    name: str
    chunks: frozenset[int]
    collected: tuple[Collected, ...]
    read: Mapping[int, ShardCoverage]
    failures: tuple[ShardFailure, ...] = ()
    documents: Mapping[tuple[int, int], DocumentMeta] = field(default_factory=dict)
    sha256: Mapping[int, str] = field(default_factory=dict)
    sources: BySource | None = None

    @property
    def hits(self) -> tuple[Hits, ...]:
        """The hits of each view, of a search that keeps them."""
        return tuple(each.hits for each in self.collected if each.hits is not None)

    def placed(self, shards: tuple[int, ...], first: int) -> Part:
        """The same under the numbers that its shards and chunks have in a larger corpus.

        first  number there of its first chunk
        """
        numbers = np.array(shards, np.int32)
        return replace(
            self,
            chunks=frozenset(first + chunk for chunk in self.chunks),
            collected=tuple(_placed(collected, numbers) for collected in self.collected),
            read={shards[shard]: counts for shard, counts in self.read.items()},
            failures=tuple(replace(one, shard=shards[one.shard]) for one in self.failures),
            documents={(shards[shard], row): meta for (shard, row), meta in self.documents.items()},
            sha256={shards[shard]: digest for shard, digest in self.sha256.items()},
        )


def hits_placed(hits: Hits, shards: tuple[int, ...]) -> Hits:
    """Hits of a piece, under the numbers that its shards have in a larger corpus."""
    return _moved(hits, np.array(shards, np.int32))


def _placed(collected: Collected, numbers: np.ndarray) -> Collected:
    return replace(
        collected,
        counts=tuple(
            replace(count, best=_moved(count.best, numbers)) for count in collected.counts
        ),
        matches=_moved(collected.matches, numbers),
        hits=None if collected.hits is None else _moved(collected.hits, numbers),
    )


def _moved(table: Table, numbers: np.ndarray) -> Table:
    # Rows of no document have the number -1.
    return replace(table, shard=np.where(table.shard < 0, table.shard, numbers[table.shard]))


#: A part is mostly zeros and small numbers: more effort saves little.
_EFFORT: Final = 1


class PartError(ValueError):
    """Bytes that are no part, or the part of another piece or plan."""


def part_bytes(part: Part) -> bytes:
    """The content of a part's file."""
    file = io.BytesIO()
    write_tree(file, part)
    return zlib.compress(file.getbuffer(), _EFFORT)


def part_of(data: bytes, name: str) -> Part:
    """The part of this name that these bytes are. Raises PartError."""
    try:
        part = read_tree(memoryview(bytearray(zlib.decompress(data))))
    except (zlib.error, TreeError) as error:
        raise PartError(str(error)) from error
    if not isinstance(part, Part) or part.name != name:
        raise PartError("the part of another piece")
    return part
