"""Take an upload: its form, bounded, then each file by its role, name and what it unpacks to."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Final

import orjson
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from contam.detect.report import FILES as VERDICT_FILES
from contam.errors import ContamError
from contam.files import compression
from contam.files.disk import sync_path
from contam.server.problems import RequestError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from starlette.datastructures import FormData
    from starlette.requests import Request

    from contam.config import Settings

FIELD: Final = "job"
ROLES: Final = ("items", "logs", "verdicts")

_COMPONENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 ._=,:+@()\[\]|~-]{0,199}")
_MOST_FOLDERS: Final = 6
_MOST_FILES: Final = 2000
_PIECE: Final = 1 << 20
#: A character of an item is at most twelve bytes of JSON; the names of its fields come on top.
_BYTES_PER_CHARACTER: Final = 12
_FIELD_NAMES_BYTES: Final = 1 << 16
_PARQUET: Final = b"PAR1"
_ZIP: Final = b"PK\x03\x04"
_MAGIC_BYTES: Final = 8
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Received:
    """What an upload held: its request, the places of its files by role, and their size."""

    request: bytes = b""
    files: dict[str, list[str]] = field(default_factory=dict)
    n_items: int | None = None
    n_bytes: int = 0
    fingerprint: str = ""


async def read_form(request: Request, settings: Settings) -> FormData:
    """The form of a request, its files on disk; the caller closes it.

    Raises RequestError: 415 for another kind of body, 400 for one that cannot be read.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise RequestError(
            415, "the body must be multipart/form-data", hint="see docs/guides/service.md"
        )
    parser = MultiPartParser(
        request.headers,
        _whole(request.stream(), b"--%s--" % options[b"boundary"]),
        max_files=_MOST_FILES,
        max_fields=1,
        max_part_size=settings.max_body_bytes,
    )
    try:
        return await parser.parse()
    except (MultiPartException, FormParserError):
        raise RequestError(
            400, "invalid multipart body, cut short, or too many or too long parts",
            hint="send it again",
        ) from None  # fmt: skip


async def _whole(stream: AsyncIterator[bytes], end: bytes) -> AsyncGenerator[bytes, None]:
    """A body that ends as it must: the parser takes one that was cut for fewer parts."""
    tail = b""
    async for chunk in stream:
        tail = (tail + chunk)[-len(end) - _MAGIC_BYTES :]
        yield chunk
    if not tail.rstrip(b"\r\n").endswith(end):
        raise MultiPartException("cut short")


def store_form(form: FormData, folder: Path, settings: Settings) -> Received:
    """Write the files of a form into a folder, where they are on disk when this returns.

    Raises RequestError for what is not accepted and OSError for what cannot be written; the caller
    then removes the folder.
    """
    received = Received()
    budget = _Budget(settings.max_unpacked_bytes)
    digest = hashlib.sha256()
    # In one order, whatever that of the parts: equal requests have one fingerprint.
    for role, value in sorted(form.multi_items(), key=_order):
        if role == FIELD and not received.request:
            content = value.file.read() if isinstance(value, UploadFile) else value.encode()
            if len(content) > settings.max_body_bytes:
                raise RequestError(413, f"the part job: too long (limit {settings.max_body_bytes})")
            received.request = content
            digest.update(received.request)
        elif role in ROLES and isinstance(value, UploadFile):
            name = _store(role, value, folder, received, budget, settings)
            received.files.setdefault(role, []).append(name)
            digest.update(f"\0{role}\0{name}\0".encode())
            with (folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        else:
            # What it is called is the sender's own text, which no answer repeats.
            raise _invalid(
                "an unknown part, or one too many", f"parts: {FIELD}, {', '.join(ROLES)}"
            )
    if not received.request:
        raise _invalid(f"the part {FIELD!r} is missing", "it holds the request as JSON")
    for parent in {(folder / name).parent for names in received.files.values() for name in names}:
        sync_path(parent)
    received.fingerprint = digest.hexdigest()
    return received


def safe_name(given: str) -> str:
    """A file's name, folders and all, if it stays below the folder it is put in.

    Names of logs say what they are of, so they are kept; nothing else of a request becomes a path.
    """
    parts = PurePosixPath(given).parts
    if not (0 < len(parts) <= _MOST_FOLDERS and all(map(_COMPONENT.fullmatch, parts))):
        raise _invalid(
            "invalid file name",
            "letters, digits and ._=,:+@()[]|~- within folders, not beginning with a dot",
        )
    return "/".join(parts)


def _order(part: tuple[str, UploadFile | str]) -> tuple[bool, str, str]:
    role, value = part
    return role != FIELD, role, (value.filename or "") if isinstance(value, UploadFile) else ""


def _store(
    role: str,
    upload: UploadFile,
    folder: Path,
    received: Received,
    budget: _Budget,
    settings: Settings,
) -> str:
    """Write a file and check it; returns its place in the folder."""
    given = upload.filename or ""
    if role == "items" and role in received.files:
        raise _invalid("two parts of items")
    if role == "verdicts" and given not in VERDICT_FILES:
        raise _invalid("unknown file of verdicts", f"send {', '.join(VERDICT_FILES)}")
    path = folder / ("items" if role == "items" else f"{role}/{safe_name(given)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("x+b")
    except (FileExistsError, NotADirectoryError):
        raise _invalid("two files have one name, or one that of a folder") from None
    with file:
        while piece := upload.file.read(_PIECE):
            file.write(piece)
            received.n_bytes += len(piece)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        start = file.read(_MAGIC_BYTES)
        file.seek(0)
        n_items, suffix = _checked(file, start, path, budget, settings, items=role == "items")
    if role == "items":
        received.n_items = n_items
        path = path.rename(path.with_name(f"items{suffix}"))
    return str(path.relative_to(folder))


def _checked(
    file: BinaryIO, start: bytes, path: Path, budget: _Budget, settings: Settings, *, items: bool
) -> tuple[int | None, str]:
    """How many items a file holds, if it is one of items, and how its name has to end."""
    if start.startswith(_PARQUET):
        n_rows = _parquet_rows(path, budget)
        if items:
            _refuse_number(n_rows, settings)
        return n_rows, ".parquet"
    if start.startswith(_ZIP) and not items:
        try:
            with zipfile.ZipFile(path) as archive:
                # Reading a member never gives more than this promises.
                budget.spend(sum(member.file_size for member in archive.infolist()))
        except (zipfile.BadZipFile, OSError, ValueError):
            raise _invalid("a log is a damaged archive", "send it again") from None
        return None, ""
    codec = compression.codec_of(start)
    if codec not in {"", "gzip"}:
        raise RequestError(
            415, f"{codec} is not supported", hint="send it plain, or compressed with gzip"
        )
    pieces = _unpacked(file, codec, budget)
    if items:
        return _count_items(pieces, settings), ".jsonl.gz" if codec else ".jsonl"
    for _ in pieces:
        pass
    return None, ""


class _Budget:
    """Bytes that all files of one upload may unpack to, together."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def spend(self, n_bytes: int) -> None:
        """Raise RequestError, 413, when it is more than there is left."""
        self._left -= n_bytes
        if self._left < 0:
            raise RequestError(
                413, f"the upload unpacks to more than {self._most} bytes",
                code="unpacked-too-large", hint="send it in several jobs",
            )  # fmt: skip


def _unpacked(file: BinaryIO, codec: str, budget: _Budget) -> Iterator[bytes]:
    unpacker = compression.Unpacker(codec) if codec else None
    try:
        while data := file.read(_PIECE):
            for piece in unpacker.feed(data) if unpacker else (data,):
                budget.spend(len(piece))
                yield piece
        if unpacker:
            unpacker.finish()
    except compression.DamagedError:
        raise _invalid("the gzip data are damaged or end early", "send it again") from None


def _count_items(pieces: Iterator[bytes], settings: Settings) -> int:
    """How many JSON lines there are; the first, which has to be an object, is looked at.

    What spans lines, or is a list, would hold more items than lines are counted.
    """
    most_bytes = _BYTES_PER_CHARACTER * settings.max_characters + _FIELD_NAMES_BYTES
    n_items, line = 0, bytearray()

    def end() -> None:
        nonlocal n_items
        if line and not line.isspace():
            n_items += 1
            if n_items == 1:
                _check_first(bytes(line))
            if n_items > settings.max_job_items:
                _refuse_number(n_items, settings)
        line.clear()

    for piece in pieces:
        for at, part in enumerate(piece.split(b"\n")):
            if at:
                end()
            line += part
            if len(line) > most_bytes:
                raise RequestError(
                    413, f"item {n_items + 1} is too long (limit {most_bytes} bytes)",
                    code="item-too-large", hint="one item is one line of JSON",
                )  # fmt: skip
    end()
    _refuse_number(n_items, settings)
    return n_items


def _check_first(line: bytes) -> None:
    try:
        row = orjson.loads(line.removeprefix(_BOM))
    except orjson.JSONDecodeError:
        row = None
    if not isinstance(row, dict):
        raise _invalid(
            "the first line is not a JSON object",
            "send JSON lines (an item a line), plain or gzip, or Parquet",
        )


def _refuse_number(n_items: int, settings: Settings) -> None:
    if not n_items:
        raise _invalid("the upload holds no items")
    if n_items > settings.max_job_items:
        raise RequestError(
            413, f"too many items (limit {settings.max_job_items})", code="too-many-items",
            hint="send it in several jobs",
        )  # fmt: skip


def _parquet_rows(path: Path, budget: _Budget) -> int:
    """Rows of a Parquet file; what its footer promises is counted against the budget."""
    from contam.tables.parquet import promised

    try:
        n_rows, n_bytes = promised(str(path))
    except ContamError:
        raise _invalid("a Parquet file is damaged", "send it again") from None
    budget.spend(n_bytes)
    return n_rows


def _invalid(message: str, hint: str = "") -> RequestError:
    return RequestError(422, f"invalid upload: {message}", code="upload", hint=hint)
