"""Authenticate callers: keys, scopes, and the open mode without keys.

A key is 32 random bytes, so a plain digest keeps it safe; there is nothing in it to guess at.
Anything that cannot be decided is refused: an unreadable file of keys closes the service.
"""

from __future__ import annotations

import base64
import fcntl
import hmac
import ipaddress
import itertools
import os
import secrets
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from pydantic import Field, TypeAdapter

from contam.errors import ConfigError, UsageError
from contam.server.problems import AS_PAGE, CALLER, RequestError
from contam.server.state import unready

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from contam.config import Settings
    from contam.server.state import State


FILE: Final = "keys.json"
"""The file of keys in the service's data folder."""

KeyScope = Literal["check", "jobs", "read-documents", "admin"]

SCOPES: Final = get_args(KeyScope)
"""What a key may be allowed; `admin` allows everything."""

_OLD_FILE: Final = "keys.db"
#: Every key begins with it, so that scanners for leaked secrets can know one.
_PREFIX: Final = "contam_"
_ID_CHARACTERS: Final = 8
_MAX_NAME: Final = 100
_ADMIN_KEY_CHARACTERS: Final = 32
#: Seconds after which the file is read again although nothing about it looks changed.
_REREAD_S: Final = 5.0
_FORWARDED: Final = frozenset(
    (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via")
)


@dataclass(frozen=True, slots=True)
class Key:
    """What is kept of a key; times are seconds since 1970.

    digest   SHA-256 of the key itself, which is shown once and kept nowhere
    revoked  when it stopped being good; None: it is good
    """

    id: str
    name: str
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    scopes: frozenset[KeyScope]
    created: float
    revoked: float | None

    def to_dict(self) -> dict[str, Any]:
        """What may be shown of it, ready for JSON."""
        return {
            "id": self.id,
            "name": self.name,
            "scopes": sorted(self.scopes),
            "created": date_of(self.created),
            "revoked": date_of(self.revoked),
        }


def date_of(seconds: float | None) -> str | None:
    """Seconds since 1970 as a date, UTC."""
    if seconds is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


_KEYS: Final = TypeAdapter(list[Key])


class KeyStore:
    """The keys of one data folder. A missing file means no keys; an unreadable one is an error."""

    def __init__(self, data: str | Path) -> None:
        self.path = Path(data) / FILE

    def add(self, name: str, scopes: Sequence[str]) -> tuple[Key, str]:
        """Make a key; returns what is kept of it and the key itself, which nobody can show again.

        Raises UsageError for a name or scope that cannot be, ConfigError if the file is unusable.
        """
        if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
            raise UsageError(f"a key needs a name of 1 to {_MAX_NAME} printable characters")
        unknown = sorted(set(scopes) - set(SCOPES))
        if unknown or not scopes:
            what = f"no scope is called {unknown[0]!r}" if unknown else "a key needs a scope"
            raise UsageError(what, hint=f"scopes: {', '.join(SCOPES)}")
        with self._changing() as keys:
            drawn = (secrets.token_hex(_ID_CHARACTERS // 2) for _ in itertools.count())
            key_id = next(each for each in drawn if each not in keys)
            secret = f"{_PREFIX}{key_id}_{secrets.token_urlsafe(32)}"
            held = frozenset(scope for scope in SCOPES if scope in scopes)
            digest = _digest_of(secret.encode())
            key = keys[key_id] = Key(key_id, name, digest, held, time.time(), None)
        return key, secret

    def revoke(self, key_id: str) -> Key:
        """Make a key worthless, at once and for good; raises UsageError if there is none."""
        with self._changing() as keys:
            found = keys.get(key_id)
            if found is None:
                raise UsageError(
                    f"no key has the id {key_id!r}", hint="`contam keys list` shows the ids"
                )
            if found.revoked is None:
                found = keys[key_id] = replace(found, revoked=time.time())
        return found

    def all(self) -> dict[str, Key]:
        """Every key by its id, the oldest first, revoked ones too; raises ConfigError."""
        if self.path.with_name(_OLD_FILE).exists():
            raise ConfigError(
                f"{self.path.with_name(_OLD_FILE)} was written by another version of contam",
                hint="move it away and add keys anew: contam keys add NAME",
            )
        try:
            found = _KEYS.validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"the keys in {self.path} cannot be read: {type(error).__name__}",
                hint="restore the file, or move it away and add keys anew",
            ) from error
        return {key.id: key for key in found}

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Key]]:
        """The keys, written back when the block ends; one command at a time."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise ConfigError(f"cannot write {self.path}: {error.strerror}") from error
        draft = self.path.with_suffix(".draft")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            keys = self.all()
            yield keys
            draft.unlink(missing_ok=True)
            with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:  # noqa: PTH123 - its rights from the first
                file.write(_KEYS.dump_json(list(keys.values()), indent=1))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
        except OSError as error:
            raise ConfigError(f"cannot write {self.path}: {error.strerror}") from error
        finally:
            os.close(lock)


def _digest_of(key: bytes) -> str:
    return sha256(key).hexdigest()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the id of a key (`admin` and `open` are the two that no file holds)."""

    key_id: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        """Whether a scope is held; `admin` holds every one."""
        return scope in self.scopes or self.is_admin

    @property
    def is_admin(self) -> bool:
        """Whether everybody's things may be seen and changed."""
        return "admin" in self.scopes


ADMIN: Final = Caller("admin", frozenset(SCOPES))
OPEN: Final = Caller("open", frozenset(SCOPES))


class Keyring:
    """The keys a running service knows; a change of the file is seen by the next request."""

    def __init__(self, settings: Settings) -> None:
        admin = settings.admin_key
        if admin is not None and len(admin) < _ADMIN_KEY_CHARACTERS:
            raise ConfigError(
                f"admin_key has fewer than {_ADMIN_KEY_CHARACTERS} characters",
                hint="take the output of `openssl rand -hex 32`",
            )
        self._admin = None if admin is None else _digest_of(admin.encode())
        self._store = KeyStore(settings.data)
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._read_at = -_REREAD_S
        self._keys: dict[str, Key] = {}
        self._file_seen = False
        self._refresh()
        if not self._is_closed and not is_loopback(settings.host):
            raise ConfigError(
                f"{settings.host} can be reached by others, and there are no keys",
                hint=f"`contam keys add NAME --data {settings.data}` makes one; or listen on "
                "127.0.0.1",
            )

    @property
    def _is_closed(self) -> bool:
        return self._file_seen or self._admin is not None

    def caller(self, scope: Scope, *, on_page: bool = False) -> Caller:
        """Who sent a request; raises RequestError 401, 403 (not local) or 503 (keys unreadable).

        on_page  whether it is to a page, where a browser asks for the key as a password
        """
        try:
            self._refresh()
        except ConfigError as error:
            raise RequestError(
                503, "the keys cannot be read", code="keys-unreadable",
                hint="the operator has to restore the file of keys", headers={"Retry-After": "5"},
            ) from error  # fmt: skip
        presented = _presented(scope["headers"], on_page=on_page)
        if not self._is_closed:
            refuse_others(scope)
            return OPEN
        if presented is None:
            raise _unauthorised("the request has no key", on_page=on_page)
        digest = _digest_of(presented)
        if self._admin is not None and hmac.compare_digest(digest, self._admin):
            return ADMIN
        # The id that it claims to have.
        start = len(_PREFIX)
        claimed = presented[start : start + _ID_CHARACTERS].decode("ascii", "replace")
        key = self._keys.get(claimed)
        if key is None or not hmac.compare_digest(digest, key.digest) or key.revoked is not None:
            raise _unauthorised("the key is not valid, or was revoked", on_page=on_page)
        return Caller(key.id, key.scopes)

    def _refresh(self) -> None:
        """Read the file again when it looks changed, and every few seconds. Raises ConfigError."""
        try:
            found = os.stat(self._store.path)  # noqa: PTH116 - once a request
            stamp = (found.st_size, found.st_mtime_ns, found.st_ino)
        except FileNotFoundError:
            stamp = None
        except OSError as error:
            raise ConfigError(f"cannot look at {self._store.path}: {error}") from error
        now = time.monotonic()
        if stamp == self._stamp and now - self._read_at < _REREAD_S:
            return
        with self._lock:
            # Until it is read, nothing is known.
            self._read_at = -_REREAD_S
            keys = self._store.all()
            if stamp is None and self._file_seen:
                # There were keys: without them no caller can be identified.
                raise ConfigError(f"{self._store.path} is gone")
            self._keys = keys
            self._file_seen = stamp is not None or bool(keys) or self._file_seen
            self._stamp, self._read_at = stamp, now


class Needs(SecurityBase):
    """A dependency that lets a request through if its caller holds a scope, and gives the Caller.

    `Depends(Needs("check"))`; `scope` is one of SCOPES, and `admin` holds every one.
    """

    def __init__(self, scope: str) -> None:
        if scope not in SCOPES:
            raise ValueError(scope)
        self.needed = scope
        self.scheme_name = "key"
        self.model = HTTPBearer(
            description="A key made by `contam keys add`. A service without keys answers local "
            "callers only, and needs none.",
        )

    async def __call__(self, request: Request) -> Caller:
        """The caller; raises RequestError 403."""
        caller: Caller = request.scope[CALLER]
        self.refuse(caller)
        return caller

    def refuse(self, caller: Caller, option: str = "") -> None:
        """Raise RequestError, 403, for a caller without the scope, naming what asked for it."""
        if not caller.may(self.needed):
            without = f"leave {option} out, or " if option else ""
            raise RequestError(
                403,
                f"{f'{option}: ' if option else ''}the key does not have the scope {self.needed!r}",
                code="scope-missing", hint=f"{without}ask the operator for a key that has it",
            )  # fmt: skip


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether an address, or the name localhost, can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def refuse_others(scope: Scope) -> None:
    """Raise RequestError 403 unless a request is local on both ends and names a local host.

    A web page that a local browser shows may send requests here, but its Origin, or after a change
    of its name's address its Host, gives it away. A proxy gives itself away by what it adds.
    """
    for end in (scope.get("client"), scope.get("server")):
        if not end or not is_loopback(end[0]):
            raise _not_local("it comes over a network, or over a socket of another kind")
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1 or not _is_local_authority(hosts[0].decode("latin-1")):
        raise _not_local("it is addressed to another host")
    for name, value in scope["headers"]:
        if name in _FORWARDED:
            raise _not_local("it was forwarded by a proxy")
        if name == b"origin" and value != b"http://" + hosts[0]:
            raise _not_local("it was made by a page of another site")


def refuse_other_sites(scope: Scope) -> None:
    """Raise RequestError, 403, for a form that no page of ours sent: browsers say which did.

    A browser sends the key of the page with every request, whoever made it.
    """
    if scope["method"] in {"GET", "HEAD"}:
        return
    site, origin = _header(scope, b"sec-fetch-site"), _header(scope, b"origin")
    try:
        ours = urlsplit(origin).netloc == _header(scope, b"host")
    except ValueError:
        ours = False
    if site not in {"", "same-origin", "none"} or not ours:
        raise RequestError(403, "a page of another site sent this", code="other-site")


def _header(scope: Scope, wanted: bytes) -> str:
    found = [value for name, value in scope["headers"] if name == wanted]
    return str(found[0].decode("latin-1")) if len(found) == 1 else ""


def _is_local_authority(authority: str) -> bool:
    try:
        host = urlsplit(f"//{authority}").hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def _not_local(why: str) -> RequestError:
    return RequestError(
        403, f"a service without keys answers this machine only, and this request does not "
        f"qualify: {why}", code="not-local", hint="add a key: `contam keys add NAME`",
    )  # fmt: skip


def _presented(headers: list[tuple[bytes, bytes]], *, on_page: bool) -> bytes | None:
    found = [value for name, value in headers if name == b"authorization"]
    if not found:
        return None
    if len(found) > 1:
        # Two parties that read different ones would disagree on who asks.
        raise _unauthorised("the request has more than one key", on_page=on_page)
    scheme, _, key = found[0].partition(b" ")
    if scheme.lower() == b"basic" and on_page:
        return _password(key)
    if scheme.lower() != b"bearer":
        raise _unauthorised("only the Bearer scheme is supported", on_page=on_page)
    return key.strip()


def _password(credentials: bytes) -> bytes:
    """What a browser sends of the name and the password that it asked for."""
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2]
    except ValueError:
        return b""


def _unauthorised(message: str, *, on_page: bool) -> RequestError:
    scheme = "Basic" if on_page else "Bearer"
    return RequestError(
        401, message, headers={"WWW-Authenticate": f'{scheme} realm="contam"'},
        hint="give a key as the password, under any name" if on_page else "send a key as "
        "`Authorization: Bearer KEY`; the operator makes one by `contam keys add`",
    )  # fmt: skip


PUBLIC: Final = frozenset(("/livez", "/readyz", "/metrics", "/openapi.json"))
"""Paths that answer without a key. They show no items, documents or jobs."""


class Entrance:
    """Middleware that finds the caller.

    is_page, show_problem  which paths people look at, and what makes a page of a problem there
    """

    def __init__(
        self,
        app: ASGIApp,
        state: State,
        is_page: Callable[[str], bool],
        show_problem: Callable[..., Any],
    ) -> None:
        self._app = app
        self._state = state
        self._is_page = is_page
        self._show_problem = show_problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; raises RequestError 401, 403 or 503."""
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        if scope["type"] != "http" or path in PUBLIC:
            await self._app(scope, receive, send)
            return
        keyring = self._state.keyring
        if keyring is None:
            raise unready(self._state)
        on_page = self._is_page(path)
        if on_page:
            scope[AS_PAGE] = self._show_problem
            refuse_other_sites(scope)
        scope[CALLER] = keyring.caller(scope, on_page=on_page)
        await self._app(scope, receive, send)
