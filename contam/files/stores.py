"""Reach objects in stores: find, open, look at and write them, whatever kind of store it is.

Stores raise OSError as files do: FileNotFoundError for what is not there, `StoreError` for all that
the store itself says. Nothing they raise holds a credential.

They take files one by one, and cannot rename a folder. So the object named `last`, which lists the
digests of the others, is removed before they are written and is written after them: where it is
missing, or they are not what it lists, there is no finished result.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import random
import shutil
import tempfile
import threading
import time
from concurrent.futures import Future, wait
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar, cast

from contam.errors import (
    ASK_STORE_LATER,
    AccessError,
    ConfigError,
    OutputError,
    Place,
    Plain,
    Public,
    UsageError,
)
from contam.files.addresses import Address, checked, is_address
from contam.files.disk import refuse_taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import PurePath

    from _typeshed import WriteableBuffer as Buffer

    from contam.files.disk import FileState

    Result = TypeVar("Result")


#: The module that reaches each kind of store. By name: they lie in other packages, each of which
#: is the home of one library, and none is loaded before the first address that needs it.
_MODULES: Final = {
    "s3": "contam.tables.object_stores",
    "gs": "contam.tables.object_stores",
    "az": "contam.tables.object_stores",
    "https": "contam.files.web",
    "hf": "contam.files.hub",
}

#: Bytes of the first request, which often is for a few bytes alone, and of any later one.
_FIRST_BYTES: Final = 64 << 10
_MOST_BYTES: Final = 8 << 20

MOST_BYTES: Final = 1 << 44
"""A server that states a larger object is not believed: stores take none, nor do file systems."""

_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 20
_LOOK_S: Final = 0.2


class StoreError(OSError):
    """A store refused, did not answer, or broke off, and did so each time it was asked."""

    strerror: str

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.strerror = reason


class RefusedError(StoreError):
    """A store does not accept the credentials, or not for this object."""


def access_lost(address: object, error: StoreError) -> AccessError:
    """The error that ends a run: no object can be read with the credentials, not only this one."""
    return AccessError(
        "{}: {}, and no other object can be read", Place(address), Plain(error.strerror),
        hint="renew the credentials and repeat the call: what is done is kept",
    )  # fmt: skip


class BusyError(StoreError):
    """A store failed this time, and may not the next."""


class Patience(NamedTuple):
    """How often a store is asked, and how many seconds may pass without a byte."""

    attempts: int
    timeout_s: float


class Store(Protocol):
    """What is asked of every store."""

    def look(self, address: Address) -> str:
        """`file`, `folder`, or "" for what is not there. Raises OSError."""

    def pinned(self, address: Address) -> Address:
        """The address under which the same bytes will be found later. Raises OSError."""

    def below(self, address: Address) -> Iterator[Address]:
        """All objects below a folder. Raises OSError."""

    def state(self, address: Address) -> FileState:
        """The present state of an object. Raises OSError."""

    def listed(self, address: Address) -> str:
        """What a listing said of the state of an object, without a request; "" for nothing."""

    def open(self, address: Address) -> RemoteFile:
        """Open an object. Raises OSError."""


def store_of(address: Address) -> Store:
    """The store that an address is in. Raises MissingExtraError and ConfigError."""
    found: Store = import_module(_MODULES[address.scheme]).store_of(address)
    return found


def lacks_bucket(address: Address) -> bool:
    """Whether an address is in a bucket of S3 that does not exist. Raises OSError.

    Other stores tell that only to those who may do more than read and write objects.
    """
    return address.scheme == "s3" and not store_of(address).look(address.root)


def patience() -> Patience:
    """As the environment has it. Raises ConfigError."""
    environ = os.environ
    attempts = _number("CONTAM_STORE_ATTEMPTS", environ.get("CONTAM_STORE_ATTEMPTS"), 10)
    timeout_s = _number("CONTAM_STORE_TIMEOUT", environ.get("CONTAM_STORE_TIMEOUT"), 30)
    return Patience(int(attempts), timeout_s)


def persistently(ask: Callable[[], Result]) -> Result:
    """Ask as often as `patience` says while a store is busy, with longer and longer pauses.

    Raises StoreError when it still is: whoever asks through this asks no more.
    """
    attempts = patience().attempts
    for attempt in range(1, attempts):
        try:
            return ask()
        except BusyError:
            # Many readers that failed at once must not come back at once.
            time.sleep(min(_LONGEST_PAUSE_S, _PAUSE_S * 2**attempt) * random.uniform(0.5, 1))  # noqa: S311 - no secret
    try:
        return ask()
    except BusyError as error:
        raise StoreError(error.strerror) from error


def bounded(ask: Callable[[], Result], is_over: Callable[[], bool], failure: StoreError) -> Result:
    """The answer of a library that may wait or read for ever: in a thread that is left alone then.

    is_over  whether it is waited for no longer, asked now and then; then `failure` is raised
    """
    found: Future[Result] = Future()

    def answer() -> None:
        try:
            found.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            found.set_exception(error)

    threading.Thread(target=answer, daemon=True, name="store").start()
    while not wait([found], timeout=_LOOK_S).done:
        if is_over():
            raise failure
    return found.result()


def _number(variable: str, text: str | None, default: float) -> float:
    try:
        found = float(text) if text else default
    except ValueError:
        found = 0
    if not 1 <= found <= 1000:  # noqa: PLR2004 - said in the message
        raise ConfigError("{} is not a number from 1 to 1,000", Public(variable))
    return found


class RemoteFile(io.RawIOBase):
    """An object to read, forwards in pieces that grow, or anywhere.

    state  the state it was opened in
    fetch  gives the bytes from one position up to another. Raises OSError
    """

    def __init__(self, state: FileState, fetch: Callable[[int, int], bytes]) -> None:
        super().__init__()
        if state.size > MOST_BYTES:
            raise StoreError(f"the server states {state.size:,} bytes, which no file has")
        self.state = state
        self.fetch = fetch
        self._at = 0
        self._begin = 0
        self._piece = b""
        self._wanted = _FIRST_BYTES

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        """Bytes of the object."""
        return self.state.size

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.state.size}[whence]
        if base + offset < 0:
            raise ValueError(offset)
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self.state.size - self._at)
        n = left if size is None or size < 0 else min(size, left)
        found = bytes(self._next(n))
        if len(found) < n:
            found += bytes(self._next(n - len(found)))
        return found

    def readinto(self, buffer: Buffer, /) -> int:
        target = memoryview(buffer).cast("B")
        found = self._next(min(len(target), max(0, self.state.size - self._at)))
        target[: len(found)] = found
        return len(found)

    def _next(self, n: int) -> memoryview | bytes:
        """At most `n` bytes from here on, which are there."""
        if n == 0:
            return b""
        skipped = self._at - self._begin
        if not 0 <= skipped < len(self._piece):
            self._fill(n)
            skipped = self._at - self._begin
        whole = skipped == 0 and n >= len(self._piece)
        found = self._piece if whole else memoryview(self._piece)[skipped : skipped + n]
        self._at += len(found)
        return found

    def _fill(self, n: int) -> None:
        """Fetch at least `n` bytes from here on, and more if that goes on a sequence."""
        goes_on = self._at == self._begin + len(self._piece)
        self._wanted = min(2 * self._wanted, _MOST_BYTES) if goes_on else _FIRST_BYTES
        end = min(self.state.size, self._at + max(n, self._wanted))
        # At the end of a file, what is before it is asked for next.
        begin = min(self._at, max(0, end - _FIRST_BYTES))
        self._piece = self.fetch(begin, end)
        self._begin = begin
        if len(self._piece) != end - begin:
            n_came = len(self._piece)
            self._piece = b""
            raise StoreError(f"{n_came:,} bytes came where there should be {end - begin:,}")


#: The stores that are written to; others are only read.
_WRITABLE = ("s3", "gs", "az")
_PIECE = 8 << 20


class WritableStore(Store, Protocol):
    """A store that takes objects, too, one by one."""

    def write(self, address: Address, source: Path | bytes) -> None:
        """Write an object, in place of an earlier one: whole or not at all. Raises OSError."""

    def remove(self, address: Address) -> None:
        """Remove an object if it is there. Raises OSError."""


def place(given: str | Path) -> Path:
    """A path, or the address that a text or path means, which has the names of a path.

    Raises UsageError for an address that is not read: see `checked`.
    """
    return cast("Path", checked(given)) if is_address(given) else Path(given)


def real(path: Path) -> Path:
    """The path without links, from the root on; an address as it is."""
    return path if isinstance(path, Address) else path.resolve()


def lies_in(out: str | Path, home: str | Path) -> bool:
    """Whether a path or address is a folder of its kind, or lies below it."""
    inner, outer = place(out), place(home)
    if isinstance(inner, Address) or isinstance(outer, Address):
        return type(inner) is type(outer) and inner.is_relative_to(outer)
    try:
        return outer.is_dir() and inner.resolve().is_relative_to(outer.resolve())
    except OSError:
        return False  # whoever opens it will say why


def writable(given: object) -> Address:
    """The address that is written to.

    Raises UsageError for a store that is only read, OutputError where there is no bucket.
    """
    address = checked(given)
    if address.scheme not in _WRITABLE:
        raise UsageError(
            "{}:// is only read, and cannot be written to", Public(address.scheme),
            hint="name a folder of this machine, or one in s3://, gs:// or az://",
        )  # fmt: skip
    with store_errors(address):
        if lacks_bucket(address):
            raise FileNotFoundError(errno.ENOENT, "there is no such bucket")
    return address


def upload(address: Address, source: Path | bytes) -> str:
    """Write the content of a file, or bytes, as an object; its stamp. Raises OutputError."""
    store = cast("WritableStore", store_of(address))
    with store_errors(address):
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        try:
            store.write(address, source)
        except OSError:
            # Arrow may have made an object of what it had sent.
            with contextlib.suppress(OSError):
                if store.state(address).size != size:
                    store.remove(address)
            raise
        state = store.state(address)
        if state.size != size:
            raise StoreError(f"it has {state.size:,} of {size:,} bytes")
        return state.stamp


def fetch(address: PurePath, target: Path) -> None:
    """Copy an object, in one state of it, to a file. Raises OSError."""
    found = checked(address)
    with store_of(found).open(found) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, _PIECE)
    if store_of(found).state(found) != source.state:
        raise StoreError("it was replaced while it was read")


def _remove(address: Address) -> None:
    with store_errors(address):
        cast("WritableStore", store_of(address)).remove(address)


def names_below(folder: Address) -> list[str]:
    """The names of all objects below a folder, relative to it and in order. Raises OutputError."""
    with store_errors(folder):
        try:
            found = sorted(store_of(folder).below(folder))
        except FileNotFoundError:
            return []
    return ["/".join(one.relative_to(folder).parts) for one in found]


@contextlib.contextmanager
def store_errors(address: Address) -> Iterator[None]:
    """Turn a failure of a store into an OutputError that names the address."""
    try:
        yield
    except OSError as error:
        hint = ASK_STORE_LATER
        if isinstance(error, RefusedError):
            hint = (
                "check HF_TOKEN and the name of the data set"
                if address.scheme == "hf"
                else "check the credentials, and what they allow"
            )
        elif isinstance(error, FileNotFoundError):
            hint = "check that the file is there and may be read"
        elif error.errno in {errno.ENOSPC, errno.EDQUOT}:
            hint = "free some space or choose another disk"
        raise OutputError(
            "{}: {}", Place(address), Plain(error.strerror or error), hint=hint
        ) from error


@contextlib.contextmanager
def publishing_objects(
    out: object, *, names: Sequence[str], last: str, overwrite: bool, earlier: Sequence[str]
) -> Iterator[Path]:
    """As `contam.files.publish.publishing`, for an address: the draft is on this machine.

    Raises OutputError, also when another run has written there meanwhile; UsageError for a store
    that is only read.
    """
    folder = writable(out)

    def before() -> list[str]:
        return _check_free(folder, (*names, *earlier), last, overwrite=overwrite)

    before()
    with tempfile.TemporaryDirectory(prefix="contam-draft-") as home:
        draft = Path(home)
        yield draft
        files = sorted(path for path in draft.rglob("*") if path.is_file())
        made = {"/".join(path.relative_to(draft).parts): path for path in files}
        marker = made.pop(last)
        # Asked again: another run may have finished here since.
        present = before()
        if last in present:
            _remove(folder / last)
        stamps = {folder / name: upload(folder / name, path) for name, path in made.items()}
        for name in present:
            if name not in (*made, last):
                _remove(folder / name)
        stamps[folder / last] = upload(folder / last, marker)
        for address, stamp in stamps.items():
            with store_errors(address):
                is_ours = store_of(address).state(address).stamp == stamp
            if not is_ours:
                raise OutputError(
                    "{}: another run wrote there at the same time", Place(address),
                    hint="choose another folder",
                )  # fmt: skip


def _check_free(folder: Address, names: Sequence[str], last: str, *, overwrite: bool) -> list[str]:
    """The objects of an earlier result. Raises OutputError for others, or where it may not go."""
    present = names_below(folder)
    firsts = list(dict.fromkeys(name.partition("/")[0] for name in present))
    refuse_taken(folder, firsts, names, last, overwrite=overwrite)
    return present
