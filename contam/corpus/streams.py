"""Stream the unpacked bytes of a shard to the end or an error, and count rows in parts of it."""

from __future__ import annotations

import io
import sys
import threading
from bisect import bisect_right, insort
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from contam.errors import COPY_AGAIN, LET_NOBODY_WRITE, Hint, Plain, Public, ShardError
from contam.files.compression import CutError, DamagedError, Unpacker, codec_of
from contam.files.listed import ListedPath, not_answered, opened, state_of, wide_encoding
from contam.files.stores import StoreError
from contam.tables import ipc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed import WriteableBuffer as Buffer

    from contam.files.disk import FileState


PIECE_BYTES = 1 << 20
_FEED_BYTES = 256 << 10

_UNSUPPORTED = (
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PK\x03\x04", "zip"),
    (b"\xff\x06\x00\x00s", "snappy"),
)
_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".xz": "xz"}


def pieces(path: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file, about a megabyte at a time.

    The file's first bytes determine its compression; a name that promises another one is an error.
    Raises ShardError when the file cannot be opened, ends in the middle, is corrupt or is not as it
    was listed.
    """
    with readable(path), opened(path) as file:
        codec = _compression(path, file.read(8))
        file.seek(0)
        if codec:
            yield from _unpacked(path, file, codec)
        else:
            while piece := file.read(PIECE_BYTES):
                yield piece
        _check_all_read(path, file)


@contextmanager
def readable(
    path: str, hint: Hint | tuple[()] = "check that the file is there and may be read"
) -> Iterator[None]:
    """Let a ShardError say what the operating system, or a store, does not let us read."""
    try:
        yield
    except StoreError as error:
        raise not_answered(path, error) from error
    except OSError as error:
        reason = Plain(error.strerror or error)
        raise ShardError("{shard}: cannot be read: {}", reason, shard=path, hint=hint) from error


def refuse_wide(path: str, head: bytes) -> None:
    """Raise ShardError for the first bytes of a file that is UTF-16 or UTF-32."""
    if name := wide_encoding(head):
        raise ShardError(
            "{shard}: {}, not UTF-8", Public(name), shard=path, hint="convert the file to UTF-8"
        )


def stream(path: str) -> io.BufferedReader:
    """What `pieces` gives as a file to read once, from its beginning; its errors are the same.

    Only a caller who reads to the end knows that the shard is complete and did not change.
    """
    return io.BufferedReader(_Pieces(pieces(path)), PIECE_BYTES)


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file that cannot seek."""

    def __init__(self, found: Iterator[bytes]) -> None:
        self._found = found
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        target = memoryview(buffer)
        while not self._rest:
            piece = next(self._found, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        n = min(len(target), len(self._rest))
        target[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        return n


def is_plain(path: str) -> bool:
    """Say whether a file is not compressed; False, too, when it cannot be opened."""
    try:
        with opened(path) as file:
            return not _compression(path, file.read(8))
    except (OSError, ShardError):
        return False


def _compression(path: str, head: bytes) -> str:
    for magic, name in _UNSUPPORTED:
        if head.startswith(magic):
            raise ShardError(
                "{shard}: {} compression is not supported", Public(name), shard=path,
                hint="recompress it as .gz, .zst, .bz2 or .xz",
            )  # fmt: skip
    if codec := codec_of(head):
        return codec
    promised = _SUFFIXES.get(Path(path).suffix.lower())
    if promised and not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        raise ShardError(
            "{shard}: named as {} but {}", Public(promised),
            Public("not that" if head else "empty"), shard=path,
            hint="copy the file again, or leave it out",
        )  # fmt: skip
    return ""


def _unpacked(path: str, file: BinaryIO, codec: str) -> Iterator[bytes]:
    unpacker = Unpacker(codec, piece_bytes=PIECE_BYTES)
    try:
        while packed := file.read(_FEED_BYTES):
            yield from unpacker.feed(packed)
        unpacker.finish()
    except CutError as error:
        raise ShardError(
            "{shard}: {} data ends in the middle", Public(codec), shard=path, hint=COPY_AGAIN
        ) from error
    except DamagedError as error:
        raise ShardError(
            "{shard}: corrupt {} data: {}", Public(codec), Plain(error), shard=path,
            hint="copy the file again, or leave it out",
        ) from error  # fmt: skip


def _check_all_read(path: str, file: BinaryIO) -> None:
    """Raise ShardError when the system reported the end of a file before its last byte."""
    n_read, size = file.tell(), state_of(path).size
    if n_read != size:
        raise ShardError(
            "{shard}: {:,} of its {:,} bytes could be read", n_read, size, shard=path,
            hint="check the disk or the network it lies on, or copy it again",
        )  # fmt: skip


class ByteSpan(NamedTuple):
    """The lines of an uncompressed file that begin at a byte in [begin, end)."""

    begin: int
    end: int


def span_pieces(path: str, span: ByteSpan) -> Iterator[bytes]:
    """Yield the bytes of the lines of a span, in whole lines, about a megabyte at a time.

    Raises ShardError when the file cannot be read or has become shorter than the span.
    """
    with readable(path), opened(path) as file:
        # A line begins at 0 or behind a line feed, and that may be the byte before the span.
        at = max(0, span.begin - 1)
        file.seek(at)
        inside = span.begin == 0
        while piece := file.read(PIECE_BYTES):
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
    if at < span.end:
        raise ShardError(
            "{shard}: ends at byte {}, before what was there when it was listed", at, shard=path,
            hint=LET_NOBODY_WRITE,
        )  # fmt: skip


def line_number(path: str, position: int) -> int:
    """Count the lines of an uncompressed file that begin before byte `position`."""
    if position == 0:
        return 0
    return 1 + _counts(*_identity(path), _line_feeds).before(position - 1)


def note_line_number(path: str, position: int, number: int) -> None:
    """Keep what `line_number` would count, where the lines before were read anyway."""
    _counts(*_identity(path), _line_feeds).note(position - 1, number - 1)


def batch_row(path: str, batch: int) -> int:
    """Count the rows before a record batch of an Arrow IPC file."""
    return _counts(*_identity(path), _batch_rows).before(batch)


class _Counts:
    """What stands in a file before a position; counts are kept.

    count  gives how much stands from one position up to another
    """

    def __init__(self, path: str, count: Callable[[str, int, int], int]) -> None:
        self._path, self._count = path, count
        self._lock = threading.Lock()
        self._known = [(0, 0)]

    def before(self, position: int) -> int:
        with self._lock:
            at, n = self._known[bisect_right(self._known, (position, sys.maxsize)) - 1]
            if at < position:
                n += self._count(self._path, at, position)
                insort(self._known, (position, n))
            return n

    def note(self, position: int, count: int) -> None:
        """Keep a count that somebody else has made."""
        with self._lock:
            insort(self._known, (position, count))


def _line_feeds(path: str, at: int, end: int) -> int:
    n = 0
    with readable(path), opened(path) as file:
        file.seek(at)
        while at < end and (piece := file.read(min(PIECE_BYTES, end - at))):
            n += piece.count(b"\n")
            at += len(piece)
    return n


def _batch_rows(path: str, first: int, end: int) -> int:
    return sum(ipc.batch_rows(path, range(first, end)))


def _identity(path: str) -> tuple[str, FileState]:
    with readable(path):
        return str(path), state_of(path)


# Kept by the file's state: one that was rewritten is counted again.
@lru_cache(maxsize=64)
def _counts(path: str, state: FileState, count: Callable[[str, int, int], int]) -> _Counts:
    return _Counts(ListedPath(path, state), count)
