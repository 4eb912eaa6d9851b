"""Reach objects in S3, Google Cloud Storage and Azure through Arrow's file systems.

Arrow finds credentials as the stores' own tools do, and asks again when a store is busy or breaks
off. It does not notice when an object is replaced between two requests.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from contam.errors import ConfigError
from contam.files.addresses import Address
from contam.files.disk import FileState
from contam.files.stores import (
    RefusedError,
    RemoteFile,
    StoreError,
    access_lost,
    bounded,
    patience,
)
from contam.memory import peak_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from contam.files.stores import Patience

    Result = TypeVar("Result")

#: Requests that wait for a store at the same time; Arrow's own choice is eight.
_IO_THREADS: Final = 32
_CONNECT_S: Final = 10
#: What Arrow says of a failure: which bucket and key come before, what the store sent behind.
_AWS: Final = re.compile(r"AWS Error ([A-Z_]+|UNKNOWN \(HTTP status \d+\)) during (\w+) operation")
_CODE: Final = re.compile(r"Unable to parse ExceptionName: (\w+)")
_REFUSED: Final = re.compile(
    r"ACCESS_DENIED|EXPIRED|INVALID_ACCESS_KEY|UNRECOGNIZED_CLIENT|SIGNATURE|TOKEN|CREDENTIAL"
    r"|HTTP status 40[013]|HttpStatus\(40[13]\)|UNAUTHENTICATED|PERMISSION_DENIED"
    r"|Authentication|Base64",
    re.IGNORECASE,
)
_LONGEST: Final = 200
_UNCLEAR: Final = re.compile("INTERNAL_FAILURE|UNKNOWN")
#: Bytes of an answer that says why a store failed.
_LONGEST_ANSWER: Final = 16 << 10
_ATTEMPTS_HERE: Final = 4
_PAUSE_S: Final = 0.1
#: Bytes of a file that are sent at the same time.
_PIECE: Final = 64 << 20
#: What a listing may take: millions of objects do not fill it.
_LISTING_BYTES: Final = 1 << 30
_LISTING_S: Final = 1800

_stores: dict[Address, ObjectStore] = {}
_lock = threading.Lock()


def store_of(address: Address) -> ObjectStore:
    """The store of a bucket or container; all threads share it."""
    root = address.root
    with _lock:
        known = _stores.get(root)
        if known is None:
            if pa.io_thread_count() < _IO_THREADS:
                pa.set_io_thread_count(_IO_THREADS)
            known = _stores[root] = ObjectStore(root)
        return known


class ObjectStore:
    """One bucket or container."""

    def __init__(self, root: Address) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._connected = _connect(root)
        #: Objects that can show whether there is access: the last that was read, and listed ones.
        self._read = ""
        self._listed: tuple[str, ...] = ()
        self._stamps: dict[str, str] = {}

    def look(self, address: Address) -> str:
        kinds = {fs.FileType.File: "file", fs.FileType.Directory: "folder"}
        found = self.ask(lambda store: store.get_file_info(_path(address)))
        self._note(found)
        return kinds.get(found.type, "")

    def pinned(self, address: Address) -> Address:
        return address

    def below(self, address: Address) -> Iterator[Address]:
        wanted = fs.FileSelector(_path(address), allow_not_found=True, recursive=True)
        peak, end = peak_bytes() + _LISTING_BYTES, time.monotonic() + _LISTING_S
        # Arrow gives nothing before it has all pages, and a store may send pages without end.
        listed = bounded(
            lambda: self.ask(lambda store: store.get_file_info(wanted)),
            lambda: peak_bytes() > peak or time.monotonic() > end,
            StoreError("its listing does not end: give a longer prefix, or single objects"),
        )
        files = [found.path for found in listed if found.type is fs.FileType.File]
        self._listed = tuple(files[at] for at in {0, len(files) // 2, -1} if files)
        for found in listed:
            if found.type is fs.FileType.File:
                self._note(found)
                key = Address(f"{address.scheme}://{found.path}")
                if _path(key) != found.path:
                    raise StoreError(f"{found.path!r} contains an empty or '.' segment")
                yield key

    def _note(self, found: fs.FileInfo) -> None:
        if found.type is fs.FileType.File and found.mtime_ns:
            self._stamps[found.path] = FileState(found.size, found.mtime_ns).stamp

    def listed(self, address: Address) -> str:
        return self._stamps.get(_path(address), "")

    def state(self, address: Address) -> FileState:
        return self.open(address).state

    def open(self, address: Address) -> RemoteFile:
        path = _path(address)
        native = self.ask_for(path, lambda store: store.open_input_file(path))
        state = _state(native.metadata() or {}, native.size())
        if not state.version and not state.modified_ns:
            found = self.ask(lambda store: store.get_file_info(path))
            state = state._replace(modified_ns=found.mtime_ns or 0)
        return RemoteFile(state, partial(self._range, path, native))

    def _range(self, path: str, native: pa.NativeFile, begin: int, end: int) -> bytes:
        for attempt in range(_ATTEMPTS_HERE):
            try:
                return bytes(native.read_at(end - begin, begin))
            except OSError as error:
                failure = told(error)
                if isinstance(failure, RefusedError):
                    break
                # Arrow makes room for the range alone: of a longer answer it cannot tell that it
                # says to ask again.
                unclear = end - begin < _LONGEST_ANSWER and _UNCLEAR.search(str(failure))
                if not unclear or attempt + 1 == _ATTEMPTS_HERE:
                    raise failure from error
                time.sleep(_PAUSE_S * 2**attempt)

        def again(store: fs.FileSystem) -> bytes:
            with store.open_input_file(path) as file:
                return bytes(file.read_at(end - begin, begin))

        return self.ask_for(path, again)

    def ask_for(self, path: str, question: Callable[[fs.FileSystem], Result]) -> Result:
        """Ask for an object. Raises CorpusError when no other can be read either: the run ends."""
        try:
            answer = self.ask(question)
        except RefusedError as error:
            if any(map(self._is_readable, {self._read, *self._listed} - {"", path})):
                raise
            raise access_lost(f"{self._root.scheme}://{path}", error) from error
        self._read = path
        return answer

    def _is_readable(self, path: str) -> bool:
        try:
            with self._connected.open_input_file(path) as file:
                file.read_at(1, 0)
        except OSError:
            return False
        return True

    def write(self, address: Address, source: Path | bytes) -> None:
        """Write an object. Arrow sends a large one in parts, which the store then joins."""
        content = _content(source)
        # Ctrl-C reaches the main thread alone: a stream that is given up halfway makes an object
        # of what it was given.
        with ThreadPoolExecutor(1) as apart:
            sent = apart.submit(self.ask, lambda store: _send(store, _path(address), content))
            sent.result()

    def remove(self, address: Address) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.ask(lambda store: store.delete_file(_path(address)))

    def ask(self, question: Callable[[fs.FileSystem], Result]) -> Result:
        """Ask once more with fresh credentials when those that there are are refused."""
        store = self._connected
        try:
            return question(store)
        except (OSError, pa.ArrowException) as error:
            failure = told(error)
            if not isinstance(failure, RefusedError):
                raise failure from error
        with self._lock:
            if self._connected is store:
                self._connected = _connect(self._root)
        try:
            return question(self._connected)
        except (OSError, pa.ArrowException) as error:
            raise told(error) from error


def _send(store: fs.FileSystem, path: str, content: pa.Buffer) -> None:
    target = store.open_output_stream(path, compression=None)
    try:
        for begin in range(0, content.size, _PIECE):
            target.write(content.slice(begin, min(_PIECE, content.size - begin)))
            # Waits for what is under way: else all of it would be copied to memory.
            target.flush()
    except BaseException:
        with contextlib.suppress(OSError):
            target.close()
        raise
    target.close()


def _content(source: Path | bytes) -> pa.Buffer:
    if isinstance(source, bytes) or not source.stat().st_size:
        return pa.py_buffer(source if isinstance(source, bytes) else b"")
    with pa.memory_map(str(source)) as file:
        return file.read_buffer()


def told(error: OSError | pa.ArrowException) -> OSError | pa.ArrowException:
    """What Arrow says of a store, as our own error; what says nothing of one as it is."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "no object is there")
    text = " ".join(str(error).split())
    if found := _AWS.search(text):
        # The last is what a HEAD gets, whose answer has no body.
        if found[1] in {"NO_SUCH_KEY", "NO_SUCH_BUCKET", "RESOURCE_NOT_FOUND"}:
            return StoreError("the object is gone")
        if found[1] == "NETWORK_CONNECTION":
            return StoreError("the store cannot be reached")
        # Nothing that the store sent: what it refuses it may repeat.
        code = _CODE.search(text)
        fact = f"the store answered {code[1] if code else found[1]} to {found[2]}"
    elif re.search(r"google::cloud|GCS|Azure|HttpStatus|Base64|from (Blob|DataLake)", text):
        fact = f"the store answered: {text.partition('?')[0][:_LONGEST]}"
    else:
        return error
    return (RefusedError if _REFUSED.search(text) else StoreError)(fact)


def _connect(root: Address) -> fs.FileSystem:
    asked = patience()
    if root.scheme == "s3":
        return _s3(root.name, asked)
    if root.scheme == "gs":
        return _google(asked)
    return _azure()


def _s3(bucket: str, asked: Patience) -> fs.S3FileSystem:
    environ = os.environ
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if not region and not endpoint:
        try:
            region = fs.resolve_s3_region(bucket)
        except OSError:
            region = None  # a request for an object says what is wrong
    return fs.S3FileSystem(
        region=region or ("us-east-1" if endpoint else None),
        endpoint_override=endpoint,
        anonymous=_is_set(environ.get("AWS_NO_SIGN_REQUEST")),
        request_timeout=asked.timeout_s,
        connect_timeout=min(_CONNECT_S, asked.timeout_s),
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=asked.attempts),
    )


def _google(asked: Patience) -> fs.GcsFileSystem:
    environ = os.environ
    emulator = environ.get("STORAGE_EMULATOR_HOST") or ""
    # Nobody's credentials are for an emulator.
    scheme, _, host = emulator.rpartition("://")
    return fs.GcsFileSystem(
        anonymous=bool(emulator) or _is_set(environ.get("GOOGLE_NO_SIGN_REQUEST")),
        scheme=(scheme or "http") if emulator else None,
        endpoint_override=host.rstrip("/") or None,
        retry_time_limit=timedelta(seconds=asked.attempts * asked.timeout_s),
    )


def _azure() -> fs.AzureFileSystem:
    environ = os.environ
    account = environ.get("AZURE_STORAGE_ACCOUNT")
    if not account:
        raise ConfigError(
            "no account for az:// is named: AZURE_STORAGE_ACCOUNT is not set",
            hint="check the variable it came from",
        )
    endpoint = urlsplit(environ.get("AZURE_STORAGE_SERVICE_ENDPOINT") or "")
    if endpoint.geturl() and endpoint.scheme not in {"http", "https"}:
        raise ConfigError(
            "AZURE_STORAGE_SERVICE_ENDPOINT does not begin with https:// or http://",
            hint="check the variable it came from",
        )
    token = environ.get("AZURE_STORAGE_SAS_TOKEN")
    # Of `account.blob.core.example` Arrow wants what is behind the account.
    home = endpoint.netloc.removeprefix(account) if endpoint.netloc else None
    lake = home.replace(".blob.", ".dfs.", 1) if home else None
    return fs.AzureFileSystem(
        account,
        account_key=environ.get("AZURE_STORAGE_KEY"),
        # Arrow puts it behind an address as it is; without the mark it would be part of the path.
        sas_token=f"?{token.removeprefix('?')}" if token else None,
        blob_storage_authority=home,
        dfs_storage_authority=lake,
        blob_storage_scheme=endpoint.scheme or None,
        dfs_storage_scheme=endpoint.scheme or None,
    )


def _is_set(value: str | None) -> bool:
    return (value or "").lower() in {"1", "true", "yes"}


def _path(address: Address) -> str:
    """Bucket and key, as Arrow has them."""
    return "/".join(address.parts[1:])


def _state(found: dict[Any, Any], size: int) -> FileState:
    """What a store says of an object. A tag may be empty, and then the time has to do."""
    said = {_text(name).lower(): _text(value) for name, value in found.items()}
    version = said.get("generation") or said.get("etag", "").strip('"')
    return FileState(
        size=size,
        modified_ns=_nanoseconds(said.get("last-modified", "")),
        version=f"etag={version}" if version else "",
    )


def _nanoseconds(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return 0
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return int(found.timestamp()) * 1_000_000_000


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
