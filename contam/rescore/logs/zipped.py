"""Read ZIP members, including Zstandard, which `zipfile` supports only from 3.14."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Final

import zstandard

from contam.errors import LogError, Remedy

if TYPE_CHECKING:
    from contam.rescore.logs.log_files import LogFile

_ZSTD: Final = 93
_LOCAL_HEADER: Final = 30
_NAME_LENGTHS: Final = 26


class ZipMembers:
    """A ZIP file in memory. Raises LogError for anything that is not whole."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        try:
            with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
                self._infos = {info.filename: info for info in archive.infolist()}
        except (zipfile.BadZipFile, ValueError, EOFError) as error:
            raise LogError(
                "{}: no whole ZIP file ({})", file.path, error,
                remedy=Remedy.COPY_CUT_OR_CHANGED,
            ) from error  # fmt: skip

    @property
    def names(self) -> list[str]:
        """Names of the members, in their order in the file."""
        return list(self._infos)

    def read(self, name: str) -> bytes:
        """A member's bytes, checked against its CRC."""
        info = self._infos[name]
        data = self._file.data
        start = info.header_offset
        try:
            name_length, extra_length = struct.unpack_from("<HH", data, start + _NAME_LENGTHS)
            begin = start + _LOCAL_HEADER + name_length + extra_length
            packed = data[begin : begin + info.compress_size]
            content = _unpacked(packed, info.compress_type)
        except (
            struct.error,
            zlib.error,
            zstandard.ZstdError,
            EOFError,
            NotImplementedError,
        ) as error:
            raise LogError(
                "{}: cannot unpack {} ({})", self._file.path, name, error,
                remedy=Remedy.COPY_CUT_OR_CHANGED,
            ) from error  # fmt: skip
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise LogError(
                "{}: {} is not what its checksum says", self._file.path, name,
                remedy=Remedy.COPY_CUT_OR_CHANGED,
            )  # fmt: skip
        return content


def _unpacked(packed: bytes, method: int) -> bytes:
    if method == zipfile.ZIP_STORED:
        return packed
    if method == zipfile.ZIP_DEFLATED:
        return zlib.decompress(packed, -zlib.MAX_WBITS)
    if method != _ZSTD:
        raise NotImplementedError(f"compression method {method}")
    pieces = []
    while packed:
        frame = zstandard.ZstdDecompressor().decompressobj()
        pieces.append(frame.decompress(packed))
        if not frame.eof:
            raise EOFError("a frame is not complete")
        packed = frame.unused_data
    return b"".join(pieces)
