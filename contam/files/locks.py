"""Lock a file, so that processes of one or several machines exclude each other."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_RIGHTS: Final = 0o600


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
