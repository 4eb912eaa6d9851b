"""Unpack a request body bit by bit, and stop at a bound: a small body may hold a huge one."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, Protocol

import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterator

ENCODINGS: Final = ("gzip", "zstd")
"""Values of Content-Encoding that are understood."""

_PIECE: Final = 1 << 18
_WINDOW: Final = 1 << 23
"""Bytes of window a zstd body may ask for, as RFC 9659 has it for HTTP."""


class DamagedError(ValueError):
    """The body is not what its Content-Encoding says."""


class Unpacker(Protocol):
    """Turns packed pieces into unpacked ones, none of them much longer than 256 KiB."""

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        """What a packed piece unpacks to; raises DamagedError."""

    def finish(self) -> None:
        """Say that the body has ended; raises DamagedError if it ended too early."""


def unpacker(encoding: str) -> Unpacker:
    """An unpacker for one body of one of ENCODINGS."""
    return _Gzip() if encoding == "gzip" else _Zstd()


class _Gzip:
    """Members one after another, as gzip writes when files are joined."""

    def __init__(self) -> None:
        self._member = self._new()
        self._begun = False

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        while packed:
            if self._member.eof:
                self._member = self._new()
            self._begun = True
            try:
                piece = self._member.decompress(packed, _PIECE)
            except zlib.error:
                raise DamagedError from None
            packed = self._member.unconsumed_tail or self._member.unused_data
            if piece:
                yield piece
            elif not packed:
                return

    def finish(self) -> None:
        if not self._begun or not self._member.eof:
            raise DamagedError

    @staticmethod
    def _new() -> zlib._Decompress:
        return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)


class _Zstd:
    """One frame; its blocks unpack to 128 KiB at most, so feeding few bytes bounds what comes."""

    _FED: Final = 64

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        for start in range(0, len(packed), self._FED):
            if self._frame.eof:
                raise DamagedError
            try:
                piece = self._frame.decompress(packed[start : start + self._FED])
            except zstandard.ZstdError:
                raise DamagedError from None
            if self._frame.unused_data:
                raise DamagedError
            if piece:
                yield piece

    def finish(self) -> None:
        if not self._frame.eof:
            raise DamagedError
