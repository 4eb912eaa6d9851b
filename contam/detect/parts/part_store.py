"""Keep parts in a folder or below an address, each there whole or not at all, and divide a search.

Behind the content of a file is its SHA-256. A file that is not whole is taken for none, and made
again; whoever makes the same part at the same time writes the same answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from contam.corpus.opening import OpenedShard, OpenedShards, collected, map_shards, open_shard
from contam.corpus.tokens import following_of
from contam.detect.parts.mapped import TreeError, read_tree, write_tree
from contam.detect.parts.pieces import versions
from contam.errors import OutputError, Public, UsageError
from contam.files.addresses import Address, checked
from contam.files.disk import NOT_THERE, output_errors
from contam.files.single import read_file, write_file
from contam.files.stores import place, store_errors, store_of, upload, writable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contam.corpus.coverage import ShardCoverage, ShardFailure
    from contam.corpus.documents import DocumentMeta
    from contam.corpus.shards import Shard
    from contam.detect.match.by_source import BySource
    from contam.detect.match.collect import Collected
    from contam.detect.match.pieces import Hits
    from contam.detect.model import Matches
    from contam.detect.parts.pieces import Piece

    Table = TypeVar("Table", Matches, Hits)


#: Threads of a process; as many as one interpreter keeps busy.
THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A Ray cluster that computes parts.

    address  as `ray.init` takes it
    workers  threads of a task; None for the usual number
    """

    address: str = "auto"
    workers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How a search is divided into parts; the result does not depend on it.

    folder     a folder or address where parts are kept; None keeps none
    size       bytes of text of a part, at most; None for the usual, see `pieces.cut_pieces`
    share      computes every n-th part alone: (number from 0, n)
    only       computes nothing: a part that is not there was not read
    processes  whether many workers are divided over processes
    cluster    what computes the parts; None for this machine
    """

    folder: str | None = None
    size: int | None = None
    share: tuple[int, int] = (0, 1)
    only: bool = False
    processes: bool = False
    cluster: RayCluster | None = None

    def __post_init__(self) -> None:
        if self.folder is None and (self.only or self.share != (0, 1)):
            raise UsageError("no folder of parts is named", hint="give --parts DIR")

    def is_needed(self, workers: int) -> bool:
        """Whether a search with so many workers is divided at all."""
        many = self.processes and workers > THREADS
        return self.folder is not None or self.cluster is not None or many

    @property
    def store(self) -> PartStore | None:
        """Where the parts are kept."""
        return None if self.folder is None else PartStore(place(self.folder))


#: Parts quote the corpus's metadata.
_RIGHTS: Final = 0o700
_DIGEST_BYTES: Final = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class PartStore:
    """The parts in a folder or below an address, by name."""

    folder: Path

    def path(self, name: str) -> Path:
        """Where the part of this name is."""
        return self.folder / f"{name}.part"

    def begin(self) -> None:
        """Make the folder. Raises OutputError where it cannot be written to."""
        if isinstance(self.folder, Address):
            writable(self.folder)
            return
        with output_errors(self.folder):
            self.folder.mkdir(mode=_RIGHTS, parents=True, exist_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Keep the content of a part, whole or not at all. Raises OutputError."""
        path, whole = self.path(name), data + hashlib.sha256(data).digest()
        if isinstance(path, Address):
            upload(path, whole)
        else:
            write_file(path, whole, overwrite=True)

    def read(self, name: str) -> bytes | None:
        """The content of a part; None where it is not there, or not whole.

        Raises OutputError for what cannot be read.
        """
        path = self.path(name)
        try:
            whole = read_file(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if isinstance(path, Address):
                with store_errors(path):
                    raise
            raise OutputError(
                "{}: cannot be read: {}", path, Public(error.strerror),
                hint="remove it, and the same call makes it again",
            ) from error  # fmt: skip
        data, digest = whole[:-_DIGEST_BYTES], whole[-_DIGEST_BYTES:]
        return data if hashlib.sha256(data).digest() == digest else None

    def find(self, piece: Piece) -> Part | None:
        """The part of a piece, of which every shard was read; None where there is none.

        Raises OutputError for what cannot be read.
        """
        data = self.read(piece.name)
        if data is None:
            return None
        try:
            part = part_of(data, piece.name)
        except PartError:
            return None
        is_whole = part.chunks == set(range(len(piece.corpus.chunks))) and not part.failures
        return part if is_whole else None

    def hits(self, piece: Piece) -> tuple[Hits, ...]:
        """The hits of each view in the part of a piece that was found before.

        Raises OutputError for a part that is gone or not whole any more.
        """
        part = self.find(piece)
        if part is None:
            raise OutputError(
                "{}: changed after it was read", self.path(piece.name),
                hint="let nobody write to it meanwhile",
            )  # fmt: skip
        return part.hits


class KnownShards(NamedTuple):
    """What is known of shards, kept in a store of parts.

    writes  whether what was not known is kept for others
    """

    store: PartStore
    writes: bool = True

    def open(
        self,
        shards: Sequence[Shard],
        text: str | None = None,
        named: Mapping[str, str] | None = None,
    ) -> OpenedShards:
        """What `contam.corpus.opening.open_shards` gives. Raises also OutputError."""
        if self.writes:
            self.store.begin()
        stamps = [_stamp(shard) for shard in shards]
        asked = [versions(), text, dict(named or {}), stamps]
        name = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        known = self._read(name, len(shards))

        def opened(number: int, shard: Shard) -> OpenedShard:
            one = known[number]
            if one is None or stamps[number] is None:
                told = following_of(shards, number, named or {})
                return open_shard(number, shard, text, told)
            # An object is read in the state that was opened; a file in its state here.
            return one if shard.state is None else replace(one, shard=shard)

        found = map_shards(opened, shards)
        # One without text is looked at each time: no part says later what was read of it.
        kept = [one if one.chunks and one.refused is None else None for one in found]
        is_more = sum(one is not None for one in kept) > sum(one is not None for one in known)
        if is_more and self.writes:
            file = io.BytesIO()
            write_tree(file, tuple(kept))
            self.store.write(name, file.getvalue())
        return collected(found)

    def _read(self, name: str, n_shards: int) -> Sequence[OpenedShard | None]:
        """What is known of each shard; None where nothing is."""
        data = self.store.read(name)
        if data is not None:
            with contextlib.suppress(TreeError):
                found: tuple[OpenedShard | None, ...] = read_tree(memoryview(data))
                if len(found) == n_shards:
                    return found
        return [None] * n_shards


def _stamp(shard: Shard) -> list[str] | None:
    """What tells the state of a listed shard on every machine; None where nothing does."""
    if shard.state is not None:
        return None if shard.state == NOT_THERE else [shard.name, shard.format, shard.state.stamp]
    address = checked(shard.uri)
    listed = store_of(address).listed(address)
    return [shard.name, shard.format, shard.uri, listed] if listed else None


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
