"""Open, compare and atomically write single files."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from contam.errors import OutputError, Public
from contam.files.addresses import NAME_LOCAL_FOLDER, Address, refuse_address
from contam.files.disk import output_errors, sync_path
from contam.files.stores import StoreError, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

    from contam.errors import ContamError, Hint

_ALL_THAT_IS_ALLOWED = 0o666
#: Of an object that is read at once, as benchmarks are: their largest files have some hundred MB.
_MOST_IN_MEMORY = 4 << 30
_SPECIAL = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def irregular(path: Path) -> str:
    """What is wrong with a path that is neither file nor folder: `not a regular file but a pipe`.

    "" for files, folders, and where nothing can be seen: opening that gives the reason.
    """
    try:
        found = _SPECIAL.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):
        return ""
    return f"not a regular file but {found}" if found else ""


def refuse_irregular(path: Path) -> None:
    """Raise OSError for a pipe, a socket or a device, whose reader could wait forever."""
    if fact := irregular(path):
        raise OSError(errno.EINVAL, fact, str(path))


def open_file(path: Path) -> BufferedReader:
    """Open a file, or the object at an address, to read its bytes.

    Raises OSError, as above for what is no file.
    """
    if isinstance(path, Address):
        return io.BufferedReader(store_of(path).open(path))
    refuse_irregular(path)
    return path.open("rb")


def read_file(path: Path) -> bytes:
    """All bytes of a file or object, opened as above, and of one state of the object."""
    if isinstance(path, Address):
        with store_of(path).open(path) as found:
            if found.state.size > _MOST_IN_MEMORY:
                raise StoreError(f"the server states {found.state.size:,} bytes, too many to hold")
            data = found.read()
        if store_of(path).state(path) != found.state:
            raise StoreError("it was replaced while it was read")
        return data
    with open_file(path) as file:
        return file.read()


def fingerprint(path: Path) -> dict[str, Any]:
    """`bytes` and `sha256` of a file, as manifests and run.json have them. Raises OSError."""
    with open_file(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


@contextlib.contextmanager
def reading(
    path: Path, kind: type[ContamError], hint: Hint = "check the path and its rights"
) -> Iterator[None]:
    """Name a file that cannot be read: an OSError of the block as `kind`."""
    try:
        yield
    except OSError as error:
        reason = Public(error.strerror or type(error).__name__)
        raise kind("cannot read {}: {}", path, reason, hint=hint) from error


@contextlib.contextmanager
def whole_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A draft next to a file, which takes its place when the block ends well; else it is removed.

    A file that is replaced keeps its rights; behind a symbolic link it is the file, not the link.
    Raises UsageError for an address, OutputError when the file is there and `overwrite` is not set,
    or cannot be written.
    """
    refuse_address(path, "where results are written", NAME_LOCAL_FOLDER)
    if path.exists() and not overwrite:
        raise OutputError("{} already exists", path, hint="choose another name, or --overwrite")
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.draft")
    with output_errors(path):
        handle = os.open(
            draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _ALL_THAT_IS_ALLOWED
        )
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o7777)
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        sync_path(target.parent)


@contextlib.contextmanager
def created(path: Path) -> Iterator[BinaryIO]:
    """A new file to write in the block, which is closed and stays when the block ends well.

    Raises OutputError when it is there already, cannot be made, or cannot be closed. What writes in
    the block does so under `output_errors`; other errors of the block pass through.
    """
    with output_errors(path):
        file = path.open("xb")
    try:
        yield file
        with output_errors(path):
            file.close()
    finally:
        # What could not be written a moment ago cannot be written now.
        with contextlib.suppress(OSError):
            file.close()


def write_file(path: Path, data: bytes, *, overwrite: bool = False) -> None:
    """Write a file completely or not at all: see `whole_file`."""
    with whole_file(path, overwrite=overwrite) as file:
        file.write(data)
