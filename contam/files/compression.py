"""Unpack gzip, zstd, bz2 and xz in bounded memory; a truncated file is an error."""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import TYPE_CHECKING, Final, Protocol

import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE_BYTES: Final = 1 << 20

_FEED_BYTES: Final = 256 << 10
# Published corpora use windows up to 2 GiB (`zstd --long=31`); common readers stop at 128 MiB.
_MAX_WINDOW: Final = 1 << 31
_MAX_XZ_MEMORY: Final = 512 << 20
# The zstd binding cannot bound its output, and repetitive text unpacks thirty-thousandfold: it is
# fed small steps, smaller ones while much comes out.
_ZSTD_STEP: Final = 4 << 10
_ZSTD_MIN_STEP: Final = 256
_ZSTD_FULL_OUTPUT: Final = 256 << 10

_MAGIC: Final = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
)
_FAILURES: Final = (zlib.error, OSError, EOFError, lzma.LZMAError, zstandard.ZstdError)


class DamagedError(ValueError):
    """Packed bytes that cannot be unpacked; the text is the decoder's own."""


class CutError(DamagedError):
    """Packed bytes that end before their last member does."""


def codec_of(head: bytes) -> str:
    """What packed a file with these first bytes: `gzip`, `zstd`, `bz2`, `xz`; "" for none."""
    # Parallel and seekable zstd writers put a frame first that holds no data.
    if head[1:4] == b"\x2a\x4d\x18" and head[:1] in b"PQRSTUVWXYZ[\\]^_":
        return "zstd"
    return next((codec for magic, codec in _MAGIC if head.startswith(magic)), "")


def unpack(codec: str, packed: bytes) -> bytes:
    """Unpack a whole file. Raises DamagedError."""
    unpacker = Unpacker(codec)
    pieces = list(unpacker.feed(packed))
    unpacker.finish()
    return b"".join(pieces)


class Unpacker:
    """Turns packed bytes into pieces of what they held, however the packed bytes are cut.

    Members may follow one another, with zero padding between and after them.
    """

    def __init__(
        self,
        codec: str,
        *,
        piece_bytes: int = PIECE_BYTES,
        window: int = _MAX_WINDOW,
        step: int = _ZSTD_STEP,
        single: bool = False,
    ) -> None:
        """Unpack one of the codecs that `codec_of` names.

        piece_bytes  pieces of other codecs than zstd are never longer
        window       zstd: the most memory, in bytes, that a frame may ask for
        step         zstd: packed bytes decoded at once; what comes of them is not bounded
        single       refuse anything behind the first member
        """
        self._codec = codec
        self._piece_bytes = piece_bytes
        self._window = window
        self._step = step
        self._single = single
        self._decoder: _Decoder | None = None
        self._begun = False

    def feed(self, packed: bytes) -> Iterator[bytes]:
        """What more packed bytes unpack to. Raises DamagedError."""
        # In slices: decoders copy what they were given and have not used yet.
        for at in range(0, len(packed), _FEED_BYTES):
            yield from self._unpacked(packed[at : at + _FEED_BYTES])

    def finish(self) -> None:
        """Say that there are no more packed bytes. Raises CutError when there should be."""
        if self._decoder is not None or not self._begun:
            raise CutError("the data ends in the middle")

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        while True:
            if self._decoder is None:
                if not (self._begun and self._single):
                    data = data.lstrip(b"\0")
                if not data:
                    return
                self._decoder = self._member()
            try:
                out = self._decoder.decompress(data, self._piece_bytes)
            except _FAILURES as error:
                raise DamagedError(str(error)) from error
            data = b""
            if out:
                yield out
            if self._decoder.eof:
                data = self._decoder.unused_data
                self._decoder = None
            elif self._decoder.needs_input:
                return

    def _member(self) -> _Decoder:
        if self._begun and self._single:
            raise DamagedError("more follows the end of the data")
        self._begun = True
        makers: dict[str, Callable[[], _Decoder]] = {
            "gzip": _Gzip,
            "zstd": lambda: _Zstd(self._window, self._step),
            "bz2": bz2.BZ2Decompressor,
            "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_XZ_MEMORY),
        }
        return makers[self._codec]()


class _Decoder(Protocol):
    """What unpacks one member; the standard library's bz2 and xz decoders are such."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Gzip:
    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(wbits=31)
        self.eof, self.needs_input, self.unused_data = False, True, b""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        decoder = self._decoder
        out = decoder.decompress(decoder.unconsumed_tail + data, max_length)
        self.eof, self.unused_data = decoder.eof, decoder.unused_data
        self.needs_input = not decoder.unconsumed_tail
        return out


class _Zstd:
    def __init__(self, window: int, step: int) -> None:
        self._decoder = zstandard.ZstdDecompressor(max_window_size=window).decompressobj()
        self._input = b""
        self._step = self._max_step = step
        self._min_step = min(step, _ZSTD_MIN_STEP)
        self.eof, self.needs_input, self.unused_data = False, True, b""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        given, at = self._input + data, 0
        found = []
        size = 0
        while at < len(given) and not self.eof and size < max_length:
            end = min(len(given), at + self._step)
            found.append(self._decoder.decompress(given[at:end]))
            full = len(found[-1]) > _ZSTD_FULL_OUTPUT
            self._step = self._min_step if full else min(self._max_step, self._step * 2)
            size += len(found[-1])
            at, self.eof = end, self._decoder.eof
        self._input = given[at:]
        self.needs_input = not self._input
        self.unused_data = self._decoder.unused_data + self._input
        return b"".join(found)
