"""Read tar archives of texts: row r is the r-th file in it, or line of a JSON lines file."""

from __future__ import annotations

import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Self

from contam.corpus.formats import records
from contam.corpus.formats.jsonl import noted_columns
from contam.corpus.formats.plain import PlainText
from contam.corpus.streams import PIECE_BYTES, stream
from contam.errors import COPY_AGAIN, Plain, Public, ShardError
from contam.files.listed import wide_encoding
from contam.tables.chat import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.corpus.streams import ByteSpan
    from contam.tables.columns import ColumnRef

_LINES: Final = (".jsonl", ".ndjson")
_BLOCK_BYTES: Final = 512


class Tar(records.ReadOnlyRecords):
    """Files of text are documents, and objects of JSON files are, named by their paths.

    Every other file, a link, a device, and a path that leads out of the archive is a row without a
    text, so that it is counted.
    """

    name = "tar"
    title = "tar"
    suffixes = (".tar", ".tgz")
    open_keys = True
    unit = "file", 1
    if_bad = "make the archive again, or leave it out"

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        return noted_columns(record for _, record in self.numbered(path, None))

    def numbered(self, path: str, span: ByteSpan | None) -> Iterator[tuple[int, records.Record]]:
        del span  # an archive is one chunk
        row = 0
        for name, data in _members(path):
            for record in self._records(path, row, name, data):
                yield row, record
                row += 1

    def _records(
        self, path: str, row: int, name: str, data: bytes | None
    ) -> Iterator[records.Record]:
        if data is None:
            yield {}
            return
        if encoding := wide_encoding(data):
            raise self.bad(path, row, "{}: {}, not UTF-8", Plain(name), Public(encoding))
        if name.lower().endswith(PlainText.suffixes):
            yield {"id": name, "text": data.decode("utf-8", "surrogateescape")}
        else:
            lines = data.splitlines() if name.lower().endswith(_LINES) else [data]
            for number, line in enumerate(lines):
                yield self._object(path, row + number, name, line)

    def _object(self, path: str, row: int, name: str, line: bytes) -> records.Record:
        if not line.strip():
            return {}
        try:
            record = parse(line)
        except (ValueError, RecursionError) as error:
            raise self.bad(path, row, "{}: not JSON: {}", Plain(name), Plain(error)) from error
        return {"id": name, **record} if isinstance(record, dict) else {}


def _members(path: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield (name, bytes) of the files in an archive; None for one that is not read."""
    file = stream(path)
    try:
        with tarfile.open(fileobj=file, mode="r|", tarinfo=_Member) as archive:
            for member in archive:
                if not member.isdir():
                    yield member.name, _content(path, archive, member)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise _cut(path) from error
    # To the end, which finds what is wrong with a packed file.
    while file.read(PIECE_BYTES):
        pass


def _content(path: str, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | None:
    name = PurePosixPath(member.name)
    is_inside = not name.is_absolute() and ".." not in name.parts
    wanted = (*PlainText.suffixes, ".json", *_LINES)
    if not (member.isreg() and is_inside and name.name.lower().endswith(wanted)):
        return None
    if member.size > records.MAX_RECORD_BYTES:
        raise ShardError(
            "{shard}: {} has more than {} MiB", Plain(member.name),
            records.MAX_RECORD_BYTES >> 20, shard=path, hint="leave the archive out",
        )  # fmt: skip
    found = archive.extractfile(member)
    data = found.read() if found else b""
    if len(data) != member.size:
        raise _cut(path)
    return data


def _cut(path: str) -> ShardError:
    return ShardError("{shard}: no whole tar archive", shard=path, hint=COPY_AGAIN)


class _Member(tarfile.TarInfo):
    """A header; the library takes a damaged one, and the end of the file, for the archive's end."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == _BLOCK_BYTES and not any(buf):
                raise
            raise ValueError("a damaged header") from error
