"""Store API keys as SHA-256 digests in one SQLite file.

A key is 32 random bytes, so a plain digest keeps it safe; there is nothing in it to guess at.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILE: Final = "keys.db"
"""The store's name in the service's data folder."""

PREFIX: Final = "contam_"
"""What every key begins with, so that scanners for leaked secrets can know one."""

SCOPES: Final = ("check", "jobs", "read-documents", "review", "admin")
"""What a key may be allowed; `admin` allows everything."""

_APPLICATION: Final = 0x636B6579
_VERSION: Final = 1
_WAIT_S: Final = 5.0
_ID_BYTES: Final = 4
_ID_CHARACTERS: Final = 2 * _ID_BYTES
REVIEW: Final = "review"
_MAX_NAME: Final = 100
_DIGEST_BYTES: Final = 32

_TABLE: Final = """
CREATE TABLE keys (
    id        TEXT PRIMARY KEY,
    name      TEXT NOT NULL,
    digest    BLOB NOT NULL UNIQUE,
    scopes    TEXT NOT NULL,
    created   REAL NOT NULL,
    last_used REAL,
    revoked   REAL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Key:
    """What is kept of a key; times are seconds since 1970.

    digest   SHA-256 of the key itself, which is shown once and kept nowhere
    revoked  when it stopped being good; None: it is good
    """

    id: str
    name: str
    digest: bytes
    scopes: frozenset[str]
    created: float
    revoked: float | None


def digest_of(key: bytes) -> bytes:
    """What is kept of a key."""
    return sha256(key).digest()


def id_in(key: bytes) -> str:
    """The id that a presented key claims to have; empty if it is not a key of ours."""
    start = len(PREFIX)
    claimed = key[start : start + _ID_CHARACTERS]
    if not key.startswith(PREFIX.encode()) or not claimed.isalnum():
        return ""
    return claimed.decode("ascii")


class KeyStore:
    """The keys of one data folder. A missing file means no keys; an unreadable one is an error."""

    def __init__(self, data: str | Path) -> None:
        self.path = Path(data) / FILE

    def add(self, name: str, scopes: Sequence[str]) -> tuple[Key, str]:
        """Make a key; returns what is kept of it and the key itself, which nobody can show again.

        Raises UsageError for a name or scope that cannot be, or a reader's name that another good
        key has, ConfigError if the store is unusable.
        """
        if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
            raise UsageError(f"a key needs a name of 1 to {_MAX_NAME} printable characters")
        unknown = sorted(set(scopes) - set(SCOPES))
        if unknown or not scopes:
            what = f"no scope is called {unknown[0]!r}" if unknown else "a key needs a scope"
            raise UsageError(what, hint=f"scopes: {', '.join(SCOPES)}")
        self._make_file()
        with self._changing() as connection:
            _refuse_namesake(name, scopes, self.read(connection))
            key_id = secrets.token_hex(_ID_BYTES)
            while connection.execute("SELECT 1 FROM keys WHERE id = ?", (key_id,)).fetchone():
                key_id = secrets.token_hex(_ID_BYTES)
            secret = f"{PREFIX}{key_id}_{secrets.token_urlsafe(32)}"
            held = tuple(scope for scope in SCOPES if scope in scopes)
            now = time.time()
            digest = digest_of(secret.encode())
            connection.execute(
                "INSERT INTO keys VALUES (?, ?, ?, ?, ?, NULL, NULL)",
                (key_id, name, digest, " ".join(held), now),
            )
        return Key(key_id, name, digest, frozenset(held), now, None), secret

    def revoke(self, key_id: str) -> Key:
        """Make a key worthless, at once and for good; raises UsageError if there is none."""
        if self.path.exists():
            with self._changing() as connection:
                connection.execute(
                    "UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL",
                    (time.time(), key_id),
                )
        for key in self.all():
            if key.id == key_id:
                return key
        raise UsageError(f"no key has the id {key_id!r}", hint="`contam keys list` shows the ids")

    def all(self) -> tuple[Key, ...]:
        """Every key, the oldest first, revoked ones too; raises ConfigError if unreadable."""
        if not self.path.exists():
            return ()
        with closing(self.connect()) as connection:
            return self.read(connection)

    def connect(self, wait_s: float = _WAIT_S) -> sqlite3.Connection:
        """A connection to a store that exists; raises ConfigError."""
        try:
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw",
                timeout=wait_s,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def read(self, connection: sqlite3.Connection) -> tuple[Key, ...]:
        """Every key as a connection sees them now; raises ConfigError."""
        try:
            rows = connection.execute(
                "SELECT id, name, digest, scopes, created, revoked FROM keys ORDER BY created, id"
            ).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._unusable(error) from error
        keys = []
        for key_id, name, digest, scopes, created, revoked in rows:
            held = frozenset(str(scopes).split())
            if (
                not isinstance(digest, bytes)
                or len(digest) != _DIGEST_BYTES
                or not held <= set(SCOPES)
            ):
                raise self._unusable(f"the row of key {key_id!r} makes no sense")
            keys.append(Key(key_id, name, digest, held, created, revoked))
        return tuple(keys)

    def _make_file(self) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite would make it readable by all.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(self.path, timeout=_WAIT_S)) as connection:
                # Readers of a running service are never kept out by a command that writes.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {_VERSION}")
                    connection.execute(_TABLE)
                connection.commit()
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with closing(self.connect()) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def _check(self, connection: sqlite3.Connection) -> None:
        try:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        if (application, version) != (_APPLICATION, _VERSION):
            raise self._unusable("it is not a store of keys that this contam knows")

    def _unusable(self, why: object) -> ConfigError:
        return ConfigError(
            f"the keys in {self.path} cannot be used: {why}",
            hint="restore the file, or move it away and add keys anew",
        )


def _refuse_namesake(name: str, scopes: Sequence[str], keys: Sequence[Key]) -> None:
    """Labels are kept by the name of a key, so no two keys with one name may review."""
    for key in keys:
        both = ({*scopes}, key.scopes)
        alike = plain_name(key.name) == plain_name(name) and key.revoked is None
        may = all({REVIEW, "admin"} & held for held in both)
        if alike and may and any(REVIEW in held for held in both):
            raise UsageError(
                f"key {key.id} may review, too, and has that name: readers could not be told apart",
                hint=f"choose another name, or revoke it first: contam keys revoke {key.id}",
            )


def plain_name(name: str) -> str:
    """A name for comparison: without differences in case and spaces."""
    return " ".join(name.split()).casefold()
