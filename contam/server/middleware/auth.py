"""Authenticate callers: keys, scopes, and the open mode without keys.

Anything that cannot be decided is refused: an unreadable store closes the service.
"""

from __future__ import annotations

import hmac
import sqlite3
import threading
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fastapi import Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from contam.errors import ConfigError
from contam.server.middleware import local
from contam.server.middleware.keys import SCOPES, Key, KeyStore, digest_of, id_in
from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from contam.config import Settings

CALLER: Final = "contam.caller"
"""Where a request's scope holds its Caller, once it is known."""

_ADMIN_KEY_CHARACTERS: Final = 32
# A command that changes keys is done in milliseconds; nobody else may be kept waiting for longer.
_BUSY_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the id of a key (`admin` and `open` are the two that no store holds)."""

    key_id: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        """Whether a scope is held; `admin` holds every one."""
        return scope in self.scopes or "admin" in self.scopes

    @property
    def is_admin(self) -> bool:
        """Whether everybody's things may be seen and changed."""
        return "admin" in self.scopes


ADMIN: Final = Caller("admin", frozenset(SCOPES))
OPEN: Final = Caller("open", frozenset(SCOPES))


class Keyring:
    """The keys a running service knows; a change of the store is seen by the next request."""

    def __init__(self, settings: Settings) -> None:
        admin = settings.admin_key
        if admin is not None and len(admin) < _ADMIN_KEY_CHARACTERS:
            raise ConfigError(
                f"admin_key has fewer than {_ADMIN_KEY_CHARACTERS} characters",
                hint="take the output of `openssl rand -hex 32`",
            )
        self._admin = None if admin is None else digest_of(admin.encode())
        self._store = KeyStore(settings.data)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._version = -1
        self._keys: dict[str, Key] = {}
        self._closed = self._admin is not None
        self._refresh()
        if not self._closed and not local.is_loopback(settings.host):
            raise ConfigError(
                f"{settings.host} can be reached by others, and there are no keys",
                hint=f"`contam keys add NAME --data {settings.data}` makes one; or listen on "
                "127.0.0.1",
            )

    @property
    def is_open(self) -> bool:
        """Whether there are no keys, so that local callers need none."""
        return not self._closed

    def caller(self, scope: MutableMapping[str, Any]) -> Caller:
        """Who sent a request; raises RequestError 401, 403 (not local) or 503 (keys unreadable)."""
        self._look()
        presented = _presented(scope["headers"])
        if not self._closed:
            local.refuse_others(scope)
            return OPEN
        if presented is None:
            raise _unauthorised("the request has no key")
        caller = self._known(presented)
        if caller is None:
            raise _unauthorised("the key is not known, or was revoked")
        return caller

    def known(self, key: bytes) -> Caller | None:
        """Whose key that is; None if nobody's. Raises RequestError 503 (keys unreadable)."""
        self._look()
        return self._known(key)

    def still_good(self, caller: Caller) -> bool:
        """Whether a caller's key is as good as when the request came; false if nobody can say."""
        if caller.key_id in {ADMIN.key_id, OPEN.key_id}:
            return True
        with self._lock:
            try:
                self._refresh()
            except ConfigError:
                return False
            key = self._keys.get(caller.key_id)
        return key is not None and key.revoked is None

    def name_of(self, caller: Caller) -> str:
        """What a caller's key is called; empty for callers whose key no store holds."""
        key = self._keys.get(caller.key_id)
        return "" if key is None else key.name

    def names(self, scope: str) -> list[str]:
        """What the good keys are called that have a scope, in no order: names may be equal."""
        return [
            key.name
            for key in self._keys.values()
            if key.revoked is None and not key.scopes.isdisjoint((scope, "admin"))
        ]

    def close(self) -> None:
        """Let go of the store."""
        with self._lock:
            self._drop_connection()

    def _look(self) -> None:
        with self._lock:
            try:
                self._refresh()
            except ConfigError as error:
                raise RequestError(
                    503, "the keys cannot be read", code="keys-unreadable",
                    headers={"Retry-After": "5"},
                ) from error  # fmt: skip

    def _known(self, presented: bytes) -> Caller | None:
        digest = digest_of(presented)
        if self._admin is not None and hmac.compare_digest(digest, self._admin):
            return ADMIN
        key = self._keys.get(id_in(presented))
        if key is None or not hmac.compare_digest(digest, key.digest) or key.revoked is not None:
            return None
        return Caller(key.id, key.scopes)

    def _refresh(self) -> None:
        # The lock is held, or nobody else knows of the object yet.
        try:
            stat = self._store.path.stat()
        except FileNotFoundError:
            if self._file is not None:
                # There were keys: without them no caller can be identified.
                raise ConfigError(f"{self._store.path} is gone") from None
            return
        except OSError as error:
            raise ConfigError(f"cannot look at {self._store.path}: {error}") from error
        try:
            if self._connection is None or self._file != (stat.st_dev, stat.st_ino):
                self._drop_connection()
                self._version = -1
                self._connection = self._store.connect(wait_s=_BUSY_S)
                self._file = (stat.st_dev, stat.st_ino)
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            if version != self._version:
                self._keys = {key.id: key for key in self._store.read(self._connection)}
                self._closed = self._closed or bool(self._keys)
                self._version = version
        except sqlite3.Error as error:
            self._drop_connection()
            raise ConfigError(f"cannot read {self._store.path}: {error}") from error
        except ConfigError:
            self._drop_connection()
            raise

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


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
            description="A key made by `contam keys add`, as `Authorization: Bearer KEY` or as "
            "`X-API-Key: KEY`. A service without keys answers local callers only, and needs none.",
        )

    async def __call__(self, request: Request) -> Caller:
        """The caller; raises RequestError 401, 403 or 503."""
        caller: Caller | None = request.scope.get(CALLER)
        if caller is None:
            caller = request.app.state.contam.keyring.caller(request.scope)
            request.scope[CALLER] = caller
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


def _presented(headers: list[tuple[bytes, bytes]]) -> bytes | None:
    found = []
    for name, value in headers:
        if name == b"authorization":
            scheme, _, key = value.partition(b" ")
            if scheme.lower() != b"bearer":
                raise _unauthorised("only the Bearer scheme is understood")
            found.append(key.strip())
        elif name == b"x-api-key":
            found.append(value.strip())
    if not found:
        return None
    if len(found) > 1:
        # Two parties that read different ones would disagree on who asks.
        raise _unauthorised("the request has more than one key")
    return found[0]


def _unauthorised(message: str) -> RequestError:
    return RequestError(
        401, message, headers={"WWW-Authenticate": 'Bearer realm="contam"'},
        hint="send a key as `Authorization: Bearer KEY`; the operator makes one by `contam keys "
        "add`",
    )  # fmt: skip
