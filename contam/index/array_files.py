"""Files with a checksum per block: no byte is used before it is verified.

Beside each file lies `name.crc`, the CRC-32 of each of its blocks of 64 KiB.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.errors import (
    ASK_STORE_LATER,
    IndexDamageError,
    IndexUnreachableError,
    OutputError,
    Place,
    Plain,
)
from contam.files.addresses import Address
from contam.files.single import open_file, read_file
from contam.files.stores import StoreError
from contam.index.blocks import BLOCK_BYTES, Mapped, StoredFile, at_once, block_cache, runs
from contam.index.model import FileRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray


def damaged(path: Path, fact: str) -> IndexDamageError:
    """The error for a file of an index that is not as it was written."""
    return IndexDamageError(
        "{}: {}",
        path,
        Plain(fact),
        file=str(path),
        hint="restore the index from a copy, or build it again; `contam index verify` tells all",
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn a refusal of the operating system to read the file into an IndexDamageError.

    Raises IndexUnreachableError where a store does not answer.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise damaged(path, "the file is missing") from error
    except StoreError as error:
        raise IndexUnreachableError(
            "{}: cannot be read: {}", path, Plain(error.strerror), hint=ASK_STORE_LATER
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise damaged(path, f"cannot be read: {reason}") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a refusal of the operating system to write the file into an OutputError."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            "cannot write {}: {}",
            path,
            Plain(error.strerror or error),
            hint="check the free space and the permissions of the index's folder",
        ) from error


def write_array(folder: Path, name: str, array: NDArray[Any]) -> FileRecord:
    """Write `name`.npy and `name`.crc into the folder and make sure that both are on disk.

    array  one or two dimensions; written little-endian, in C order

    Raises OutputError, also where the file has other bytes than the array.
    """
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    path = folder / f"{name}.npy"
    pieces = header(array.dtype, array.shape), array.reshape(-1).view(np.uint8).data
    digest = hashlib.sha256()
    with writing(path):
        write_synced(path, *pieces)
    for piece in pieces:
        digest.update(piece)
    record = record_file(path)
    if record.sha256 != digest.hexdigest():
        raise OutputError(
            "{}: other bytes are read than were written", Place(path),
            hint="check the disk, and begin again",
        )  # fmt: skip
    return record


def write_synced(path: Path, *pieces: bytes | memoryview) -> None:
    """Write a file and wait until it is on disk. The folder's entry of it is synced by `sync`."""
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def record_file(path: Path) -> FileRecord:
    """The record of a file, whose checksums are written beside it. Raises OutputError."""
    digest, found, n_bytes = hashlib.sha256(), [], 0
    with writing(path), path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            found.append(zlib.crc32(block))
            n_bytes += len(block)
        os.fsync(file.fileno())
        checks = np.array(found, "<u4").tobytes()
        write_synced(path.with_suffix(".crc"), checks)
    return FileRecord(
        name=path.name,
        n_bytes=n_bytes,
        sha256=digest.hexdigest(),
        checks=hashlib.sha256(checks).hexdigest(),
    )


def map_file(folder: Path, record: FileRecord) -> memoryview:
    """The bytes of a file, mapped, of the length in its record. Raises IndexDamageError.

    The map keeps the file alive for its reader when a writer removes it.
    """
    path = folder / record.name
    with reading(path), open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size != record.n_bytes:
            raise damaged(path, f"has {size} bytes where {record.n_bytes} were written")
        # An empty file cannot be mapped.
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")


class CheckedFile:
    """A file of an index, mapped; the bytes that `read` gives are as they were written.

    Several threads may use one: a block that two of them check at once is checked twice. Of a file
    in a store, blocks are fetched when they are checked.
    """

    __slots__ = ("_checks", "_mapped", "_stored", "n_bytes", "path")

    def __init__(self, folder: Path, record: FileRecord) -> None:
        """Map the file: its length and table of checksums are checked, its data is not yet.

        Raises IndexDamageError, and IndexUnreachableError where a store does not answer.
        """
        self.path = folder / record.name
        self.n_bytes = record.n_bytes
        self._stored: StoredFile | None = None
        table = self.path.with_suffix(".crc")
        n_blocks = -(-self.n_bytes // BLOCK_BYTES)
        if isinstance(folder, Address):
            stored = StoredFile(self.path, self.n_bytes, record.sha256)
            with reading(self.path):
                if n_blocks > 1:
                    stored.look()
                    self._stored, self._mapped = stored, stored.map()
                else:
                    # With its digest all of it is known, and no table needed.
                    self._mapped = Mapped(stored.whole())
                    self._mapped.done[:] = True
                    self._checks = np.zeros(n_blocks, "<u4")
                    return
            with reading(table):
                checks = bytes(StoredFile(table, 4 * n_blocks, record.checks).whole())
        else:
            with reading(table):
                checks = read_file(table)
            if hashlib.sha256(checks).hexdigest() != record.checks:
                raise damaged(table, "the table of checksums was altered")
            self._mapped = Mapped(map_file(folder, record))
        self._checks = np.frombuffer(checks, "<u4")
        if len(self._checks) != n_blocks:
            raise damaged(self.path, "block count does not match the checksum table")

    @property
    def is_remote(self) -> bool:
        """Whether blocks of it have to be fetched."""
        return self._stored is not None

    def read(self, begin: int, end: int) -> memoryview:
        """Bytes [begin, end). Raises IndexDamageError."""
        stop = (end - 1) // BLOCK_BYTES + 1 if begin < end else 0
        return self._checked(range(begin // BLOCK_BYTES, stop)).raw[begin:end]

    def sha256(self) -> str:
        """The digest of the whole file, hexadecimal."""
        return hashlib.sha256(self._mapped.raw).hexdigest()

    def check_file(self) -> None:
        """Make sure that the whole file is as it was written. Raises IndexDamageError."""
        self._checked(range(len(self._checks)))

    def _checked(self, numbers: Iterable[int]) -> Mapped:
        """The bytes, of which these blocks (ascending) are as they were written."""
        found, missing = self._look(numbers)
        _fetch([(self, found, missing)])
        return found

    def _look(self, numbers: Iterable[int]) -> tuple[Mapped, list[int]]:
        """The bytes as they are mapped now, and those of the blocks that have to be fetched."""
        found = self._mapped
        if self._stored is not None and found.generation != block_cache().generation:
            found = self._mapped = self._stored.map(found)
        missing = []
        for number in numbers:
            if not found.done[number]:
                begin = number * BLOCK_BYTES
                block = found.raw[begin : begin + BLOCK_BYTES]
                if found.may_have(number) and zlib.crc32(block) == self._checks[number]:
                    found.done[number] = True
                elif self._stored is None:
                    raise self._altered(number)
                else:
                    missing.append(number)
        return found, missing

    def fetch(self, found: Mapped, first: int, stop: int) -> None:
        """Fetch neighbouring blocks."""
        begin, end = first * BLOCK_BYTES, min(stop * BLOCK_BYTES, self.n_bytes)
        assert self._stored is not None  # noqa: S101 - else nothing is missing
        with reading(self.path):
            data = self._stored.fetch(begin, end)
        for number in range(first, stop):
            at = number * BLOCK_BYTES - begin
            if zlib.crc32(data[at : at + BLOCK_BYTES]) != self._checks[number]:
                raise self._altered(number)
        block_cache().write(found.handle, data, begin)
        found.done[first:stop] = True

    def _altered(self, number: int) -> IndexDamageError:
        begin = number * BLOCK_BYTES
        end = min(begin + BLOCK_BYTES, self.n_bytes)
        return damaged(self.path, f"bytes {begin} to {end - 1} were altered")


def _fetch(missing: Iterable[tuple[CheckedFile, Mapped, list[int]]]) -> None:
    """Fetch what is missing of several files, all of it at the same time."""
    wanted = [(file, found, *run) for file, found, numbers in missing for run in runs(numbers)]
    if wanted:
        at_once(lambda one: one[0].fetch(*one[1:]), wanted)
        block_cache().trim()


class CheckedArray(CheckedFile):
    """An array of an index, mapped.

    What a `check` returns is the array, of which the rows asked for are as they were written; of
    `array` nothing is known to be.

    array  read-only, little-endian, C order, one or two dimensions
    """

    __slots__ = ("_row_bytes", "dtype", "shape")

    def __init__(self, folder: Path, record: FileRecord) -> None:
        """Map an array and check its header, besides what is checked of each file."""
        super().__init__(folder, record)
        if self.is_remote:
            self._checked([0])
        try:
            self.dtype, self.shape = parse_header(bytes(self._mapped.raw[:HEADER_BYTES]))
        except HeaderError as error:
            raise damaged(self.path, str(error)) from error
        rows = self.shape[0]
        self._row_bytes = self.dtype.itemsize * (self.shape[1] if len(self.shape) > 1 else 1)
        if self.n_bytes != HEADER_BYTES + rows * self._row_bytes:
            raise damaged(self.path, f"its header speaks of {rows} rows, its length does not")

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def array(self) -> NDArray[Any]:
        """The array, unchecked."""
        return self._array(self._mapped)

    def check_all(self) -> NDArray[Any]:
        """The whole array as it was written. Raises IndexDamageError."""
        return self._array(self._checked(range(len(self._checks))))

    def check(self, lo: int, hi: int) -> NDArray[Any]:
        """The array, of which rows lo to hi - 1 are as they were written. As above."""
        return self.check_many([lo], [hi])

    def check_many(self, lo: ArrayLike, hi: ArrayLike) -> NDArray[Any]:
        """`check` for many ranges at once; lo and hi are integers of one shape [m]."""
        return self._array(self._checked(self._blocks(lo, hi)))

    def _blocks(self, lo: ArrayLike, hi: ArrayLike) -> list[int]:
        """The blocks of these rows, ascending, but those that were checked."""
        begin, end = np.asarray(lo, np.int64), np.asarray(hi, np.int64)
        some = begin < end
        done = self._mapped.done
        if not some.any() or (not self.is_remote and done.all()):
            return []
        # +1 where a range of blocks begins, -1 behind its end: above zero is asked for.
        change = np.zeros(len(done) + 1, np.int64)
        row = self._row_bytes
        np.add.at(change, (HEADER_BYTES + begin[some] * row) // BLOCK_BYTES, 1)
        np.add.at(change, (HEADER_BYTES + end[some] * row - 1) // BLOCK_BYTES + 1, -1)
        wanted = np.cumsum(change[:-1]) > 0
        # What was fetched may have been removed meanwhile.
        return np.flatnonzero(wanted if self.is_remote else wanted & ~done).tolist()

    def _array(self, mapped: Mapped) -> NDArray[Any]:
        return np.frombuffer(mapped.raw, self.dtype, offset=HEADER_BYTES).reshape(self.shape)


Rows = tuple[CheckedArray, "ArrayLike", "ArrayLike"]
"""An array, and rows of it as for `check_many`."""


def fetch_rows(wanted: Iterable[Rows]) -> None:
    """Fetch rows of arrays in stores, of all at the same time; whoever checks them finds them."""
    _fetch(
        [
            (file, *file._look(file._blocks(lo, hi)))  # noqa: SLF001 - our own
            for file, lo, hi in wanted
            if file.is_remote
        ]
    )


def sync(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the file system can do that."""
    from contam.files.disk import sync_path

    with writing(folder):
        sync_path(folder)


HEADER_BYTES: Final = 128
"""Every header is padded to this length, so that data begins at a multiple of every item size."""

_MAGIC: Final = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
_TYPES: Final = frozenset({"<i8", "<u8", "<i4", "<u4", "<u2", "|u1", "<f4"})
_HEADER: Final = re.compile(
    rb"\{'descr': '([<|][iuf][1248])', 'fortran_order': False, "
    rb"'shape': \(([0-9]{1,18}), ?([0-9]{1,9})?\), \} *\n"
)


class HeaderError(ValueError):
    """A header that this format does not have."""


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The only header, 128 bytes, of an array of one or two dimensions."""
    code = dtype.newbyteorder("<").str
    if code not in _TYPES or len(shape) not in {1, 2}:
        raise HeaderError(f"no array file holds {dtype} of shape {shape}")
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return _MAGIC + text.ljust(HEADER_BYTES - len(_MAGIC) - 1) + b"\n"


def parse_header(raw: bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Type and shape that `header` made these bytes of. Raises HeaderError for any other bytes."""
    found = _HEADER.fullmatch(raw, len(_MAGIC))
    if found is None:
        raise HeaderError("the header of the array is not one of ours")
    dtype = np.dtype(found[1].decode())
    shape = tuple(int(size) for size in found.groups()[1:] if size is not None)
    if header(dtype, shape) != raw:
        raise HeaderError("the header of the array is not one of ours")
    return dtype, shape
