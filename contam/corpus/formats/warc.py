"""Read WET web archives of extracted text: row r is the r-th `conversion` record."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from contam.corpus.formats import records
from contam.corpus.streams import stream
from contam.errors import COPY_AGAIN, Hint, Public, ShardError
from contam.tables.columns import ColumnRef

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator, Sequence

    from warcio.recordloader import ArcWarcRecord
    from warcio.statusandheaders import StatusAndHeaders

    from contam.corpus.streams import ByteSpan

_GIVE_WET_FILES: Final = (
    "text is read from `conversion` records: give the WET files of the crawl, or "
    "extract the text first, and leave this file out"
)


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
_DIGEST: Final = re.compile(rb"(?im)^warc-(?:block|payload)-digest:[^\r\n]*\r?\n")
_MAX_HEADER_BYTES: Final = 1 << 20
_CHARSETS: Final = {"utf-8", "utf8", "us-ascii", "ascii"}


class Wet(records.RecordFormat):
    """WARC files of plain text, as extraction tools write them for each page.

    `warcinfo` records describe the file and hold no document. Any other record than these and
    `conversion` is an error: pages as they were fetched are not text, and must not be skipped in
    silence.
    """

    name = "warc"
    title = "WET"
    suffixes = (".wet", ".warc")
    magic = (b"WARC/",)
    members = True
    unit = "document", 1

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        next(self.numbered(path, None), None)
        return tuple(ColumnRef((name,), "text", "text") for name in (_TEXT, *_COLUMNS))

    def numbered(self, path: str, span: ByteSpan | None) -> Iterator[tuple[int, records.Record]]:
        row = 0
        for page in _pages(path):
            if page.headers is None:
                continue
            found: records.Record = {
                name: page.headers.get_header(header) for name, header in _COLUMNS.items()
            }
            yield row, {_TEXT: page.text.decode("utf-8", "surrogateescape"), **found}
            row += 1

    def raw_records(self, path: str) -> Iterator[tuple[int | None, bytes]]:
        row = 0
        for page in _pages(path):
            yield (None if page.headers is None else row), page.raw
            row += page.headers is not None

    def edited(self, raw: bytes, names: Sequence[str], edit: records.Editor) -> bytes:
        """The record with the length of its new text, and without the digests of the old one."""
        stated = _LENGTH.search(raw)
        length = int(stated.group(2)) if stated else 0
        header, text = raw[: -length - len(_END)], raw[-length - len(_END) : -len(_END)]
        record: records.Record = {_TEXT: text.decode("utf-8", "surrogateescape")}
        edit(record)
        new = str(record[_TEXT]).encode("utf-8", "surrogateescape")
        header = _LENGTH.sub(rb"\g<1>%d" % len(new), header, count=1)
        return _DIGEST.sub(b"", header) + new + _END


class _Headers:
    """The stream as the library reads headers: lines of bounded length."""

    def __init__(self, path: str, file: io.BufferedReader) -> None:
        self._path = path
        self._file = file
        self._taken: list[bytes] = []

    def readline(self) -> bytes:
        line = self._file.readline(_MAX_HEADER_BYTES)
        self._taken.append(line)
        if line and not line.endswith(b"\n"):
            raise ShardError(
                "{shard}: a header of a record is cut off, or longer than 1 MiB",
                shard=self._path, hint=COPY_AGAIN,
            )  # fmt: skip
        return line

    def read(self, n_bytes: int) -> bytes:
        self._taken.append(self._file.read(n_bytes))
        return self._taken[-1]

    def taken(self) -> bytes:
        """What was read since this was asked last."""
        found = b"".join(self._taken)
        self._taken.clear()
        return found


class _Page(NamedTuple):
    """All bytes of a record, and its headers and text; no headers where it is no document."""

    raw: bytes
    headers: StatusAndHeaders | None
    text: bytes


def _pages(path: str) -> Iterator[_Page]:
    """Yield all records of a file."""
    file = _Headers(path, stream(path))
    for number, record in _records(path, file):
        kind = record.rec_type
        if kind == "warcinfo":
            _content(path, number, record)
            yield _Page(file.taken(), None, b"")
            continue
        if kind is None:
            raise _bad(path, number, "no WARC-Type", hint=COPY_AGAIN)
        if kind != "conversion":
            raise _bad(
                path, number, "a {} record, which holds no text", kind,
                hint=_GIVE_WET_FILES,
            )  # fmt: skip
        headers = record.rec_headers
        _check_plain(path, number, headers.get_header("Content-Type") or "")
        if headers.get_header("WARC-Segment-Number"):
            raise _bad(path, number, "a part of a record in several files", hint=_GIVE_WET_FILES)
        text = _content(path, number, record)
        yield _Page(file.taken(), headers, text)
    if rest := file.taken():
        yield _Page(rest, None, b"")


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
            raise _bad(path, number, "no WARC header", hint=COPY_AGAIN) from error
        yield number, record
    if number == 1:
        raise ShardError("{shard}: no WARC record", shard=path, hint=COPY_AGAIN)


def _content(path: str, number: int, record: ArcWarcRecord) -> bytes:
    """All bytes of a record, checked to end where its header says."""
    stated = record.rec_headers.get_header("Content-Length") or ""
    if not (stated.isascii() and stated.isdecimal()):
        raise _bad(path, number, "no Content-Length", hint=COPY_AGAIN)
    length = int(stated)
    if length > records.MAX_RECORD_BYTES:
        most = records.MAX_RECORD_BYTES >> 20
        raise _bad(path, number, "longer than {} MiB", most, hint="leave the file out")
    file = record.raw_stream.stream
    content = cast("bytes", file.read(length))
    if len(content) != length or file.read(len(_END)) != _END:
        raise _bad(
            path, number, "does not end after {:,} bytes, as it says", length, hint=COPY_AGAIN
        )
    return content


def _check_plain(path: str, number: int, content_type: str) -> None:
    kind, *options = (part.strip().lower() for part in content_type.split(";"))
    if kind != "text/plain":
        raise _bad(
            path, number, "holds {}, no text", content_type or Public("no stated type"),
            hint=_GIVE_WET_FILES,
        )  # fmt: skip
    charset = next(
        (option[8:].strip('"') for option in options if option.startswith("charset=")), "utf-8"
    )
    if charset not in _CHARSETS:
        raise _bad(path, number, "text in {}, not UTF-8", charset, hint=_GIVE_WET_FILES)


def _bad(path: str, number: int, what: str, *facts: object, hint: Hint) -> ShardError:
    return ShardError("{shard}, record {}: " + what, number, *facts, shard=path, hint=hint)
