"""Lock a file, so that processes of one or several machines exclude each other."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_RIGHTS: Final = 0o600
_OF_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


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
