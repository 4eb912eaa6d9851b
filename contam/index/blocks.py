"""Read files of an index that lies in a store, and keep on disk what was fetched of them.

In the cache, each file is a sparse one of the same length, called by the digest of its bytes. A
block that is not there, or not as it was written, is fetched. Several processes may share a folder:
blocks are only ever added, and what is removed stays with those that have it open.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import mmap
import os
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

import numpy as np

from contam.errors import ConfigError, OutputError, Plain
from contam.files.addresses import Address
from contam.files.stores import StoreError, store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from contam.files.stores import RemoteFile

    Given = TypeVar("Given")
    Made = TypeVar("Made")

BLOCK_BYTES: Final = 1 << 16
"""Bytes under one checksum."""

_CACHE_BYTES: Final = 16 << 30
#: Blocks that one request fetches, at most, and those that nobody asked for between two of them.
_RUN_BLOCKS: Final = 16
_GAP_BLOCKS: Final = 2
#: Requests that wait for a store at the same time; files and segments opened at the same time.
_AT_ONCE: Final = 32
_OPENED_AT_ONCE: Final = 8


class BlockCache:
    """A folder of blocks, of about `limit` bytes at most; 0: half of what is free, up to 16 GiB."""

    def __init__(self, folder: Path, limit: int = 0) -> None:
        self.folder = folder
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.limit = limit or min(_CACHE_BYTES, shutil.disk_usage(folder).free // 2)
        #: How often something was removed: whoever has a file open looks whether it is still there.
        self.generation = 0
        self._lock = threading.Lock()
        self._n_bytes = sum(size for _, size, _ in self._files())

    def open(self, name: str, n_bytes: int) -> int:
        """The handle of a file, made sparse where it is not there."""
        path = self.folder / f"{name}-{n_bytes}"
        with _writing(path):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if os.fstat(handle).st_size < n_bytes:
                os.truncate(handle, n_bytes)
        return handle

    def write(self, handle: int, data: bytes, at: int) -> None:
        """Add bytes to a file. Raises OutputError."""
        with _writing(self.folder):
            done = 0
            while done < len(data):
                done += os.pwrite(handle, memoryview(data)[done:], at + done)
        with self._lock:
            self._n_bytes += len(data)

    def trim(self) -> None:
        """Where there is more than the limit, remove what was added longest ago, down to half."""
        with self._lock:
            if self._n_bytes <= self.limit:
                return
            files = sorted(self._files())
            self._n_bytes = sum(size for _, size, _ in files)
            for _, size, path in files:
                if self._n_bytes <= self.limit // 2:
                    break
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108 - a text, as the scan gave it
                self._n_bytes -= size
            self.generation += 1

    def _files(self) -> Iterator[tuple[int, int, str]]:
        """When each was written to, the bytes that it takes, and its path."""
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = entry.stat()
                    yield found.st_mtime_ns, found.st_blocks * 512, entry.path


_cache: BlockCache | None = None
_chosen: tuple[int, Path | None] | None = None
_lock = threading.Lock()


def use_cache(limit: int, folder: Path | None = None) -> None:
    """Keep blocks in this folder, or the user's own, from the next index on that is opened."""
    global _cache, _chosen
    with _lock:
        _cache, _chosen = None, (limit, folder)


def block_cache() -> BlockCache:
    """The cache of this process. Raises ConfigError and OutputError."""
    global _cache  # noqa: PLW0603 - one disk for all indexes of a process
    found = _cache
    if found is not None:
        return found
    with _lock:
        if _cache is None:
            limit, folder = _chosen or (_limit(), None)
            _cache = BlockCache(folder or _own_folder(), limit)
        return _cache


def _limit() -> int:
    text = os.environ.get("CONTAM_CACHE_BYTES") or "0"
    if not text.isdecimal():
        raise ConfigError("CONTAM_CACHE_BYTES is not a number of bytes")
    return int(text)


def _own_folder() -> Path:
    """Where this user keeps blocks between runs; a folder until we end if it is read-only."""
    with contextlib.suppress(OSError, RuntimeError):
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "contam/blocks")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.access(folder, os.W_OK) and folder.stat().st_uid == os.getuid():
            return folder
    folder = Path(tempfile.mkdtemp(prefix="contam-blocks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            "cannot keep blocks of an index in {}: {}", path, Plain(error.strerror or error),
            hint="free some space, or let CONTAM_CACHE_BYTES be less",
        ) from error  # fmt: skip


class Mapped:
    """The bytes of a file as they are mapped now.

    raw   all of them; those of blocks that are not there yet are 0
    done  bool[blocks], those that are as they were written
    """

    __slots__ = ("done", "generation", "handle", "raw")

    def __init__(self, raw: memoryview, handle: int = -1, generation: int = 0) -> None:
        self.raw = raw
        self.done = np.zeros(-(-len(raw) // BLOCK_BYTES), np.bool_)
        self.handle = handle
        self.generation = generation

    def __del__(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)

    def may_have(self, number: int) -> bool:
        """Whether a block is there, which may not be as it was written."""
        if self.handle < 0:
            return True
        try:
            begin = number * BLOCK_BYTES
            return os.lseek(self.handle, begin, os.SEEK_DATA) == begin
        except OSError:
            return False


class StoredFile:
    """A file of an index in a store. Whoever has its state and its blocks may be several threads.

    Raises OSError, of which FileNotFoundError says that it is gone and StoreError that the store
    did not answer, and ValueError when it has another length.
    """

    def __init__(self, path: Path, n_bytes: int, sha256: str) -> None:
        self._address = cast("Address", path)
        self._n_bytes = n_bytes
        self._sha256 = sha256
        self._opened: RemoteFile | None = None

    def whole(self) -> memoryview:
        """All bytes, whose digest is right."""
        cache = block_cache()
        handle = cache.open(self._sha256, self._n_bytes)
        try:
            data = os.pread(handle, self._n_bytes, 0)
            if hashlib.sha256(data).hexdigest() != self._sha256:
                data = self.fetch(0, self._n_bytes)
                if hashlib.sha256(data).hexdigest() != self._sha256:
                    raise ValueError("its content is not what its digest says")
                cache.write(handle, data, 0)
        finally:
            os.close(handle)
        return memoryview(data)

    def map(self, before: Mapped | None = None) -> Mapped:
        """The file in the cache; `before` where it is the same as then."""
        cache = block_cache()
        generation = cache.generation
        handle = cache.open(self._sha256, self._n_bytes)
        if before is not None and os.path.sameopenfile(before.handle, handle):
            os.close(handle)
            before.generation = generation
            return before
        raw = memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
        return Mapped(raw, handle, generation)

    def look(self) -> RemoteFile:
        """Open it, where that was not done yet."""
        opened = self._opened
        if opened is None:
            opened = store_of(self._address).open(self._address)
            if opened.state.size != self._n_bytes:
                size = opened.state.size
                raise ValueError(f"it has {size} bytes where {self._n_bytes} were written")
            self._opened = opened
        return opened

    def fetch(self, begin: int, end: int) -> bytes:
        """Bytes [begin, end) of what the store has now."""
        try:
            return self._fetched(begin, end)
        except StoreError:
            # It may have been replaced, or be gone: who opens it is told so.
            self._opened = None
            return self._fetched(begin, end)

    def _fetched(self, begin: int, end: int) -> bytes:
        data = self.look().fetch(begin, end)
        if len(data) != end - begin:
            raise StoreError(f"{len(data):,} bytes came where there should be {end - begin:,}")
        return data


def runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Ascending numbers of blocks as ranges [first, stop) for a request each, small gaps closed."""
    first = stop = -1
    for number in numbers:
        if first >= 0 and (number > stop + _GAP_BLOCKS or number - first >= _RUN_BLOCKS):
            yield first, stop
            first = -1
        first, stop = number if first < 0 else first, number + 1
    if first >= 0:
        yield first, stop


_pool: ThreadPoolExecutor | None = None


def at_once(work: Callable[[Given], Made], things: Iterable[Given]) -> list[Made]:
    """What a request for each of these gives, many at the same time; `work` must not call this."""
    global _pool  # noqa: PLW0603 - its threads wait for stores, whoever asks
    known = list(things)
    if len(known) <= 1:
        return [work(one) for one in known]
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_AT_ONCE, "blocks")
    return list(_pool.map(work, known))


def opened_at_once(
    folder: Path, work: Callable[[Given], Made], things: Iterable[Given]
) -> list[Made]:
    """What opening each of these gives, several at the same time where they lie in a store."""
    if not isinstance(folder, Address):
        return [work(one) for one in things]
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        return list(pool.map(work, things))
