"""Open files only if they are still as they were listed."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from contam.errors import Plain, Public, Remedy, ShardError
from contam.files.addresses import checked, is_address
from contam.files.single import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

    from contam.files.stores import RemoteFile


_BUFFER_BYTES = 64 << 10


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

    @classmethod
    def at(cls, path: str) -> FileState:
        """The state of the file at a path, or of the object at an address, now. Raises OSError."""
        if is_address(path):
            from contam.files.stores import store_of

            address = checked(path)
            return store_of(address).state(address)
        return cls.of(os.stat(path))  # noqa: PTH116 - a path object costs as much as the call


NOT_THERE = FileState(0, 0)
"""The state of a file that could not be looked at; no file is in it."""


def is_gone(path: str) -> bool:
    """Whether nothing is at a path or address; no, where that cannot be found out."""
    try:
        FileState.at(path)
    except FileNotFoundError:
        return True
    except OSError:
        return not is_address(path)
    return False


class ListedPath(str):
    """The path of a file, and the state in which alone the file may be read.

    A text, as most that it passes through only needs the file's name; what opens the file looks at
    the state. A path without one is read in the state that it is opened in.
    """

    __slots__ = ("state",)

    state: FileState

    def __new__(cls, path: str, state: FileState) -> Self:
        """The path with the state."""
        made = super().__new__(cls, path)
        made.state = state
        return made


def state_of(path: str) -> FileState:
    """The state in which a file may be read: the one that was listed, else its present one."""
    return path.state if isinstance(path, ListedPath) else FileState.at(path)


@contextmanager
def opened(path: str) -> Iterator[BufferedReader]:
    """Open a file or object to read its bytes, and prove that it stays as listed.

    It must have its listed state when the block begins and when it ends; then the file at the path
    is checked, too. Raises ShardError when it has another, OSError when it cannot be opened.
    """
    if is_address(path):
        with opened_object(path) as found:
            yield io.BufferedReader(found, _BUFFER_BYTES)
        return
    with open_file(Path(path)) as file:
        now = FileState.of(os.fstat(file.fileno()))
        listed = path.state if isinstance(path, ListedPath) else now
        _compare(path, listed, now)
        yield file
        _compare(path, listed, FileState.of(os.fstat(file.fileno())))
        check(ListedPath(path, listed))


@contextmanager
def opened_object(path: str) -> Iterator[RemoteFile]:
    """Open an object, and prove that it stays as listed: see `opened`.

    Readers fetch ranges one by one, and nothing else notices when they are of two objects.
    """
    from contam.files.stores import store_of

    address = checked(path)
    with store_of(address).open(address) as file:
        listed = path.state if isinstance(path, ListedPath) else file.state
        _compare(path, listed, file.state)
        yield file
    check(ListedPath(path, listed))


def check(path: str) -> None:
    """Raise ShardError when the file at a path is not in the state that was listed."""
    if isinstance(path, ListedPath) and path.state != NOT_THERE:
        try:
            there = FileState.at(path)
        except FileNotFoundError as error:
            raise _changed(path, "is gone") from error
        except OSError as error:
            if not is_address(path):
                raise _changed(path, "is gone") from error
            raise not_answered(path, error) from error
        _compare(path, path.state, there)


def not_answered(path: str, error: OSError) -> ShardError:
    """The error for an object that its store does not let us read."""
    return ShardError(
        "{shard}: cannot be read: {}", Plain(error.strerror or error), shard=path,
        remedy=Remedy.ASK_STORE_LATER,
    )  # fmt: skip


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


def _compare(path: str, listed: FileState, now: FileState) -> None:
    if listed == NOT_THERE and is_address(path):
        raise ShardError(
            "{shard}: its store said nothing of it when it was listed", shard=path,
            remedy=Remedy.ASK_STORE_LATER,
        )  # fmt: skip
    if fact := difference(listed, now):
        raise _changed(path, fact)


def _changed(path: str, fact: str) -> ShardError:
    return ShardError(
        "{shard}: {} after it was listed", Public(fact), shard=path,
        remedy=Remedy.LET_NOBODY_WRITE_TO_CORPUS,
    )  # fmt: skip
