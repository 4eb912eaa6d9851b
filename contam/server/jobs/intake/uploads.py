"""Stream a multipart upload into a folder, bounded; a refused one leaves nothing."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from contam.detect.report import FILES as VERDICT_FILES
from contam.errors import ContamError
from contam.files.publish import sync_path
from contam.server.jobs.intake.unpacking import PARQUET, Budget, LineCounter, UploadUnpacker
from contam.server.problems.failures import RequestError
from contam.server.problems.spelling import utf8_json

if TYPE_CHECKING:
    from contam.config import Settings

_COMPONENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 ._=,:+@()\[\]|~-]{0,199}")
_MOST_FOLDERS: Final = 6
_MOST_FILES: Final = 2000
#: A character of an item is at most twelve bytes of JSON; the names of its fields come on top.
_BYTES_PER_CHARACTER: Final = 12
_FIELD_NAMES_BYTES: Final = 1 << 16
_ZIP: Final = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Sent:
    """A file of an upload. `name` is its place in the folder, `sha256` of it as it was sent."""

    role: str
    name: str
    n_bytes: int
    sha256: str


@dataclass(slots=True)
class Received:
    """What an upload held: its one field, its files, and what is known of the items."""

    request: bytes = b""
    files: list[Sent] = field(default_factory=list)
    n_items: int | None = None
    unpacked_bytes: int = 0

    def of(self, role: str) -> list[Sent]:
        """The files of one role."""
        return [file for file in self.files if file.role == role]

    def fingerprint(self) -> str:
        """Equal for equal requests, however they were cut into parts and chunks."""
        digest = hashlib.sha256(self.request)
        for file in sorted(self.files, key=lambda file: (file.role, file.name)):
            digest.update(f"\0{file.role}\0{file.name}\0{file.sha256}".encode())
        return digest.hexdigest()


class Upload:
    """A multipart body that is written into `folder` while it is fed.

    field  name of the part that holds the request as JSON
    roles  names of the parts that are files: "items", "logs", "verdicts"

    Every method raises RequestError for what is not taken and OSError for what cannot be written;
    the caller then removes the folder.
    """

    def __init__(
        self,
        folder: Path,
        content_type: str,
        *,
        field: str,
        roles: frozenset[str],
        settings: Settings,
    ) -> None:
        self._folder = folder
        self._field = field
        self._roles = roles
        self._settings = settings
        self._budget = Budget(settings.max_unpacked_bytes)
        self._received = Received()
        self._n_bytes = 0
        self._ended = False
        self._header = (bytearray(), bytearray())
        self._headers: dict[bytes, bytes] = {}
        self._sink: _FieldSink | _FileSink | None = None
        self._parser = MultipartParser(
            _boundary(content_type),
            {
                "on_part_begin": self._on_part_begin,
                "on_header_field": self._on_header_field,
                "on_header_value": self._on_header_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_part_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
        )

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body."""
        self._n_bytes += len(chunk)
        if self._n_bytes > self._settings.max_upload_bytes:
            raise RequestError(
                413,
                f"the upload has more than {self._settings.max_upload_bytes} bytes",
                code="upload-too-large",
            )
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise _malformed() from error

    def finish(self) -> Received:
        """The body has ended: everything is on disk. Raises RequestError when it ended early."""
        if not self._ended:
            raise _malformed()
        if not self._received.request:
            raise RequestError(
                422,
                f"the part {self._field!r} is missing",
                hint="it holds the request as JSON",
                code="upload",
            )
        self._received.unpacked_bytes = self._budget.used
        for folder in {Path(self._folder, file.name).parent for file in self._received.files}:
            sync_path(folder)
        return self._received

    def close(self) -> None:
        """Let go of a file that is still being written."""
        if isinstance(self._sink, _FileSink):
            self._sink.close()

    # -- what the parser calls ------------------------------------------------------------------

    def _on_part_begin(self) -> None:
        self._headers = {}
        self._header = (bytearray(), bytearray())

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header[0].extend(data[start:end])

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1].extend(data[start:end])

    def _on_header_end(self) -> None:
        name, value = self._header
        self._headers[bytes(name).lower()] = bytes(value)
        self._header = (bytearray(), bytearray())

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        role = options.get(b"name", b"").decode("utf-8", "replace")
        file_name = options.get(b"filename", b"").decode("utf-8", "replace")
        if role == self._field and not self._received.request:
            self._sink = _FieldSink(self._settings.max_body_bytes)
        elif role in self._roles:
            if len(self._received.files) >= _MOST_FILES:
                raise RequestError(413, f"the upload has more than {_MOST_FILES} files")
            self._sink = self._file_sink(role, file_name)
        else:
            # What it is called is the sender's own text, which no answer repeats.
            raise RequestError(
                422,
                "the upload has a part that is not known here, or one too many",
                hint=f"parts: {self._field}, {', '.join(sorted(self._roles))}",
                code="upload",
            )

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._sink is not None:
            self._sink.feed(data[start:end])

    def _on_part_end(self) -> None:
        sink, self._sink = self._sink, None
        if isinstance(sink, _FieldSink):
            self._received.request = utf8_json(bytes(sink.data))
        elif sink is not None:
            try:
                self._received.files.append(sink.finish())
            finally:
                sink.close()
            if sink.role == "items":
                self._received.n_items = sink.n_items

    def _on_end(self) -> None:
        self._ended = True

    def _file_sink(self, role: str, file_name: str) -> _FileSink:
        if role == "items":
            if self._received.of("items"):
                raise RequestError(422, "the upload has two parts of items", code="upload")
            name = "items"
        else:
            name = f"{role}/{safe_name(file_name)}"
            if role == "verdicts" and file_name not in VERDICT_FILES:
                raise RequestError(
                    422,
                    "a file of verdicts has a name that contam does not write",
                    hint=f"send {', '.join(VERDICT_FILES)}",
                    code="upload",
                )
        path = self._folder / name
        if any(file.name == name for file in self._received.files) or path.exists():
            raise RequestError(422, "two files of the upload have one name", code="upload")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("xb")
        except (FileExistsError, NotADirectoryError) as error:
            raise RequestError(
                422, "a file of the upload has the name of a folder", code="upload"
            ) from error
        return _FileSink(role, name, file, self._folder, self._budget, self._settings)


class _FieldSink:
    """A small part that is kept in memory."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.data = bytearray()

    def feed(self, data: bytes) -> None:
        self.data += data
        if len(self.data) > self._most:
            raise RequestError(413, f"the request has more than {self._most} bytes")


class _FileSink:
    """A file that is written as it was sent, while what it unpacks to is counted."""

    def __init__(
        self,
        role: str,
        name: str,
        file: BinaryIO,
        folder: Path,
        budget: Budget,
        settings: Settings,
    ) -> None:
        self.role = role
        self.n_items: int | None = None
        self._name = name
        self._file = file
        self._folder = folder
        self._budget = budget
        self._settings = settings
        self._digest = hashlib.sha256()
        self._n_bytes = 0
        self._start = b""
        self._unpacker = UploadUnpacker(budget)
        self._lines = LineCounter(
            most=settings.max_job_items,
            most_line_bytes=_BYTES_PER_CHARACTER * settings.max_characters + _FIELD_NAMES_BYTES,
        )

    def feed(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._n_bytes += len(data)
        if len(self._start) < len(PARQUET):
            self._start = (self._start + data)[: len(PARQUET)]
        for piece in self._unpacker.feed(data):
            self._count(piece)

    def finish(self) -> Sent:
        for piece in self._unpacker.finish():
            self._count(piece)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        path = self._folder / self._name
        if self.role == "items":
            path = path.rename(path.with_name(self._finish_items(path)))
        elif self._start == PARQUET:
            self._check_parquet(path)
        elif self._start == _ZIP:
            self._check_zip(path)
        name = str(path.relative_to(self._folder))
        return Sent(self.role, name, self._n_bytes, self._digest.hexdigest())

    def close(self) -> None:
        self._file.close()

    def _count(self, piece: bytes) -> None:
        if self.role == "items" and self._start != PARQUET:
            self._lines.feed(piece)

    def _finish_items(self, path: Path) -> str:
        if self._start == PARQUET:
            self.n_items = self._check_parquet(path)
            return "items.parquet"
        self._lines.finish()
        self.n_items = self._lines.n_items
        return "items.jsonl.gz" if self._unpacker.packed else "items.jsonl"

    def _check_parquet(self, path: Path) -> int:
        """Rows of a Parquet file; what its footer promises is counted against the budget."""
        from contam.tables.parquet import promised

        try:
            n_rows, n_bytes = promised(str(path))
        except ContamError as error:
            raise RequestError(
                422, "a Parquet file of the upload is damaged", hint="send it again", code="upload"
            ) from error
        self._budget.spend(n_bytes)
        if self.role == "items" and n_rows > self._settings.max_job_items:
            raise RequestError(
                413,
                f"the upload has more than {self._settings.max_job_items} items",
                code="too-many-items",
            )
        if not n_rows and self.role == "items":
            raise RequestError(422, "the upload holds no items", code="upload")
        return n_rows

    def _check_zip(self, path: Path) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                # Reading a member never gives more than this promises.
                self._budget.spend(sum(file.file_size for file in archive.infolist()))
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise RequestError(
                422, "a log of the upload is a damaged archive", hint="send it again", code="upload"
            ) from error


def safe_name(given: str) -> str:
    """A file's name, folders and all, if it stays below the folder it is put in.

    Names of logs say what they are of, so they are kept; nothing else of a request becomes a path.
    """
    parts = PurePosixPath(given).parts
    good = 0 < len(parts) <= _MOST_FOLDERS and all(map(_COMPONENT.fullmatch, parts))
    if not good:
        raise RequestError(
            422,
            "a file of the upload has a name that is not taken",
            hint="letters, digits and ._=,:+@()[]|~- within folders, not beginning with a dot",
            code="upload",
        )
    return "/".join(parts)


def _boundary(content_type: str) -> bytes:
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise RequestError(
            415, "a multipart/form-data body is needed", hint="see docs/guides/service.md"
        )
    try:
        MultipartParser(boundary)
    except FormParserError as error:
        raise _malformed() from error
    return boundary


def _malformed() -> RequestError:
    return RequestError(
        400, "the multipart body cannot be read, or ended early", hint="send it again"
    )
