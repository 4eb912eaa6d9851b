"""Bound what an upload unpacks to while it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from contam.files import compression
from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

PARQUET: Final = b"PAR1"
_OTHER_CODECS: Final = {"zstd": "zstd", "bz2": "bzip2", "xz": "xz"}
_MAGIC_BYTES: Final = 8
_BOM: Final = b"\xef\xbb\xbf"


class Budget:
    """Bytes that all files of one upload may unpack to, together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.used = 0

    def spend(self, n_bytes: int) -> None:
        """Raise RequestError (413) when it is more than there is left."""
        self.used += n_bytes
        if self.used > self._most:
            raise RequestError(
                413,
                f"the upload unpacks to more than {self._most} bytes",
                code="unpacked-too-large",
            )


class UploadUnpacker:
    """Unpacks gzip as it comes and passes everything else through; counts against a budget.

    packed  whether the file is gzip; known after the first eight bytes
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._start = b""
        self._begun = False
        self._stream: compression.Unpacker | None = None
        self.packed = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Unpacked pieces. Raises RequestError for damage, another codec, or too much."""
        if not self._begun:
            self._start += data
            if len(self._start) < _MAGIC_BYTES:
                return
            data = self._begin()
        yield from self._pieces(data)

    def finish(self) -> Iterator[bytes]:
        """The last pieces. Raises RequestError when gzip data end early."""
        if not self._begun:
            yield from self._pieces(self._begin())
        if self._stream is not None:
            try:
                self._stream.finish()
            except compression.DamagedError as error:
                raise _damaged_gzip() from error

    def _begin(self) -> bytes:
        self._begun = True
        start, self._start = self._start, b""
        codec = compression.codec_of(start)
        if codec in _OTHER_CODECS:
            raise RequestError(
                415,
                f"{_OTHER_CODECS[codec]} is not taken",
                hint="send it plain, or packed with gzip",
            )
        self.packed = bool(codec)
        if self.packed:
            self._stream = compression.Unpacker(codec)
        return start

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        if not data:
            return
        if self._stream is None:
            self._budget.spend(len(data))
            yield data
            return
        try:
            for piece in self._stream.feed(data):
                self._budget.spend(len(piece))
                yield piece
        except compression.DamagedError as error:
            raise _damaged_gzip() from error


class LineCounter:
    """JSON lines counted as they come.

    Raises RequestError when there are more than `most` items, when a line is longer than an item
    may be, or when the first is no JSON object.
    """

    def __init__(self, *, most: int, most_line_bytes: int) -> None:
        self._most = most
        self._most_line_bytes = most_line_bytes
        self._length = 0
        self._blank = True
        self._first: bytearray | None = bytearray()
        self.n_items = 0

    def feed(self, data: bytes) -> None:
        """Count the lines in a piece of the file."""
        lines = data.split(b"\n")
        for line in lines[:-1]:
            self._add(line)
            self._end()
        self._add(lines[-1])

    def finish(self) -> None:
        """Count a last line that nothing ends."""
        self._end()
        if not self.n_items:
            raise RequestError(422, "the upload holds no items", code="upload")

    def _add(self, piece: bytes) -> None:
        if not piece:
            return
        self._length += len(piece)
        if self._length > self._most_line_bytes:
            raise RequestError(
                413,
                f"item {self.n_items + 1} has more than {self._most_line_bytes} bytes",
                code="item-too-large",
            )
        if self._blank and not piece.isspace():
            self._blank = False
        if self._first is not None:
            self._first += piece

    def _end(self) -> None:
        if not self._blank:
            self.n_items += 1
            if self.n_items > self._most:
                raise RequestError(
                    413,
                    f"the upload has more than {self._most} items",
                    code="too-many-items",
                )
            if self._first is not None:
                _check_first(bytes(self._first))
                self._first = None
        self._length, self._blank = 0, True


def _check_first(line: bytes) -> None:
    """What spans lines, or is a list, would hold more items than lines are counted."""
    try:
        row = orjson.loads(line.removeprefix(_BOM))
    except orjson.JSONDecodeError:
        row = None
    if not isinstance(row, dict):
        raise RequestError(
            422,
            "the first line of the upload is not a JSON object",
            hint="send JSON lines (an item a line), plain or gzip, or Parquet",
            code="upload",
        )


def _damaged_gzip() -> RequestError:
    return RequestError(
        422, "the gzip data are damaged or end early", hint="send it again", code="upload"
    )
