"""Unpack a request body bit by bit, and stop at a bound: a small body may hold a huge one."""

from __future__ import annotations

from typing import Final

from contam.files.compression import Unpacker

ENCODINGS: Final = ("gzip", "zstd")
"""Values of Content-Encoding that are understood."""

_PIECE: Final = 1 << 18
_WINDOW: Final = 1 << 23
"""Bytes of window a zstd body may ask for, as RFC 9659 has it for HTTP."""
#: Blocks of zstd unpack to 128 KiB at most, so feeding few bytes bounds what comes.
_STEP: Final = 64


def unpacker(encoding: str) -> Unpacker:
    """An unpacker for one body of one of ENCODINGS: gzip members, or one zstd frame."""
    return Unpacker(
        encoding, piece_bytes=_PIECE, window=_WINDOW, step=_STEP, single=encoding == "zstd"
    )
