"""Know the states of files on disk, sync and lock them, and name what cannot be written."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from typing import TYPE_CHECKING, Final, NamedTuple

from contam.errors import OutputError, Place, Plain, Public

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path, PurePath

_RIGHTS: Final = 0o666
_NAMED: Final = 3
_OF_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


class FileState(NamedTuple):
    """What the file system reports of a file, and would differ in another state of it.

    size         in bytes
    modified_ns  time of the last write; changed_ns  also of new rights, links or names
    device, inode  which file it is
    version      what an object store calls this state of an object; "" for files
    """

    size: int
    modified_ns: int
    changed_ns: int = 0
    device: int = 0
    inode: int = 0
    version: str = ""

    @property
    def stamp(self) -> str:
        """The state as a text that other machines, too, find equal while the file is the same.

        A stamp is no digest: equal contents may have different ones.
        """
        return self.version or f"size={self.size},modified_ns={self.modified_ns}"

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        """The state that a call of stat or fstat found."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_dev, found.st_ino)


NOT_THERE = FileState(0, 0)
"""The state of a file that could not be looked at; no file is in it."""


def difference(listed: FileState, now: FileState) -> str:
    """What happened to a file between two states: `was written to`; "" for nothing.

    Another device or inode alone is nothing: file systems over a network number files anew when
    they please, and renaming a file over another changes its time of change.
    """
    if listed[:3] == now[:3] and listed.version == now.version:
        return ""
    if listed[3:] != now[3:]:
        return "was replaced by another file"
    if now.size != listed.size:
        verb = "grew" if now.size > listed.size else "was cut"
        return f"{verb} from {listed.size:,} to {now.size:,} bytes"
    if now.modified_ns != listed.modified_ns:
        return "was written to"
    return "was changed, or its rights, links or name were"


@contextlib.contextmanager
def output_errors(out: Path) -> Iterator[None]:
    """Turn a refusal of the operating system to write below `out` into an OutputError."""
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        raise OutputError(
            "cannot write {}: {}",
            out,
            Plain(os.strerror(error.errno) if error.errno else error),
            hint="free some space or choose another disk"
            if full
            else "choose a folder you may write to",
        ) from error


def sync_path(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems (network, FUSE) cannot sync a folder; the rename is then all there is.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EBADF}:
            raise
    finally:
        os.close(handle)


def lock_file(path: Path, *, shared: bool = False) -> int | None:
    """Lock a file, which is made where it is not there; returns a handle that keeps the lock.

    shared  with all others who lock it that way
    None    another process has it

    The lock goes with the process. On a network file system it holds on all machines, as it is of a
    file open for writing: that of a folder would hold on one. The file may be removed by whoever
    has its lock alone. Raises OSError.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _RIGHTS)
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # which of them, the file system chooses
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        # Removed by the one who had it before.
        os.close(handle)


def refuse_foreign(folder: Path) -> None:
    """Raise OSError for a folder that others can write to: all may do so beside it."""
    with contextlib.suppress(FileNotFoundError):
        found = folder.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if not ours or found.st_mode & _OF_OTHERS:
            raise PermissionError(errno.EPERM, "belongs to another user", str(folder))


def refuse_taken(
    folder: PurePath, present: Sequence[str], names: Sequence[str], last: str, *, overwrite: bool
) -> None:
    """Raise OutputError for a folder with other files than a result's, or with a result.

    present, names  what it holds, and what a result may hold;  last  of a result that is finished
    """
    if foreign := [name for name in present if name not in names]:
        more = " ..." if len(foreign) > _NAMED else ""
        raise OutputError(
            "{} holds files that are not a contam result: {}",
            folder, Place(", ".join(foreign[:_NAMED]) + more), hint="choose a new or empty folder",
        )  # fmt: skip
    if present and not overwrite:
        raise OutputError(
            "{} already holds {} result",
            folder, Public("a finished" if last in present else "part of a"),
            hint="choose another folder, or replace it with --overwrite",
        )  # fmt: skip
