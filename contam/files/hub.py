"""Read the files of data sets on the Hugging Face Hub.

What is read is pinned to a commit, which never changes, so what it holds is asked for once. The
bytes come over https from wherever the Hub sends us.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

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
    patience,
    persistently,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from huggingface_hub import HfApi

    Result = TypeVar("Result")

_KIND: Final = "dataset"
_PARTS: Final = 4
_HASH_DIGITS: Final = 40
_REFUSED: Final = frozenset({401, 403})
#: Requests that a listing may need; the library makes one after the other.
_MOST_PAGES: Final = 50
_MISSING: Final = 404
_BUSY: Final = frozenset({408, 500, 502, 503, 504})
#: What else may pass, and how it is told.
_PASSING: Final[dict[int | str, str]] = {
    429: "the Hub limits requests",
    "ValueError": "the Hub's answer cannot be read",
}

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


class HubStore:
    """One data set in one revision."""

    def __init__(self, root: Address) -> None:
        owner, name = root.parts[2:]
        name, _, revision = name.partition("@")
        self._name = f"{owner}/{name}"
        # `refs/convert/parquet` is one part of an address as `refs%2Fconvert%2Fparquet`.
        self._revision = revision.replace("%2F", "/") or "main"
        self._found: dict[str, FileState] = {}
        #: The file that was read last, which shows whether there is access.
        self._read = ""

    def pinned(self, address: Address) -> Address:
        if _is_commit(self._revision):
            return address
        commit = self._asked(lambda api: api.dataset_info(self._name, revision=self._revision)).sha
        if not _is_commit(commit or ""):
            raise StoreError("the Hub names no commit")
        owner, name = self._name.split("/")
        return Address("hf://datasets", owner, f"{name}@{commit}", *address.parts[_PARTS:])

    def look(self, address: Address) -> str:
        path = _path(address)
        if not path:
            return "folder"
        found = self._paths_info(path)
        if not found:
            return ""
        return "file" if self._noted(found[0]) else "folder"

    def below(self, address: Address) -> Iterator[Address]:
        found = self._asked(
            lambda api: list(
                api.list_repo_tree(
                    self._name,
                    _path(address) or None,
                    recursive=True,
                    revision=self._revision,
                    repo_type=_KIND,
                )
            ),
            n_pages=_MOST_PAGES,
        )
        for entry in found:
            if self._noted(entry):
                yield Address(*address.root.parts, *entry.path.split("/"))

    def state(self, address: Address) -> FileState:
        path = _path(address)
        try:
            # A branch may hold something else by now.
            known = _is_commit(self._revision) and path in self._found
            known = known or any(map(self._noted, self._paths_info(path)))
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

    def _paths_info(self, *paths: str) -> list[Any]:
        return self._asked(
            lambda api: api.get_paths_info(
                self._name, [*paths], revision=self._revision, repo_type=_KIND
            )
        )

    def _noted(self, entry: Any) -> bool:  # noqa: ANN401 - a file or folder of the library
        """Whether an entry is a file; then its state is known from now on."""
        size = getattr(entry, "size", None)
        if size is None:
            return False
        self._found[entry.path] = FileState(
            size, 0, version=f"commit={self._revision},blob={entry.blob_id}"
        )
        return True

    def _asked(self, question: Callable[[HfApi], Result], *, n_pages: int = 1) -> Result:
        return persistently(lambda: self._once(question, n_pages * patience().timeout_s))

    def _once(self, question: Callable[[HfApi], Result], limit_s: float) -> Result:
        from huggingface_hub import HfApi

        try:
            return _in_time(lambda: question(HfApi(endpoint=_endpoint())), limit_s)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - of its HTTP library, which changes with its version
            # Not chained: a library may repeat what it was asked with.
            raise _told(error) from None


def _in_time(ask: Callable[[], Result], timeout_s: float) -> Result:
    """The answer, or BusyError when there is none in time: the library itself waits for ever."""
    answers: SimpleQueue[tuple[Result | None, Exception | None]] = SimpleQueue()

    def answer() -> None:
        try:
            answers.put((ask(), None))
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            answers.put((None, error))

    threading.Thread(target=answer, daemon=True).start()
    try:
        found, error = answers.get(timeout=timeout_s)
    except Empty:
        raise BusyError("the Hub did not answer: it took too long") from None
    if error is not None:
        raise error
    return cast("Result", found)


def _told(error: BaseException) -> OSError:
    """What a failure of the library says, without its words."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    kind = type(error).__name__
    if kind in {"RepositoryNotFoundError", "GatedRepoError"} or status in _REFUSED:
        return RefusedError("the Hub has no such data set, or not for these credentials")
    if status == _MISSING or kind == "EntryNotFoundError":
        return FileNotFoundError(errno.ENOENT, "the Hub has no such file or revision")
    if status is None and error.__cause__ is not None:
        return _told(error.__cause__)
    cause = status or kind
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
