"""Open files and objects, and prove that they stay as they were listed."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from contam.errors import ASK_STORE_LATER, LET_NOBODY_WRITE, Plain, Public, ShardError
from contam.files.addresses import checked, is_address
from contam.files.bundles import Bundle
from contam.files.disk import NOT_THERE, FileState, difference
from contam.files.single import open_file
from contam.files.stores import RemoteFile, store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader

    _Fetch = Callable[[int, int], bytes]


_BUFFER_BYTES = 64 << 10
#: Ranges of a shared object that are kept: so many, and none that is longer.
_KEPT_RANGES = 3
_KEPT_BYTES = 1 << 20

#: What fetches ranges of the objects that readers share; None before the first has opened it.
_shared: dict[tuple[str, FileState | None], _Fetch | None] = {}


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


def state_at(path: str) -> FileState:
    """The state of the file at a path, or of the object at an address, now. Raises OSError."""
    if is_address(path):
        address = checked(path)
        return store_of(address).state(address)
    try:
        return FileState.of(os.stat(path))  # noqa: PTH116 - a path object costs as much as the call
    except FileNotFoundError:
        if (bundle := Bundle.at(path)) is None:
            raise
        return bundle.state()


def state_of(path: str) -> FileState:
    """The state in which a file may be read: the one that was listed, else its present one."""
    return path.state if isinstance(path, ListedPath) else state_at(path)


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

    Readers fetch ranges one by one, and nothing else notices when they are of two objects. Within
    `sharing`, it is opened and compared once for all of them.
    """
    listed = path.state if isinstance(path, ListedPath) else None
    key = str(path), listed
    fetch = _shared.get(key)
    if fetch is not None and listed is not None:
        yield RemoteFile(listed, fetch)
        return
    address = checked(path)
    file = store_of(address).open(address)
    listed = listed or file.state
    _compare(path, listed, file.state)
    if key in _shared:
        _shared[key] = fetch = _keeping(file.fetch)
        yield RemoteFile(listed, fetch)
        return
    yield file
    check(ListedPath(path, listed))


@contextmanager
def sharing(path: str) -> Iterator[ListedPath]:
    """Let all who open a file within the block, by the path they get, read one state of it.

    An object is opened once for all of them. Raises ShardError at the end of the block when the
    file is in another state, and at its beginning when a store does not tell its state.
    """
    fetch = None
    if isinstance(path, ListedPath):
        listed = path
    elif is_address(path):
        address = checked(path)
        try:
            file = store_of(address).open(address)
        except OSError as error:
            raise not_answered(path, error) from error
        listed, fetch = ListedPath(path, file.state), _keeping(file.fetch)
    else:
        try:
            listed = ListedPath(path, state_at(path))
        except OSError:
            listed = ListedPath(path, NOT_THERE)  # who opens it says why
    key = str(path), listed.state
    _shared.setdefault(key, fetch)
    try:
        yield listed
        check(listed)
    finally:
        _shared.pop(key, None)


def _keeping(fetch: _Fetch) -> _Fetch:
    """The same ranges, the last ones from memory: readers of one object begin alike."""
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
            there = state_at(path)
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
        "{shard}: {} after it was listed", Public(fact), shard=path, hint=LET_NOBODY_WRITE
    )


_MARKS: Final = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_SEEN: Final = 64
_FEWEST: Final = 4


def wide_encoding(head: bytes) -> str:
    """`UTF-16` or `UTF-32`, known by a byte order mark or by the NULs of Latin letters; else ""."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    begin = head[: min(len(head), _SEEN) & ~3]
    if len(begin) < _FEWEST or not any(begin):
        return ""
    if any(not any(begin[at::4]) and not any(begin[at + 1 :: 4]) for at in (0, 2)):
        return "UTF-32"
    even, odd = begin[::2].count(0), begin[1::2].count(0)
    return "UTF-16" if min(even, odd) == 0 and max(even, odd) * 2 >= len(begin) // 2 else ""


LFS_HEAD: Final = b"version https://git-lfs.github.com/spec/v1"
"""What a pointer begins with."""

LFS_FACT: Final = "is a Git LFS pointer, not the file itself"


def pointer_error(shard: str) -> ShardError:
    """The error for a shard that is a pointer."""
    hint = "fetch the file: run `git lfs pull` in its repository"
    return ShardError("{shard} " + LFS_FACT, shard=shard, hint=hint)


def is_pointer(path: str) -> bool:
    """Whether a file is a pointer; False when it cannot be read."""
    try:
        with opened(path) as file:
            return file.read(len(LFS_HEAD)) == LFS_HEAD
    except (OSError, ShardError):
        return False
