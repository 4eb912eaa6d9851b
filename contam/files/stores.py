"""Reach objects in stores: find, open and look at them, whatever kind of store it is.

Stores raise OSError as files do: FileNotFoundError for what is not there, `StoreError` for all that
the store itself says. Nothing they raise holds a credential.
"""

from __future__ import annotations

import io
import os
import random
import time
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from contam.errors import AccessError, ConfigError, Place, Plain, Public

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from _typeshed import WriteableBuffer as Buffer

    from contam.files.addresses import Address
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


def size_of(source: Path | bytes) -> int:
    """Bytes of what is to be written, which is in memory or in a file. Raises OSError."""
    return len(source) if isinstance(source, bytes) else source.stat().st_size


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
