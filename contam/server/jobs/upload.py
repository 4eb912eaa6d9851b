"""Keep the files of an upload: each by its role, its name, and what it unpacks to."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Final

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile

from contam.errors import ContamError
from contam.files import compression
from contam.files.disk import sync_path
from contam.server.problems import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.datastructures import FormData

    from contam.config import Settings

FIELD: Final = "job"
ROLES: Final = ("items", "logs")
MOST_FILES: Final = 2000

#: What an upload unpacks to, in sizes that it may have as sent.
_UNPACKED: Final = 4
_COMPONENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 ._=,:+@()\[\]|~-]{0,199}")
_MOST_FOLDERS: Final = 6
_PIECE: Final = 1 << 20
_PARQUET: Final = b"PAR1"
_ZIP: Final = b"PK\x03\x04"
_MAGIC_BYTES: Final = 8


@dataclass(slots=True)
class Received:
    """What an upload held: its request, the places of its files by role, and their items."""

    request: bytes = b""
    files: dict[str, list[str]] = field(default_factory=dict)
    n_items: int | None = None
    fingerprint: str = ""


def store_form(form: FormData, folder: Path, settings: Settings) -> Received:
    """Write the files of a form into a folder, where they are on disk when this returns.

    Raises RequestError for what is not accepted and OSError for what cannot be written; the caller
    then removes the folder.
    """
    received = Received()
    budget = _Budget(_UNPACKED * settings.max_upload_bytes)
    digest = hashlib.sha256()
    for role, value in form.multi_items():
        if role == FIELD and not received.request:
            received.request = (
                value.file.read() if isinstance(value, UploadFile) else value.encode()
            )
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
        raise _invalid(f"the part {FIELD!r} is missing", "send multipart/form-data")
    for parent in {(folder / name).parent for names in received.files.values() for name in names}:
        sync_path(parent)
    received.fingerprint = digest.hexdigest()
    return received


def refuse_cut(last: bytes, content_type: str) -> None:
    """Refuse a form without its closing boundary, whose last part was not read.

    last  how its body ends. Raises RequestError, 422.
    """
    _, options = parse_options_header(content_type)
    if b"boundary" not in options:
        return  # it has no parts
    closing = b"--" + options[b"boundary"] + b"--"
    if not last.rstrip(b"\r\n").endswith(closing):
        raise _invalid("the form ends early", "send it again")


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
    path = folder / ("items" if role == "items" else f"{role}/{safe_name(given)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("x+b")
    except (FileExistsError, NotADirectoryError):
        raise _invalid("two files have one name, or one that of a folder") from None
    with file:
        while piece := upload.file.read(_PIECE):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        n_rows, suffix = _checked(file, path, budget, role)
    if role == "items":
        if not n_rows:
            raise _invalid("the upload holds no items")
        if n_rows > settings.max_job_items:
            raise RequestError(
                413, f"too many items (limit {settings.max_job_items})", code="too-many-items",
                hint="send it in several jobs",
            )  # fmt: skip
        received.n_items = n_rows
        path = path.rename(path.with_name(f"items{suffix}"))
    return str(path.relative_to(folder))


def _checked(file: BinaryIO, path: Path, budget: _Budget, role: str) -> tuple[int, str]:
    """How many rows or lines a file holds, and how the name of one of items has to end."""
    start = file.read(_MAGIC_BYTES)
    file.seek(0)
    if start.startswith(_PARQUET):
        return _parquet_rows(path, budget), ".parquet"
    if start.startswith(_ZIP) and role != "items":
        try:
            with zipfile.ZipFile(path) as archive:
                # Reading a member never gives more than this promises.
                budget.spend(sum(member.file_size for member in archive.infolist()))
        except (zipfile.BadZipFile, OSError, ValueError):
            raise _invalid("a log is a damaged archive", "send it again") from None
        return 0, ""
    codec = compression.codec_of(start)
    if codec not in {"", "gzip"}:
        raise RequestError(
            415, f"{codec} is not supported", hint="send it plain, or compressed with gzip"
        )
    return _count_lines(_unpacked(file, codec, budget)), ".jsonl.gz" if codec else ".jsonl"


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


def _count_lines(pieces: Iterator[bytes]) -> int:
    """How many lines are not blank."""
    n_lines, blank = 0, True
    for piece in pieces:
        for at, part in enumerate(piece.split(b"\n")):
            if at:
                n_lines += not blank
                blank = True
            blank = blank and not part.strip()
    return n_lines + (not blank)


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
