"""Read the files of data sets on the Hugging Face Hub.

What is read is pinned to a commit, which never changes, so what it holds is asked for once.
`HfFileSystem` says what there is. The bytes come over https from wherever the Hub sends us, range
by range: its own reader does not compare what comes with what was asked for.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast
from urllib.parse import quote

from contam import extras
from contam.errors import Public, UsageError
from contam.files import web
from contam.files.addresses import Address
from contam.files.disk import FileState
from contam.files.stores import (
    BusyError,
    RefusedError,
    RemoteFile,
    StoreError,
    access_lost,
    bounded,
    patience,
    persistently,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from huggingface_hub import HfFileSystem

    Result = TypeVar("Result")

_KIND: Final = "dataset"
_PARTS: Final = 4
_HASH_DIGITS: Final = 40
_REFUSED: Final = frozenset({401, 403})
#: Requests that a listing may need; the library makes one after the other.
_MOST_PAGES: Final = 50
_MISSING: Final = 404
#: Files that are fetched side by side.
_AT_ONCE: Final = 8
_BUSY: Final = frozenset({408, 500, 502, 503, 504})
#: What else may pass, and how it is told.
_PASSING: Final[dict[int | str, str]] = {
    429: "the Hub limits requests",
    "ValueError": "the Hub's answer cannot be read",
}

_NO_CONNECTION: Final = frozenset({"ConnectError", "ConnectTimeout", "ConnectionError"})

_stores: dict[Address, HubStore] = {}
_lock = threading.Lock()


def store_of(address: Address) -> HubStore:
    """The data set that an address is in. Raises MissingExtraError and UsageError."""
    extras.require("hub")
    if len(address.parts) < _PARTS or address.parts[1] != "datasets":
        raise UsageError(
            "{}: no data set of the Hub",
            Public(address),
            hint="objects are named as s3://, gs://, az://, https:// or hf://datasets/",
        )
    for library in ("huggingface_hub.utils._http", "httpx2"):
        logging.getLogger(library).addFilter(web.unsigned)
    with _lock:
        return _stores.setdefault(address.root, HubStore(address.root))


class Copies(NamedTuple):
    """Files of a data set that are on this machine.

    commit  of the data set;  names  of all its files there, as far as this machine knows
    paths   name of a wanted file -> where it is
    """

    commit: str
    names: tuple[str, ...]
    paths: dict[str, Path]


def copied(data_set: str, revision: str, patterns: Sequence[str]) -> Copies:
    """Bring the files of a data set that match into the library's cache, or find them there.

    Without a network, or in the library's offline mode, what the cache has is all there is. Of
    numbered files in one folder the last is fetched first: what is broken off has a gap.

    data_set  owner/name;  revision  a branch, tag or commit;  patterns  of names, as for fnmatch

    Raises MissingExtraError, and OSError: FileNotFoundError where neither has the data set.
    """
    extras.require("hub")
    owner, name = data_set.split("/")
    store = HubStore(Address("hf://datasets", owner, f"{name}@{quote(revision, safe='')}"))
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if HF_HUB_OFFLINE or _endpoint() in _unreachable:
        return store.kept(patterns)
    try:
        return store.copied(patterns)
    except StoreError as error:
        # Of hundreds of data sets that are asked for together only the first waits for a network.
        if isinstance(error.__cause__, _UnreachableError):
            _unreachable.add(_endpoint())
        elif not isinstance(error.__cause__, BusyError):
            raise
        try:
            return store.kept(patterns)
        except FileNotFoundError:
            raise error from None


class _UnreachableError(BusyError):
    """There is no connection to the Hub."""


_unreachable: Final[set[str | None]] = set()


class HubStore:
    """One data set in one revision."""

    def __init__(self, root: Address) -> None:
        owner, name = root.parts[2:]
        name, _, revision = name.partition("@")
        self._name = f"{owner}/{name}"
        # `refs/convert/parquet` is one part of an address as `refs%2Fconvert%2Fparquet`.
        self._revision = revision.replace("%2F", "/") or "main"
        self._found: dict[str, FileState] = {}
        self._files: HfFileSystem | None = None
        #: The file that was read last, which shows whether there is access.
        self._read = ""

    def pinned(self, address: Address) -> Address:
        if _is_commit(self._revision):
            return address
        # Of a file system's entries only the commits that changed them are told.
        commit, _ = self._commit()
        owner, name = self._name.split("/")
        return Address("hf://datasets", owner, f"{name}@{commit}", *address.parts[_PARTS:])

    def _commit(self, *, sized: bool = False) -> tuple[str, dict[str, int]]:
        """The commit that the revision is, and its files with their sizes where they are told."""
        from huggingface_hub import HfApi

        api = HfApi(endpoint=_endpoint())
        ask = partial(api.dataset_info, self._name, revision=self._revision, files_metadata=sized)
        info = self._asked(ask)
        if not _is_commit(info.sha or ""):
            raise StoreError("the Hub names no commit")
        return info.sha or "", {one.rfilename: one.size or 0 for one in info.siblings or ()}

    def copied(self, patterns: Sequence[str]) -> Copies:
        """The files that match, each fetched unless the library's cache has it."""
        from huggingface_hub import hf_hub_download

        commit, sizes = self._commit(sized=True)

        def fetch(name: str) -> Path:
            # By the revision, which the cache remembers with its commit.
            get = partial(
                hf_hub_download, self._name, name, repo_type=_KIND, endpoint=_endpoint(),
                revision=self._revision,
            )  # fmt: skip
            path = Path(self._asked(get, n_pages=_MOST_PAGES + (sizes[name] >> 20)))
            if path.parents[name.count("/")].name != commit:
                raise StoreError("the data set was changed while it was read")
            return path

        def fetch_folder(names: list[str]) -> list[tuple[str, Path]]:
            return [(name, fetch(name)) for name in reversed(names)]

        folders: dict[str, list[str]] = {}
        for name in _matching(sizes, patterns):
            folders.setdefault(name.rpartition("/")[0], []).append(name)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = [each for some in pool.map(fetch_folder, folders.values()) for each in some]
        return Copies(commit, tuple(sizes), dict(sorted(found)))

    def kept(self, patterns: Sequence[str]) -> Copies:
        """The files that match among those in the library's cache."""
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        try:
            folder = Path(snapshot_download(
                self._name, repo_type=_KIND, revision=self._revision, local_files_only=True
            ))  # fmt: skip
        except LocalEntryNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "neither the Hub nor its cache has it") from None
        names = {
            str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()
        }
        found = {name: names[name] for name in _matching(names, patterns)}
        return Copies(folder.name, tuple(sorted(names)), found)

    def look(self, address: Address) -> str:
        path = _path(address)
        try:
            return "file" if path and self._noted(path, self._info(path)) else "folder"
        except FileNotFoundError:
            return ""

    def below(self, address: Address) -> Iterator[Address]:
        found = self._asked(
            lambda: self._system().find(self._at(_path(address)), detail=True), n_pages=_MOST_PAGES
        )
        for name, entry in cast("dict[str, dict[str, Any]]", found).items():
            path = name.split("/", _PARTS - 1)[-1]
            if self._noted(path, entry):
                yield Address(*address.root.parts, *path.split("/"))

    def state(self, address: Address) -> FileState:
        path = _path(address)
        try:
            # A branch may hold something else by now.
            known = _is_commit(self._revision) and path in self._found
            known = known or self._noted(path, self._info(path))
        except RefusedError as error:
            raise access_lost(address, error) from error
        if not known:
            raise FileNotFoundError(errno.ENOENT, "the Hub has no such file")
        return self._found[path]

    def listed(self, address: Address) -> str:
        found = self._found.get(_path(address)) if _is_commit(self._revision) else None
        return found.stamp if found else ""

    def open(self, address: Address) -> RemoteFile:
        state = self.state(address)
        path = _path(address)

        def fetch(begin: int, end: int) -> bytes:
            try:
                answer = self._ranged(path, begin, end)
            except RefusedError:
                # The token may have been renewed.
                try:
                    answer = self._ranged(path, begin, end)
                except RefusedError as error:
                    if any(map(self._is_readable, {self._read, *[*self._found][:2]} - {"", path})):
                        raise
                    raise access_lost(address, error) from error
            if answer.state.size != state.size:
                raise StoreError("the Hub sent a file of another size than it has listed")
            self._read = path
            return answer.data

        return RemoteFile(state, fetch)

    def _ranged(self, path: str, begin: int, end: int) -> web.Answer:
        from huggingface_hub import hf_hub_url

        url = hf_hub_url(
            self._name, path, repo_type=_KIND, revision=self._revision, endpoint=_endpoint()
        )
        return web.ranged(url, begin, end, _headers())

    def _is_readable(self, path: str) -> bool:
        try:
            self._ranged(path, 0, 1)
        except OSError:
            return False
        return True

    def _info(self, path: str) -> dict[str, Any]:
        # Without the rest of its folder, which may be long.
        return self._asked(lambda: self._system().info(self._at(path), expand_info=True))

    def _system(self) -> HfFileSystem:
        """The library's view of the data set; it is kept while nothing in it can change."""
        from huggingface_hub import HfFileSystem

        made = self._files or HfFileSystem(endpoint=_endpoint(), skip_instance_cache=True)
        self._files = made if _is_commit(self._revision) else None
        return made

    def _at(self, path: str) -> str:
        """A path as the library has it."""
        return f"datasets/{self._name}@{quote(self._revision, safe='')}/{path}".rstrip("/")

    def _noted(self, path: str, entry: dict[str, Any]) -> bool:
        """Whether an entry is a file; then its state is known from now on."""
        if entry["type"] != "file":
            return False
        self._found[path] = FileState(
            entry["size"], 0, version=f"commit={self._revision},blob={entry['blob_id']}"
        )
        return True

    def _asked(self, question: Callable[[], Result], *, n_pages: int = 1) -> Result:
        return persistently(lambda: self._once(question, n_pages * patience().timeout_s))

    def _once(self, question: Callable[[], Result], limit_s: float) -> Result:
        try:
            end = time.monotonic() + limit_s
            late = BusyError("the Hub did not answer: it took too long")
            return bounded(question, lambda: time.monotonic() > end, late)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - of its HTTP library, which changes with its version
            self._files = None  # it remembers a refusal
            # Not chained: a library may repeat what it was asked with.
            raise _told(error) from None


def _matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    return sorted(name for name in names if any(fnmatchcase(name, each) for each in patterns))


def _told(error: BaseException) -> OSError:
    """What a failure of the library says, without its words."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    kind = type(error).__name__
    if kind in {"RepositoryNotFoundError", "GatedRepoError"} or status in _REFUSED:
        return RefusedError("the Hub has no such data set, or not for these credentials")
    if status is None and error.__cause__ is not None:
        return _told(error.__cause__)
    if status == _MISSING or isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "the Hub has no such file or revision")
    cause = status or kind
    if kind in _NO_CONNECTION:
        return _UnreachableError(f"the Hub did not answer: {kind}")
    if status is None or status in _BUSY or status in _PASSING:
        return BusyError(_PASSING.get(cause) or f"the Hub did not answer: {cause}")
    return StoreError(f"the Hub answered with status {status}")


def _headers() -> dict[str, str]:
    from huggingface_hub import get_token

    token = get_token()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


def _is_commit(revision: str) -> bool:
    return len(revision) == _HASH_DIGITS and set(revision) <= set("0123456789abcdef")


def _path(address: Address) -> str:
    return "/".join(address.parts[_PARTS:])
