"""Share files among the processes of a machine that need them at about the same time.

The first writes them into a temporary folder, the last removes it. What a process has mapped stays.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_USERS: Final = "users.lock"
_WRITER: Final = "writer.lock"
_WRITTEN: Final = "written"
_OF_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


@contextlib.contextmanager
def node_folder(name: str, fill: Callable[[Path], None]) -> Iterator[Path]:
    """A folder that `fill` has written files to, during the block.

    name  the same for all processes that share it

    Raises OSError when it cannot be written, or belongs to another user.
    """
    folder = Path(tempfile.gettempdir(), name)
    with _used(folder):
        # Locks go with their process, so that whoever waits does what a killed one has left.
        with (folder / _WRITER).open("ab") as writer:
            fcntl.flock(writer, fcntl.LOCK_EX)
            if not (folder / _WRITTEN).exists():
                fill(folder)
                (folder / _WRITTEN).touch()
        yield folder


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder. Raises OSError."""
    for file, data in files.items():
        (folder / file).write_bytes(data)


def refuse_foreign(folder: Path) -> None:
    """Raise OSError for a folder that others can write to: all may do so beside it."""
    with contextlib.suppress(FileNotFoundError):
        found = folder.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if not ours or found.st_mode & _OF_OTHERS:
            raise PermissionError(errno.EPERM, "belongs to another user", str(folder))


@contextlib.contextmanager
def _used(folder: Path) -> Iterator[None]:
    """Keep a folder from being removed; afterwards remove it if nobody else uses it."""
    with _entered(folder) as users:
        try:
            yield
        finally:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Away at once: whoever comes now begins anew.
                removed = folder.with_name(f"{folder.name}-{secrets.token_hex(4)}")
                shutil.rmtree(folder.rename(removed), ignore_errors=True)


def _entered(folder: Path) -> BinaryIO:
    """The lock that all who use the folder share."""
    while True:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        refuse_foreign(folder)
        # Another process may remove the folder at any time until the lock is held.
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as stack:
            users = stack.enter_context((folder / _USERS).open("ab"))
            fcntl.flock(users, fcntl.LOCK_SH)
            if os.path.samestat(os.fstat(users.fileno()), (folder / _USERS).stat()):
                stack.pop_all()
                return users
