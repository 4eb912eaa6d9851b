"""Define the requests a flow asks its driver to make."""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpx

import contam
from contam.client import wire
from contam.client.failures import AnswerError, ServiceError, UnreachableError, problem_error
from contam.client.retry import may_help, retry_after_s
from contam.errors import UsageError

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Mapping

    from contam.client.retry import Retry


CONNECT_S: Final = 10.0
"""Seconds for a connection to come up."""


class UploadPart(NamedTuple):
    """One part of an upload: its role there, the name of the file, and its bytes or where they are.

    kind  its media type
    """

    role: str
    name: str
    content: bytes | Path
    kind: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One request, with a body or with parts. `save` is a file for the body of a 2xx."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    parts: tuple[UploadPart, ...] = field(default=(), repr=False)
    save: Path | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this many seconds."""

    seconds: float


class Reply(NamedTuple):
    """What came back, whole; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where the service is, and by which key.

    key_name  the variable that a key is given by

    Raises UsageError for an address that is none. A key is never part of the address, which shows
    in messages and process lists.
    """

    server: str
    key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    key_name: str = "CONTAM_KEY"

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.server)
            fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            fits = False
        if not fits or parts.query or parts.fragment:
            raise UsageError("the server is no address", hint="such as http://127.0.0.1:8000")
        if parts.username is not None:
            raise UsageError(
                "the server's address holds a user", hint=f"give the key as {self.key_name}"
            )
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise UsageError("the key is not one line of plain characters")

    def options(self) -> dict[str, Any]:
        """Arguments of an httpx client."""
        headers = {"User-Agent": f"contam/{contam.__version__}"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        return {
            "base_url": self.server.rstrip("/"),
            "headers": headers,
            "timeout": httpx.Timeout(self.timeout_s, connect=CONNECT_S),
            "follow_redirects": False,
            # A proxy of the environment is not meant for this machine.
            "trust_env": not is_loopback(urlsplit(self.server).hostname or ""),
        }


def key_from(environ: Mapping[str, str] | None = None) -> str | None:
    """The key in CONTAM_KEY, or in the file that CONTAM_KEY_FILE names; UsageError for no file."""
    environ = os.environ if environ is None else environ
    if key := environ.get("CONTAM_KEY"):
        return key.strip()
    if path := environ.get("CONTAM_KEY_FILE"):
        try:
            return Path(path).read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read the key in {path}: {type(error).__name__}") from error
    return None


def unreachable(call: Send, error: httpx.HTTPError | httpx.InvalidURL) -> UnreachableError:
    """The error for a request that got no whole answer."""
    name = type(error).__name__
    untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
    patience = isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout)
    hint = (
        "its certificate is not trusted here: see SSL_CERT_FILE" if untrusted
        else "ask for less at once, or raise timeout_s" if patience
        else "is the service running, and the address right?"
    )  # fmt: skip
    lasting = isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL)
    return UnreachableError(
        f"{call}: no answer from the service ({name})",
        hint=hint,
        again=not (untrusted or patience or lasting),
    )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def prepared(call: Send, files: contextlib.ExitStack) -> dict[str, Any]:
    """Arguments of httpx's `build_request`; files of an upload are opened into `files`."""
    arguments: dict[str, Any] = {
        "method": call.method,
        "url": call.path,
        "params": call.query or None,
        "headers": dict(call.headers),
    }
    if call.parts:
        arguments["files"] = [
            (part.role, (part.name, _opened(part.content, files), part.kind)) for part in call.parts
        ]
    elif call.body is not None:
        arguments["content"] = call.body
    return arguments


def _opened(content: bytes | Path, files: contextlib.ExitStack) -> bytes | BinaryIO:
    return content if isinstance(content, bytes) else files.enter_context(content.open("rb"))


Result = TypeVar("Result")
Flow: TypeAlias = Generator[Send | Pause, Reply | None, Result]
"""Steps for a driver: a flow yields what to send or how long to wait, and gets the replies."""


def sent(call: Send, retry: Retry) -> Flow[Reply]:
    """Send a request until it is answered; refusals that may pass are waited out.

    Raises ServiceError for a refusal, BusyError when it lasts, UnreachableError when no answer
    comes. Every request of a client may be repeated: it asks, or it carries an idempotency key.
    """
    waited_s = 0.0
    attempt = 0
    while True:
        attempt += 1
        asked_s = None
        failure: ServiceError | UnreachableError
        try:
            reply = yield call
        except UnreachableError as error:
            failure, again = error, error.again
        else:
            if reply is None:
                raise AnswerError(f"{call}: no reply")
            if HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
                return reply
            problem = wire.problem_of(reply.body)
            failure = problem_error(reply.status, problem, str(call))
            again = may_help(reply.status, failure.code, reply.headers)
            asked_s = retry_after_s(reply.headers)
        wait_s = retry.wait_s(attempt, waited_s, asked_s) if again else None
        if wait_s is None:
            raise failure
        yield Pause(wait_s)
        waited_s += wait_s
