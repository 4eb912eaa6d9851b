"""Read WET web archives of extracted text: row r is the r-th `conversion` record."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from typing import TYPE_CHECKING, Final, cast

from contam.corpus.formats import records
from contam.corpus.formats.rewriting import Place, Places
from contam.corpus.streams import stream
from contam.errors import Public, Remedy, ShardError
from contam.tables.columns import ColumnRef
from contam.tables.literals import Literal

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator, Mapping, Sequence

    from warcio.recordloader import ArcWarcRecord
    from warcio.statusandheaders import StatusAndHeaders

    from contam.corpus.offsets import ByteSpan
    from contam.tables.columns import TextColumns
    from contam.tables.edits import Edit

#: Column -> header of a record. Two of the usual names for metadata are these headers themselves.
_COLUMNS: Final = {
    "WARC-Record-ID": "WARC-Record-ID",
    "WARC-Target-URI": "WARC-Target-URI",
    "WARC-Date": "WARC-Date",
    "language": "WARC-Identified-Content-Language",
}
_TEXT: Final = "text"
_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"(?im)^(content-length:[ \t]*)([0-9]+)")
_DIGEST: Final = re.compile(
    rb"(?im)^(warc-(?:block|payload)-digest:[ \t]*)([a-z0-9]+):([^ \t\r\n]+)"
)
_MAX_HEADER_BYTES: Final = 1 << 20
_CHARSETS: Final = {"utf-8", "utf8", "us-ascii", "ascii"}


class Wet(records.ReadyRecords):
    """WARC files of plain text, as extraction tools write them for each page.

    `warcinfo` records describe the file and hold no document. Any other record than these and
    `conversion` is an error: pages as they were fetched are not text, and must not be skipped in
    silence.
    """

    name = "warc"
    title = "WET"
    suffixes = (".wet", ".warc")
    magic = (b"WARC/",)

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        next(self.numbered(path, None), None)
        return tuple(ColumnRef((name,), "text", "text") for name in (_TEXT, *_COLUMNS))

    def numbered(
        self,
        path: str,
        span: ByteSpan | None,
    ) -> Iterator[tuple[int, records.Record]]:
        for row, (_, _, headers, text) in enumerate(_pages(path, _Headers(path, stream(path)))):
            found: records.Record = {
                name: headers.get_header(header) for name, header in _COLUMNS.items()
            }
            yield row, {_TEXT: text.decode("utf-8", "surrogateescape"), **found}

    def places(self, path: str, edits: Sequence[Edit]) -> Places:
        ends: list[tuple[int, int]] = []
        wanted = {edit.row: edit for edit in edits}
        places: list[Place] = []
        row = -1
        for row, (begin, end, _, _) in enumerate(_pages(path, _Headers(path, stream(path, ends)))):
            if row in wanted:
                places.append(Place(begin, end, wanted[row]))
        return Places(places, row + 1, ends)

    def edited(
        self,
        path: str,
        edit: Edit,
        raw: bytes,
        names: Sequence[str],
        sources: TextColumns,
        replacement: str | None,
    ) -> bytes:
        """The text is edited; its length and digests in the header are those of the new one."""
        stated = _LENGTH.search(raw)
        length = int(stated.group(2)) if stated else 0
        header, text = raw[: -length - len(_END)], raw[-length - len(_END) : -len(_END)]
        new = super().edited(path, edit, text, names, sources, replacement)
        header = _LENGTH.sub(rb"\g<1>%d" % len(new), header, count=1)
        header = _DIGEST.sub(lambda found: found.group(1) + _digest(found, text, new), header)
        return header + new + _END

    def strings(
        self, text: str, names: Sequence[str]
    ) -> tuple[records.Record, Mapping[str, object]]:
        return {_TEXT: text}, {_TEXT: Literal(text, 0, len(text), text, None)}

    def bad(self, path: str, row: int, what: str, *facts: object) -> ShardError:
        return ShardError(
            "{shard}, document {}: " + what, row + 1, *facts, shard=path,
            remedy=Remedy.COPY_MAYBE_CORRUPT,
        )  # fmt: skip


class _Headers:
    """The stream as the library reads headers: lines of bounded length.

    n_read  bytes so far
    """

    def __init__(self, path: str, file: io.BufferedReader) -> None:
        self._path = path
        self._file = file
        self.n_read = 0

    def readline(self) -> bytes:
        line = self._file.readline(_MAX_HEADER_BYTES)
        self.n_read += len(line)
        if line and not line.endswith(b"\n"):
            raise ShardError(
                "{shard}: a header of a record is cut off, or longer than 1 MiB",
                shard=self._path, remedy=Remedy.COPY_MAYBE_CORRUPT,
            )  # fmt: skip
        return line

    def read(self, n_bytes: int) -> bytes:
        found = self._file.read(n_bytes)
        self.n_read += len(found)
        return found


def _pages(path: str, file: _Headers) -> Iterator[tuple[int, int, StatusAndHeaders, bytes]]:
    """Yield where each document's record begins and ends, its headers and its text."""
    begin = 0
    for number, record in _records(path, file):
        kind = record.rec_type
        if kind == "warcinfo":
            _content(path, number, record)
            begin = file.n_read
            continue
        if kind is None:
            raise _bad(path, number, "no WARC-Type", remedy=Remedy.COPY_MAYBE_CORRUPT)
        if kind != "conversion":
            raise _bad(
                path, number, "a {} record, which holds no text", kind,
                remedy=Remedy.GIVE_WET_FILES,
            )  # fmt: skip
        headers = record.rec_headers
        _check_plain(path, number, headers.get_header("Content-Type") or "")
        if headers.get_header("WARC-Segment-Number"):
            raise _bad(
                path, number, "a part of a record in several files", remedy=Remedy.GIVE_WET_FILES
            )
        text = _content(path, number, record)
        yield begin, file.n_read, headers, text
        begin = file.n_read


def _digest(stated: re.Match[bytes], old: bytes, new: bytes) -> bytes:
    """The digest of a new text, where a header states that of the old; else what it states."""
    name, value = stated.group(2).decode(), stated.group(3)
    for spelt in (base64.b32encode, base64.b16encode, _hexadecimal):
        known = name in hashlib.algorithms_guaranteed and "shake" not in name
        if known and spelt(hashlib.new(name, old).digest()) == value:
            return stated.group(2) + b":" + spelt(hashlib.new(name, new).digest())
    return stated.group(2) + b":" + value


def _hexadecimal(digest: bytes) -> bytes:
    return digest.hex().encode()


def _records(path: str, file: _Headers) -> Iterator[tuple[int, ArcWarcRecord]]:
    """Yield (number from 1, record) of a file; the content of each has to be read by `_content`.

    The library's own iterator skips what is cut off or does not fit its stated length.
    """
    from warcio.exceptions import ArchiveLoadFailed
    from warcio.recordloader import ArcWarcRecordLoader

    # It warns of blanks in addresses; without a handler that would go to standard error.
    logging.getLogger("warcio").addHandler(logging.NullHandler())
    loader = ArcWarcRecordLoader()
    number = 0
    while True:
        number += 1
        try:
            record = loader.parse_record_stream(file, known_format="warc", no_record_parse=True)
        except EOFError:
            break
        except ArchiveLoadFailed as error:
            raise _bad(path, number, "no WARC header", remedy=Remedy.COPY_MAYBE_CORRUPT) from error
        yield number, record
    if number == 1:
        raise ShardError("{shard}: no WARC record", shard=path, remedy=Remedy.COPY_MAYBE_CORRUPT)


def _content(path: str, number: int, record: ArcWarcRecord) -> bytes:
    """All bytes of a record, checked to end where its header says."""
    stated = record.rec_headers.get_header("Content-Length") or ""
    if not (stated.isascii() and stated.isdecimal()):
        raise _bad(path, number, "no Content-Length", remedy=Remedy.COPY_MAYBE_CORRUPT)
    length = int(stated)
    if length > records.MAX_RECORD_BYTES:
        most = records.MAX_RECORD_BYTES >> 20
        raise _bad(path, number, "longer than {} MiB", most, remedy=Remedy.LEAVE_FILE_OUT)
    file = record.raw_stream.stream
    content = cast("bytes", file.read(length))
    if len(content) != length or file.read(len(_END)) != _END:
        raise _bad(
            path, number, "does not end after {:,} bytes, as it says", length,
            remedy=Remedy.COPY_MAYBE_CORRUPT,
        )  # fmt: skip
    return content


def _check_plain(path: str, number: int, content_type: str) -> None:
    kind, *options = (part.strip().lower() for part in content_type.split(";"))
    if kind != "text/plain":
        raise _bad(
            path, number, "holds {}, no text", content_type or Public("no stated type"),
            remedy=Remedy.GIVE_WET_FILES,
        )  # fmt: skip
    charset = next(
        (option[8:].strip('"') for option in options if option.startswith("charset=")), "utf-8"
    )
    if charset not in _CHARSETS:
        raise _bad(path, number, "text in {}, not UTF-8", charset, remedy=Remedy.GIVE_WET_FILES)


def _bad(path: str, number: int, what: str, *facts: object, remedy: Remedy) -> ShardError:
    return ShardError("{shard}, record {}: " + what, number, *facts, shard=path, remedy=remedy)
