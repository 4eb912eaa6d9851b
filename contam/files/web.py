"""Read single files over https, range by range, each of the same version of the file."""

from __future__ import annotations

import errno
import functools
import logging
import os
import re
import ssl
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

import httpx

from contam.files.disk import FileState
from contam.files.stores import (
    BusyError,
    RefusedError,
    RemoteFile,
    StoreError,
    patience,
    persistently,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from contam.files.addresses import Address

#: What a path may hold besides letters and digits; an address is taken as it was copied.
_KEPT: Final = "/%:@!$&'()*+,;=~-._"
_TOTAL: Final = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+)")
_QUERY: Final = re.compile(r"\?[^\s'\"]+")
_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_GONE: Final = frozenset({404, 410})
_REFUSED: Final = frozenset({401, 403, 407})
_NO_RANGE: Final = 416
_SECOND: Final = 1_000_000_000


class Answer(NamedTuple):
    """A range of a file: its bytes, where they begin, and the state of the file."""

    data: bytes
    begin: int
    state: FileState


def store_of(address: Address) -> WebStore:
    """The files of a host."""
    del address
    return _STORE


class WebStore:
    """Files over https, one by one: nobody lists them."""

    def look(self, address: Address) -> str:
        try:
            self.state(address)
        except FileNotFoundError:
            return ""
        return "file"

    def pinned(self, address: Address) -> Address:
        return address

    def below(self, address: Address) -> Iterator[Address]:
        del address
        raise StoreError("https:// supports single files only")

    def state(self, address: Address) -> FileState:
        # Its first byte has size and version: servers that refuse HEAD send it, too.
        return ranged(_url(address), 0, 1).state

    def listed(self, address: Address) -> str:
        del address
        return ""  # nobody lists them

    def open(self, address: Address) -> RemoteFile:
        state = self.state(address)

        def fetch(begin: int, end: int) -> bytes:
            answer = ranged(_url(address), begin, end)
            if answer.state != state:
                raise StoreError("it was replaced while it was read")
            return answer.data

        return RemoteFile(state, fetch)


_STORE: Final = WebStore()


def ranged(url: str, begin: int, end: int, headers: Mapping[str, str] | None = None) -> Answer:
    """A range of a file in any state. Raises OSError."""
    answer = persistently(lambda: _answer(url, begin, end, headers or {}))
    if answer.begin != begin:
        raise StoreError("the server sent another range than it was asked for")
    return answer


def unsigned(record: logging.LogRecord) -> bool:
    """Cut the queries of addresses from a line of a library: they may be signed."""
    record.msg, record.args = _QUERY.sub("", record.getMessage()), None
    return True


logging.getLogger("httpx").addFilter(unsigned)


@functools.cache
def _client() -> httpx.Client:
    """One for all files of a process: it keeps connections and reads the certificates once."""
    return httpx.Client(
        follow_redirects=True,
        headers={"Accept-Encoding": "identity", "User-Agent": "contam"},
        event_hooks={"response": [_refuse_plain_http]},
    )


def renew_connections() -> None:
    """Begin anew: a child must not speak on its parent's connections."""
    _client.cache_clear()
    _client()  # several threads that ask first would make several


def _refuse_plain_http(response: httpx.Response) -> None:
    if response.has_redirect_location:
        target = response.url.join(response.headers["Location"])
        if response.url.scheme == "https" != target.scheme:
            raise StoreError("the server leads away from https")


renew_connections()
os.register_at_fork(after_in_child=renew_connections)


def _answer(url: str, begin: int, end: int, headers: Mapping[str, str]) -> Answer:
    asked = {"Range": f"bytes={begin}-{end - 1}", **headers}
    try:
        with _client().stream("GET", url, headers=asked, timeout=patience().timeout_s) as response:
            if response.status_code not in (_NO_RANGE, *range(200, 300)):
                raise _failure(response.status_code)
            data = bytearray()
            for piece in response.iter_raw():
                data += piece
                if len(data) > end - begin:
                    break
            return _read(response.headers, bytes(data), response.status_code)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Not chained: what failed may hold a signed address.
        raise _told(error) from None


def _read(headers: httpx.Headers, data: bytes, status: int) -> Answer:
    found = _TOTAL.fullmatch(headers.get("Content-Range") or "")
    if found is None:
        raise StoreError("the server does not send ranges of files")
    begin = int(found[1]) if found[1] else 0
    expected = int(found[2]) + 1 - begin if found[2] else 0
    if len(data) != expected:
        raise BusyError(f"the server broke off: {len(data):,} of {expected:,} bytes came")
    if status == _NO_RANGE and int(found[3]):
        raise StoreError("it was cut while it was read")
    tag = (headers.get("ETag") or "").strip('"')
    return Answer(
        data,
        begin,
        FileState(
            int(found[3]),
            _nanoseconds(headers.get("Last-Modified") or ""),
            version=f"etag={tag}" if tag else "",
        ),
    )


def _failure(status: int) -> OSError:
    fact = f"the server answered with status {status}"
    if status in _GONE:
        return FileNotFoundError(errno.ENOENT, fact)
    kind: Callable[[str], OSError] = StoreError
    if status in _REFUSED:
        kind = RefusedError
    elif status in _BUSY:
        kind = BusyError
    return kind(fact)


def _told(error: Exception) -> StoreError:
    """What failed, without words of the library, which may repeat an address."""
    if isinstance(error, httpx.TimeoutException):
        return BusyError("the server did not answer: it took too long")
    cause: BaseException | None = error
    while cause is not None and not (isinstance(cause, OSError) and cause.errno):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return StoreError("the certificate of the server is not valid")
    why = (isinstance(cause, OSError) and cause.strerror) or type(error).__name__
    return BusyError(f"the server broke off: {why}")


def _nanoseconds(text: str) -> int:
    try:
        return int(parsedate_to_datetime(text).timestamp()) * _SECOND
    except ValueError:
        return 0


def _url(address: Address) -> str:
    path, question, asked = str(address).partition("://")[2].partition("?")
    return f"https://{quote(path, safe=_KEPT)}{question}{asked}"
