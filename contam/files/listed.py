"""Open files only if they are still as they were listed."""

from __future__ import annotations

import io
import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from contam.errors import ASK_STORE_LATER, Plain, Public, ShardError
from contam.files.addresses import checked, is_address
from contam.files.single import open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader

    from contam.files.stores import RemoteFile


_BUFFER_BYTES = 64 << 10
#: Ranges of a held file that are kept for its next reader: so many, and none that is longer.
_KEPT_RANGES = 3
_KEPT_BYTES = 1 << 20


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


class HeldPath(ListedPath):
    """The path of a file that is open: within `holding`, all who open it read that file.

    file     the open file or object; None when it could not be opened, and behind the block
    failure  why it could not be opened
    busy     whether somebody reads the file: another reader gets one of his own
    notes    what one reader keeps for the next, by a name that readers agree on
    """

    __slots__ = ("busy", "failure", "file", "notes")

    file: BufferedReader | RemoteFile | None
    failure: Exception | None
    busy: bool
    notes: dict[str, Any]


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
    if isinstance(path, HeldPath):
        if path.failure is not None:
            raise path.failure
        if isinstance(path.file, io.BufferedReader) and not path.busy:
            path.busy = True
            try:
                path.file.seek(0)
                yield path.file
            finally:
                path.busy = False
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
    from contam.files.stores import RemoteFile, store_of

    if isinstance(path, HeldPath):
        if path.failure is not None:
            raise path.failure
        if isinstance(path.file, RemoteFile):
            # Whoever holds it compares its states.
            with path.file.again() as another:
                yield another
            return

    address = checked(path)
    with store_of(address).open(address) as file:
        listed = path.state if isinstance(path, ListedPath) else file.state
        _compare(path, listed, file.state)
        yield file
    check(ListedPath(path, listed))


@contextmanager
def holding(path: str) -> Iterator[HeldPath]:
    """Open a file or object once for all who open it within the block, by the path they get.

    Its state is compared as by `opened`, but once for all of them. When it cannot be opened, the
    block begins all the same, and whoever opens the path in it is told. Raises ShardError at the
    end of the block. Of use to one thread.
    """
    from contam.files.stores import RemoteFile

    held = HeldPath(path, path.state if isinstance(path, ListedPath) else NOT_THERE)
    held.file = held.failure = None
    held.busy, held.notes = False, {}
    with ExitStack() as stack:
        try:
            if is_address(path):
                found = stack.enter_context(opened_object(path))
                held.state = found.state
                held.file = RemoteFile(found.state, _keeping(found.fetch))
            else:
                file = stack.enter_context(opened(path))
                if not isinstance(path, ListedPath):
                    held.state = FileState.of(os.fstat(file.fileno()))
                held.file = file
        except (OSError, ShardError) as error:
            held.failure = error
        try:
            yield held
        finally:
            # The path itself may be kept as a name of the file.
            held.file, held.notes = None, {}


def _keeping(fetch: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    """The same ranges, the last ones from memory: readers of one file begin alike."""
    kept: list[tuple[int, bytes]] = []

    def find(begin: int, end: int) -> bytes:
        for at, piece in tuple(kept):
            if at <= begin and end <= at + len(piece):
                return piece[begin - at : end - at]
        piece = fetch(begin, end)
        if len(piece) <= _KEPT_BYTES:
            kept.append((begin, piece))
            del kept[:-_KEPT_RANGES]
        return piece

    return find


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
        hint=ASK_STORE_LATER,
    )  # fmt: skip


def may_pass(error: ShardError) -> bool:
    """Whether a store did not answer, which may be otherwise later."""
    return ASK_STORE_LATER in map(str, error.hints)


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
            hint=ASK_STORE_LATER,
        )  # fmt: skip
    if fact := difference(listed, now):
        raise _changed(path, fact)


def _changed(path: str, fact: str) -> ShardError:
    return ShardError(
        "{shard}: {} after it was listed", Public(fact), shard=path,
        hint="let nobody write to the corpus while it is read",
    )  # fmt: skip
