"""Read documents again by shard and row, and check that each is the text that was indexed.

Documents that were asked for are cached, and also row groups: those read while there was room, and
later those that are asked for again and again. Of each only as much is decoded as holds the
documents wanted; a cached one goes on from there. No request decodes a row group that holds none.
"""

from __future__ import annotations

import sys
import threading
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from contam.corpus.batches import BATCH_BYTES, DocBatch, gathered, read_chunk
from contam.corpus.columns import select_columns
from contam.corpus.documents import read_documents
from contam.corpus.formats.base import Chunk
from contam.corpus.shards import errors_named, seen
from contam.corpus.streams import readable
from contam.errors import CorpusError, Public, ShardError
from contam.files.listed import state_at

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.corpus.columns import Selection
    from contam.corpus.formats.base import Document
    from contam.corpus.shards import Shard
    from contam.files.disk import FileState


Key = TypeVar("Key", bound="Hashable")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Values by key, the one unused longest goes first. Several threads may use one.

    capacity    bytes of values that it holds at most
    n_bytes  bytes of those it holds
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.n_bytes = 0
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: Key) -> bool:
        """Whether there is such a value; that does not use it."""
        return key in self._values

    def get(self, key: Key) -> Value | None:
        """The value, which is used by that; None when there is none."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Key, value: Value, n_bytes: int) -> None:
        """Store a value while there is room; a value larger than the capacity is not stored."""
        with self._lock:
            before = self._values.pop(key, None)
            if before is not None:
                self.n_bytes -= before[1]
            if n_bytes > self.capacity:
                return
            self._values[key] = value, n_bytes
            self.n_bytes += n_bytes
            while self.n_bytes > self.capacity:
                _, (_, oldest) = self._values.popitem(last=False)
                self.n_bytes -= oldest

    def drop(self, unwanted: Callable[[Key], bool]) -> None:
        """Let go of the values whose keys are unwanted."""
        with self._lock:
            for key in [key for key in self._values if unwanted(key)]:
                self.n_bytes -= self._values.pop(key)[1]


_RETIRE_AND_ADD_SHARD: Final = "the shard changed after it was indexed: retire it and add it again"


TEXT_BYTES: Final = 256 << 20
"""Default bound on the cached text."""

VERIFY: Final = "verifying the index compares all its bytes"
"""How the reason ends for a shard that may have changed where no quick digest looks."""

_UNPACKED: Final = 8
#: A row group that would take more than this share of the capacity is not cached.
_LARGEST_SHARE: Final = 4
#: One that would take less than this share is read to its end: any other keeps its file open.
_SMALLEST_SHARE: Final = 64
#: The share of the capacity that is for single documents.
_DOCUMENTS_SHARE: Final = 4
#: Bytes that a cached document takes besides its text.
_ENTRY_BYTES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedShard:
    """A shard as it was when it was indexed.

    digest  of `contam.corpus.shards.shard_digest`; None when it was not recorded
    column  how its text column was chosen, None: by convention
    columns what was said of its columns, and of token ids
    change_since   why its file may have other bytes than those indexed, from its present state
    """

    shard: Shard
    digest: str | None
    column: str | None
    columns: Mapping[str, str] | None = None
    change_since: Callable[[FileState], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A shard in the state it was proved to have, and how its text is cut.

    number        of the shard in the cache
    selection     where the text is
    group_ends    int64[g], the row behind each row group; group_bytes their text, uncompressed
    grouped       whether the format has row groups; else there is one without a known end
    """

    number: int
    shard: Shard
    selection: Selection
    group_ends: NDArray[np.int64]
    group_bytes: tuple[int, ...]
    grouped: bool

    def first_row(self, group: int) -> int:
        """The row that a row group starts at."""
        return int(self.group_ends[group - 1]) if group else 0

    def groups_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row group that each row is in."""
        return np.searchsorted(self.group_ends, rows, side="right")

    def read(self, group: int) -> Iterator[DocBatch]:
        """All documents of a row group, as a scan reads them."""
        groups = (group,) if self.grouped else None
        chunk = Chunk(0, groups, self.first_row(group), None, 0)
        return read_chunk(chunk, [self.shard], [self.selection], BATCH_BYTES)

    def texts(self, group: int, rows: NDArray[np.int64]) -> Iterator[bytes]:
        """The documents in these rows of one row group, in order."""
        done = 0
        if group < len(self.group_ends):
            for batch in self.read(group):
                end = int(np.searchsorted(rows, batch.first_row + batch.n_docs))
                for row in rows[done:end].tolist():
                    yield batch.text(row - batch.first_row)
                done = end
                if done == len(rows):
                    return
        raise _outdated(self.shard, "row {} is not there", int(rows[done]))

    def proven(
        self, rows: NDArray[np.int64], texts: Iterable[bytes], crcs: NDArray[np.uint32]
    ) -> Iterator[tuple[int, bytes, int]]:
        """Each row, its text, which is the one that was indexed, and the checksum of that."""
        for row, text, crc in zip(rows.tolist(), texts, crcs.tolist(), strict=True):
            if zlib.crc32(text) != crc:
                raise _outdated(self.shard, "row {} changed since it was indexed", row)
            yield row, text, crc


class _Group:
    """The documents of a row group, as far as they were read. Several threads may use one.

    size  bytes of all its text, about
    """

    def __init__(self, batches: Iterator[DocBatch], size: int) -> None:
        self.texts: list[bytes] = []
        self._batches = batches
        self._left = size
        self._failure: BaseException | None = None
        self._lock = threading.Lock()

    @property
    def n_bytes(self) -> int:
        """Bytes that it takes: until all is read, what is read ahead is held as well."""
        return max(sum(map(len, self.texts)) + _ENTRY_BYTES * len(self.texts), self._left)

    def read(self, n_rows: int) -> None:
        """Read on until so many documents are there, or all that there are. Raises ShardError."""
        with self._lock:
            if self._failure is not None:
                raise self._failure  # what was interrupted cannot go on
            try:
                while len(self.texts) < n_rows:
                    batch = next(self._batches, None)
                    if batch is None:
                        self._left = 0
                        return
                    self.texts += map(batch.text, range(batch.n_docs))
            except BaseException as error:
                self._failure = error
                raise


class RowCache:
    """Documents of some shards. Several threads may use one; each reads what it needs itself."""

    def __init__(self, sources: Sequence[IndexedShard], *, capacity: int = TEXT_BYTES) -> None:
        self._sources = tuple(sources)
        self._capacity = capacity
        documents = capacity // _DOCUMENTS_SHARE
        # With each text the checksum that verified it: once is enough.
        self._documents: LruCache[tuple[int, int], tuple[int, bytes]] = LruCache(documents)
        self._groups: LruCache[tuple[int, int], _Group] = LruCache(capacity - documents)
        # Row groups read recently and not cached. When needed again, they are worth the capacity.
        self._passed: LruCache[tuple[int, int], None] = LruCache(capacity)
        self._opened: dict[int, _Opened] = {}
        self._shards: dict[int, Shard] = {}

    @property
    def n_bytes(self) -> int:
        """Bytes in the cache, at most the capacity."""
        return self._documents.n_bytes + self._groups.n_bytes

    def check(self, number: int) -> None:
        """Make sure that a shard is the one that was indexed. Raises ShardError."""
        source = self._sources[number]
        shard = source.shard
        known = self._shards.get(number)
        if known is not None and known.state == _state(shard):
            return
        self._opened.pop(number, None)
        for cache in (self._documents, self._groups, self._passed):
            cache.drop(lambda key: key[0] == number)
        now, digest = seen(shard)
        if source.digest is not None and digest != source.digest:
            raise _outdated(shard, "changed since it was indexed")
        if (
            source.change_since is not None
            and now.state is not None
            and (why := source.change_since(now.state))
        ):
            raise ShardError(
                "{shard}: {}; {}",
                Public(why),
                Public(VERIFY),
                shard=shard.name,
                hint=(
                    "run `contam index verify`; a service that has the index open has to reload it "
                    "afterwards"
                ),
            )
        self._shards[number] = now

    def spans_of(
        self, number: int, rows: NDArray[np.int64], most_bytes: int
    ) -> list[tuple[int, int]]:
        """Cut ascending rows into stretches [begin, end) of whole row groups, for `stream`.

        most_bytes  text of the row groups that one stretch has to decode, unless one alone has more
        """
        opened = self._open(number)
        group = np.minimum(opened.groups_of(rows), max(len(opened.group_ends) - 1, 0))
        fresh = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        ends = [*fresh[1:].tolist(), len(rows)]
        found: list[tuple[int, int]] = []
        size = 0
        for begin, end in zip(fresh.tolist(), ends, strict=True):
            more = opened.group_bytes[int(group[begin])]
            if found and size + more <= most_bytes:
                found[-1] = (found[-1][0], end)
                size += more
            else:
                found.append((begin, end))
                size = more
        return found

    def stream(
        self, number: int, rows: NDArray[np.int64], crcs: NDArray[np.uint32]
    ) -> Iterator[DocBatch]:
        """The documents in these rows (ascending, distinct), in bounded batches; caches nothing.

        crcs  of each document's text. Raises ShardError, also when a text is not the one indexed.
        """
        opened = self._open(number)
        group = opened.groups_of(rows)
        texts = (
            text
            for row_group in np.unique(group).tolist()
            for text in opened.texts(row_group, rows[group == row_group])
        )
        proven = opened.proven(rows, texts, crcs)
        one_by_one = ((number, np.array([row]), [text]) for row, text, _ in proven)
        return gathered(one_by_one, BATCH_BYTES)

    def of_tokens(self, number: int, rows: Sequence[int]) -> list[Document] | None:
        """The documents in these rows, where they are token ids. Raises ShardError."""
        if "tokenizer" not in (self._sources[number].columns or {}):
            return None
        opened = self._open(number)
        text = opened.selection.text
        is_tokens = text is not None and text.kind == "tokens"
        return read_documents(opened.shard, opened.selection, rows) if is_tokens else None

    def texts(self, number: int, rows: NDArray[np.int64], crcs: NDArray[np.uint32]) -> list[bytes]:
        """The documents in these rows (ascending, distinct) as UTF-8, through the cache.

        crcs  of each document's text. Raises ShardError, also when a text is not the one indexed.
        """
        self.check(number)
        found: dict[int, bytes] = {}
        for row, crc in zip(rows.tolist(), crcs.tolist(), strict=True):
            cached = self._documents.get((number, row))
            if cached is not None and cached[0] == crc:
                found[row] = cached[1]
        if len(found) < len(rows):
            wanted = np.array([row not in found for row in rows.tolist()])
            missing, crcs = rows[wanted], crcs[wanted]
            opened = self._open(number)
            group = opened.groups_of(missing)
            for row_group in np.unique(group).tolist():
                here = group == row_group
                found |= self._texts(opened, row_group, missing[here], crcs[here])
        return [found[row] for row in rows.tolist()]

    def _texts(
        self, opened: _Opened, group: int, rows: NDArray[np.int64], crcs: NDArray[np.uint32]
    ) -> dict[int, bytes]:
        """Row -> text of these rows of one row group, verified, and cached from now on."""
        if group >= len(opened.group_ends):
            raise _outdated(opened.shard, "row {} is not there", int(rows[0]))
        first = opened.first_row(group)
        cached = self._cached(opened, group, int(rows[-1]) - first + 1)
        texts = opened.texts(group, rows)
        if cached is not None:
            if rows[-1] - first >= len(cached):
                raise _outdated(opened.shard, "row {} is not there", int(rows[-1]))
            texts = (cached[row - first] for row in rows.tolist())
        found: dict[int, bytes] = {}
        for row, text, crc in opened.proven(rows, texts, crcs):
            found[row] = text
            self._documents.put((opened.number, row), (crc, text), len(text) + _ENTRY_BYTES)
        return found

    def _cached(self, opened: _Opened, group: int, n_rows: int) -> list[bytes] | None:
        """The first n_rows documents of a row group, or more; None where it is not cached."""
        key = (opened.number, group)
        known = self._groups.get(key)
        size = opened.group_bytes[group]
        if known is None:
            if size > self._capacity // _LARGEST_SHARE:
                return None
            if self._groups.n_bytes + size > self._groups.capacity and key not in self._passed:
                self._passed.put(key, None, size)
                return None
            known = _Group(opened.read(group), size)
        if len(known.texts) < n_rows:
            is_small = size < self._capacity // _SMALLEST_SHARE
            try:
                known.read(sys.maxsize if is_small else n_rows)
            except BaseException:
                self._groups.drop(lambda other: other == key)
                raise
            self._groups.put(key, known, known.n_bytes)
        return known.texts

    def _open(self, number: int) -> _Opened:
        self.check(number)
        known = self._opened.get(number)
        if known is not None:
            return known
        shard = self._shards[number]
        try:
            source = self._sources[number]
            selection = select_columns(shard, source.column, source.columns)
        except CorpusError as error:
            raise ShardError(error.statement, shard=shard.name, hint=error.hints) from error
        if selection.text is None:
            raise ShardError("{shard}: has no documents", shard=shard.name)
        with errors_named(shard):
            groups = shard.kind.row_groups(shard.path, selection.text)
        if groups is None:
            plain = not shard.kind.packable or shard.uri.endswith(shard.kind.suffixes)
            ends = np.array([np.iinfo(np.int64).max])
            sizes: tuple[int, ...] = (shard.size_bytes * (1 if plain else _UNPACKED),)
        else:
            ends = np.cumsum([group.n_rows for group in groups], dtype=np.int64)
            sizes = tuple(group.n_bytes for group in groups)
        opened = self._opened[number] = _Opened(
            number=number,
            shard=shard,
            selection=selection,
            group_ends=ends,
            group_bytes=sizes,
            grouped=groups is not None,
        )
        return opened


def _state(shard: Shard) -> FileState:
    with readable(shard.name, ()):
        return state_at(shard.uri)


def _outdated(shard: Shard, what: str, *facts: object) -> ShardError:
    return ShardError("{shard}: " + what, *facts, shard=shard.name, hint=_RETIRE_AND_ADD_SHARD)
