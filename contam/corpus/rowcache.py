"""Read documents back by shard and row, each proved to be the text that an index saw.

A row group is decoded once and kept while there is room; of one that is too large to keep, only the
documents asked for are. No request decodes a row group that holds none of its documents.
"""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.corpus.batches import DocBatch, read_unit
from contam.corpus.columns import select_columns
from contam.corpus.shards import errors_named, shard_digest
from contam.corpus.units import WorkUnit
from contam.errors import CorpusError, ShardError
from contam.tables import parquet
from contam.tables.blocks import TextBlock, block_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from contam.corpus.columns import Selection
    from contam.corpus.shards import Shard
    from contam.tables.columns import ColumnRef

ROOM_BYTES: Final = 256 << 20
"""Default bound on the text that is kept."""

BATCH_BYTES: Final = 8 << 20
"""Text handed out at once when documents are streamed; a longer document comes alone."""

_PLAIN: Final = (".jsonl", ".json", ".ndjson")
_UNPACKED: Final = 8
#: A row group that would take more than this share of the room is not kept.
_LARGEST_SHARE: Final = 4
_CHANGED: Final = "the shard changed after it was indexed: retire it and add it again"

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A shard as it was when it was indexed.

    digest  of `contam.corpus.shards.shard_digest`; None when nobody wrote it down
    column  how its text column was chosen, None: by convention
    """

    shard: Shard
    digest: str | None
    column: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A shard, and how its text is cut.

    selection     where the text is
    group_ends    int64[g], the row behind each row group; group_bytes their text, uncompressed.
                  What is no Parquet is one group without a known end.
    """

    selection: Selection
    group_ends: NDArray[np.int64]
    group_bytes: tuple[int, ...]

    def first_row(self, group: int) -> int:
        """The row that a row group starts at."""
        return int(self.group_ends[group - 1]) if group else 0


class RowCache:
    """Documents of some shards. Several threads may use one; each reads what it needs itself."""

    def __init__(self, sources: Sequence[Source], *, room: int = ROOM_BYTES) -> None:
        self._sources = tuple(sources)
        self._room = room
        self._kept: OrderedDict[tuple[int, int, bool], TextBlock] = OrderedDict()
        self._n_bytes = 0
        self._opened: dict[int, _Opened] = {}
        self._stamps: dict[int, Stamp] = {}
        self._lock = threading.Lock()

    def check(self, number: int) -> None:
        """Make sure that a shard is the one that was indexed. Raises ShardError."""
        source = self._sources[number]
        shard = source.shard
        stamp = _stamp(shard)
        if self._stamps.get(number) == stamp:
            return
        with self._lock:
            self._opened.pop(number, None)
            for key in [key for key in self._kept if key[0] == number]:
                self._n_bytes -= _size(self._kept.pop(key))
        if source.digest is not None and (
            stamp[0] != shard.size_bytes or shard_digest(shard) != source.digest
        ):
            raise ShardError(
                f"{shard.name}: changed since it was indexed", shard=shard.name, hint=_CHANGED
            )
        self._stamps[number] = stamp

    def units(self, number: int, rows: NDArray[np.int64], most_bytes: int) -> list[tuple[int, int]]:
        """Cut ascending rows into stretches [begin, end) of whole row groups, for `stream`.

        most_bytes  text of the row groups that one stretch has to decode, unless one alone has more
        """
        opened = self._open(number)
        group = np.searchsorted(opened.group_ends, rows, side="right")
        group = np.minimum(group, max(len(opened.group_ends) - 1, 0))
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
        """The documents in these rows (ascending, distinct), in bounded batches; keeps nothing.

        crcs  of each document's text. Raises ShardError, also when a text is not the one indexed.
        """
        opened = self._open(number)
        shard = self._sources[number].shard
        group = np.searchsorted(opened.group_ends, rows, side="right")
        done = 0
        for block in _gathered(
            piece
            for one in np.unique(group).tolist()
            for piece in self._pieces(number, opened, one, rows[group == one])
        ):
            end = done + len(block.offsets) - 1
            _prove(shard, block, rows[done:end], crcs[done:end])
            yield _batch(number, rows[done:end], block)
            done = end

    def documents(self, number: int, rows: NDArray[np.int64], crcs: NDArray[np.uint32]) -> DocBatch:
        """The documents in these rows (ascending, distinct), through what is kept.

        crcs  of each document's text. Raises ShardError, also when a text is not the one indexed.
        """
        opened = self._open(number)
        shard = self._sources[number].shard
        group = np.searchsorted(opened.group_ends, rows, side="right")
        texts: list[bytes] = []
        for one in np.unique(group).tolist():
            texts += self._texts(number, opened, one, rows[group == one])
        block = block_of(texts)
        _prove(shard, block, rows, crcs)
        return _batch(number, rows, block)

    def _texts(
        self, number: int, opened: _Opened, group: int, rows: NDArray[np.int64]
    ) -> list[bytes]:
        shard = self._sources[number].shard
        if group >= len(opened.group_ends):
            raise _missing(shard, int(rows[0]))
        if opened.group_bytes[group] <= self._room // _LARGEST_SHARE:
            whole = self._get((number, group, True))
            if whole is None:
                batches = self._read(number, opened, group)
                whole = _joined(_block(batch) for batch in batches)
                self._keep((number, group, True), whole)
            at = rows - opened.first_row(group)
            if len(at) and int(at[-1]) >= len(whole.offsets) - 1:
                raise _missing(shard, int(rows[-1]))
            return [_text(whole, i) for i in at.tolist()]
        found: dict[int, bytes] = {}
        for row in rows.tolist():
            one = self._get((number, row, False))
            if one is not None:
                found[row] = _text(one, 0)
        wanted = np.array([row for row in rows.tolist() if row not in found], np.int64)
        if len(wanted):
            block = _joined(self._pieces(number, opened, group, wanted))
            for i, row in enumerate(wanted.tolist()):
                found[row] = _text(block, i)
                self._keep((number, row, False), block_of([found[row]]))
        return [found[row] for row in rows.tolist()]

    def _read(self, number: int, opened: _Opened, group: int) -> Iterator[DocBatch]:
        """All documents of a row group, as a scan reads them."""
        shard = self._sources[number].shard
        groups = (group,) if shard.format == "parquet" else None
        unit = WorkUnit(0, groups, opened.first_row(group), None, 0)
        return read_unit(unit, [shard], opened.selection, BATCH_BYTES)

    def _pieces(
        self, number: int, opened: _Opened, group: int, rows: NDArray[np.int64]
    ) -> Iterator[TextBlock]:
        """The documents in these rows of one row group, in order."""
        shard = self._sources[number].shard
        done = 0
        if group < len(opened.group_ends):
            for batch in self._read(number, opened, group):
                end = int(np.searchsorted(rows, batch.first_row + batch.n_docs))
                if end > done:
                    yield _chosen(batch, rows[done:end] - batch.first_row)
                done = end
                if done == len(rows):
                    return
        raise _missing(shard, int(rows[done]))

    def _get(self, key: tuple[int, int, bool]) -> TextBlock | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: tuple[int, int, bool], block: TextBlock) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = block
            self._n_bytes += _size(block)
            while self._n_bytes > self._room and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._n_bytes -= _size(oldest)

    def _open(self, number: int) -> _Opened:
        self.check(number)
        known = self._opened.get(number)
        if known is not None:
            return known
        source = self._sources[number]
        shard = source.shard
        try:
            selection = select_columns(shard, source.column)
        except CorpusError as error:
            raise ShardError(error.message, shard=shard.name, hint=error.hint) from error
        if selection.text is None:
            raise ShardError(f"{shard.name}: has no documents", shard=shard.name)
        ends, sizes = _groups(shard, selection.text)
        opened = _Opened(selection=selection, group_ends=ends, group_bytes=sizes)
        self._opened[number] = opened
        return opened


def _stamp(shard: Shard) -> Stamp:
    try:
        status = Path(shard.uri).stat()
    except OSError as error:
        raise ShardError(
            f"{shard.name}: cannot be read: {error.strerror or error}", shard=shard.name
        ) from error
    return status.st_size, status.st_mtime_ns, status.st_ino


def _groups(shard: Shard, text: ColumnRef) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    if shard.format == "parquet":
        with errors_named(shard):
            groups = parquet.row_groups(shard.uri, text)
        ends = np.cumsum([group.n_rows for group in groups], dtype=np.int64)
        return ends, tuple(group.n_bytes for group in groups)
    plain = shard.format == "arrow" or shard.uri.endswith(_PLAIN)
    size = shard.size_bytes * (1 if plain else _UNPACKED)
    return np.array([np.iinfo(np.int64).max]), (size,)


def _block(batch: DocBatch) -> TextBlock:
    """The documents of a batch without what was counted of them."""
    return TextBlock(batch.data, batch.offsets, 0, 0, 0)


def _chosen(batch: DocBatch, at: NDArray[np.int64]) -> TextBlock:
    """Some documents of a batch, by their places in it."""
    data, bounds = batch.data, batch.offsets
    return block_of([data[bounds[i] : bounds[i + 1]].tobytes() for i in at.tolist()])


def _gathered(blocks: Iterable[TextBlock]) -> Iterator[TextBlock]:
    """Small blocks joined, up to about BATCH_BYTES."""
    waiting: list[TextBlock] = []
    size = 0
    for block in blocks:
        if waiting and size + _size(block) > BATCH_BYTES:
            yield _joined(waiting)
            waiting, size = [], 0
        waiting.append(block)
        size += _size(block)
    if waiting:
        yield _joined(waiting)


def _joined(blocks: Iterable[TextBlock]) -> TextBlock:
    every = list(blocks)
    if len(every) == 1:
        return every[0]
    lengths = [np.diff(block.offsets) for block in every]
    offsets = np.zeros(sum(map(len, lengths)) + 1, np.int64)
    if every:
        np.cumsum(np.concatenate(lengths), out=offsets[1:])
    data = np.concatenate([block.data for block in every]) if every else np.empty(0, np.uint8)
    data.flags.writeable = False
    offsets.flags.writeable = False
    return TextBlock(data, offsets, 0, 0, 0)


def _prove(
    shard: Shard, block: TextBlock, rows: NDArray[np.int64], crcs: NDArray[np.uint32]
) -> None:
    data = block.data.data
    bounds = block.offsets.tolist()
    for i, expected in enumerate(crcs.tolist()):
        if zlib.crc32(data[bounds[i] : bounds[i + 1]]) != expected:
            raise ShardError(
                f"{shard.name}: row {rows[i]} changed since it was indexed",
                shard=shard.name,
                hint=_CHANGED,
            )


def _batch(number: int, rows: NDArray[np.int64], block: TextBlock) -> DocBatch:
    return DocBatch(number, int(rows[0]), block.data, block.offsets, 0, 0, 0, 0, rows=rows)


def _text(block: TextBlock, i: int) -> bytes:
    return block.data[int(block.offsets[i]) : int(block.offsets[i + 1])].tobytes()


def _size(block: TextBlock) -> int:
    return len(block.data) + 8 * len(block.offsets)


def _missing(shard: Shard, row: int) -> ShardError:
    return ShardError(f"{shard.name}: row {row} is not there", shard=shard.name, hint=_CHANGED)
