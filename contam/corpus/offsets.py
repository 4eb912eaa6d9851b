"""Count row numbers in a file that several threads read at once."""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from contam.corpus.streams import unreadable
from contam.errors import ShardError
from contam.files.listed import ListedPath, opened, state_of
from contam.tables import ipc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.files.disk import FileState

_PIECE_BYTES = 1 << 20


class ByteSpan(NamedTuple):
    """The lines of an uncompressed file that begin at a byte in [begin, end)."""

    begin: int
    end: int


def span_pieces(path: str, span: ByteSpan) -> Iterator[bytes]:
    """Yield the bytes of the lines of a span, in whole lines, about a megabyte at a time.

    Raises ShardError when the file cannot be read or has become shorter than the span.
    """
    try:
        with opened(path) as file:
            # A line begins at 0 or behind a line feed, and that may be the byte before the span.
            at = max(0, span.begin - 1)
            file.seek(at)
            inside = span.begin == 0
            while piece := file.read(_PIECE_BYTES):
                begin = 0
                if not inside:
                    feed = piece.find(b"\n", 0, max(0, span.end - 1 - at))
                    inside = feed >= 0
                    begin = feed + 1 if inside else len(piece)
                if not inside and at + len(piece) >= span.end - 1:
                    return
                last = piece.find(b"\n", max(begin, span.end - 1 - at))
                if inside and last >= 0:
                    yield piece[begin : last + 1]
                    return
                if begin < len(piece):
                    yield piece[begin:]
                at += len(piece)
    except OSError as error:
        raise unreadable(path, error) from error
    if at < span.end:
        raise ShardError(
            "{shard}: ends at byte {}, before what was there when it was listed", at, shard=path,
            hint="let nobody write to the corpus while it is read",
        )  # fmt: skip


def line_number(path: str, position: int) -> int:
    """Count the lines of an uncompressed file that begin before byte `position`."""
    if position == 0:
        return 0
    return 1 + _line_feeds(*_identity(path)).before(position - 1)


def note_line_number(path: str, position: int, number: int) -> None:
    """Keep what `line_number` would count, where the lines before were read anyway."""
    _line_feeds(*_identity(path)).note(position - 1, number - 1)


def batch_row(path: str, batch: int) -> int:
    """Count the rows before a record batch of an Arrow IPC file."""
    return _batch_rows(*_identity(path)).before(batch)


class _LineFeeds:
    """Line feeds before a position; counts are cached."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known = [(0, 0)]

    def before(self, position: int) -> int:
        with self._lock:
            at, count = self._known[bisect_right(self._known, position, key=_first) - 1]
            if at == position:
                return count
            try:
                with opened(self._path) as file:
                    file.seek(at)
                    while at < position and (piece := file.read(min(_PIECE_BYTES, position - at))):
                        count += piece.count(b"\n")
                        at += len(piece)
            except OSError as error:
                raise unreadable(self._path, error) from error
            insort(self._known, (position, count))
            return count

    def note(self, position: int, count: int) -> None:
        """Keep a count that somebody else has made."""
        with self._lock:
            known = bisect_right(self._known, position, key=_first) - 1
            if self._known[known][0] != position:
                self._known.insert(known + 1, (position, count))


class _BatchRows:
    """Rows before a record batch; counts are cached."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._before = [0]

    def before(self, batch: int) -> int:
        with self._lock:
            counted = len(self._before) - 1
            if counted < batch:
                for n_rows in ipc.batch_rows(self._path, range(counted, batch)):
                    self._before.append(self._before[-1] + n_rows)
            return self._before[batch]


def _first(pair: tuple[int, int]) -> int:
    return pair[0]


def _identity(path: str) -> tuple[str, FileState]:
    try:
        return str(path), state_of(path)
    except OSError as error:
        raise unreadable(path, error) from error


# Kept by the file's state: one that was rewritten is counted again.
@lru_cache(maxsize=64)
def _line_feeds(path: str, state: FileState) -> _LineFeeds:
    return _LineFeeds(ListedPath(path, state))


@lru_cache(maxsize=64)
def _batch_rows(path: str, state: FileState) -> _BatchRows:
    return _BatchRows(ListedPath(path, state))
