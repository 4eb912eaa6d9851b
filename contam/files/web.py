"""Read single files over https, range by range, each of the same version of the file."""

from __future__ import annotations

import errno
import http.client
import re
import ssl
import urllib.error
import urllib.request
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urlsplit

from contam.files.listed import FileState
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
    from email.message import Message

    from contam.files.addresses import Address

#: What a path may hold besides letters and digits; an address is taken as it was copied.
_KEPT: Final = "/%:@!$&'()*+,;=~-._"
_TOTAL: Final = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+)")
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
    return WebStore()


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
        raise StoreError("over https:// single files are read, no folders and no patterns")

    def state(self, address: Address) -> FileState:
        return first(_url(address)).state

    def open(self, address: Address) -> RemoteFile:
        url = _url(address)
        state = first(url).state
        return RemoteFile(state, lambda begin, end: fetched(url, begin, end, state))


def first(url: str) -> Answer:
    """The first byte of a file, with its size and version: servers that refuse HEAD send it, too.

    Raises OSError.
    """
    return persistently(lambda: _answer(url, 0, 1, {}))


def fetched(url: str, begin: int, end: int, state: FileState) -> bytes:
    """The bytes of a range of a file in a state. Raises OSError, also for those of another."""
    answer = ranged(url, begin, end)
    if answer.state != state:
        raise StoreError("it was replaced while it was read")
    return answer.data


def ranged(url: str, begin: int, end: int, headers: Mapping[str, str] | None = None) -> Answer:
    """A range of a file in any state. Raises OSError."""
    answer = persistently(lambda: _answer(url, begin, end, headers or {}))
    if answer.begin != begin:
        raise StoreError("the server sent another range than it was asked for")
    return answer


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to https alone, and gives a key to nobody but whom it is for."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: object,
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if old.scheme == "https" != new.scheme:
            raise StoreError("the server leads away from https")
        found = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
        if found is not None and old.netloc != new.netloc:
            found.remove_header("Authorization")
        return found


def _answer(url: str, begin: int, end: int, headers: Mapping[str, str]) -> Answer:
    request = urllib.request.Request(  # noqa: S310 - of an address that was checked
        url,
        headers={
            "Accept-Encoding": "identity",
            "Range": f"bytes={begin}-{end - 1}",
            "User-Agent": "contam",
            **headers,
        },
    )
    opener = urllib.request.build_opener(_Redirects)
    try:
        with opener.open(request, timeout=patience().timeout_s) as response:
            return _read(response.headers, response.read(end - begin + 1), response.status)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == _NO_RANGE:
                return _read(error.headers, b"", error.code)
            raise _failure(error.code) from None
    except StoreError:
        raise
    except urllib.error.URLError as error:
        # Not chained, here and above: what failed may hold a signed address.
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise StoreError("the certificate of the server is not valid") from None
        raise BusyError(f"the server did not answer: {_why(error.reason)}") from None
    except (OSError, http.client.HTTPException) as error:
        raise BusyError(f"the server broke off: {_why(error)}") from None


def _read(headers: Message, data: bytes, status: int) -> Answer:
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


def _why(error: object) -> str:
    """What failed, without words of a library that may repeat an address."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, OSError) and error.strerror and error.errno:
        return error.strerror
    return type(error).__name__


def _nanoseconds(text: str) -> int:
    try:
        return int(parsedate_to_datetime(text).timestamp()) * _SECOND
    except ValueError:
        return 0


def _url(address: Address) -> str:
    path, question, asked = str(address).partition("://")[2].partition("?")
    return f"https://{quote(path, safe=_KEPT)}{question}{asked}"
