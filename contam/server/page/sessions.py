"""Manage sessions of the page: a browser cannot send a key with every link.

Sessions live in memory alone. A browser holds 32 random bytes, of which only the SHA-256 is kept
here; they open the page and nothing else.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contam.server.middleware.keys import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from contam.server.middleware.auth import Caller

_MOST: Final = 1000
_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who is signed in.

    token    what the forms made for them carry, so that no other site can send one
    ends_s   reading of the clock at which they have to sign in again
    """

    caller: Caller
    token: str
    ends_s: float


class Sessions:
    """Those who are signed in; several threads may use one. The clock must not jump."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[bytes, Session] = {}
        self._token = secrets.token_urlsafe(_BYTES)

    def begin(self, caller: Caller, seconds: float) -> str:
        """Sign somebody in; returns what their browser has to show. The oldest make room."""
        secret = secrets.token_urlsafe(_BYTES)
        now_s = self._clock()
        session = Session(caller, secrets.token_urlsafe(_BYTES), now_s + seconds)
        with self._lock:
            for name in [name for name, known in self._found.items() if known.ends_s <= now_s]:
                del self._found[name]
            while len(self._found) >= _MOST:
                del self._found[next(iter(self._found))]
            self._found[digest_of(secret.encode())] = session
        return secret

    def find(self, secret: bytes) -> Session | None:
        """Whose session that is, if it has not ended."""
        with self._lock:
            session = self._found.get(digest_of(secret))
        return None if session is None or session.ends_s <= self._clock() else session

    def end(self, secret: bytes) -> None:
        """Sign somebody out."""
        with self._lock:
            self._found.pop(digest_of(secret), None)

    def token(self, session: Session | None) -> str:
        """What a form has to carry; without a session, where no keys are, one for everybody."""
        return self._token if session is None else session.token

    def is_token(self, session: Session | None, given: str) -> bool:
        """Whether a form was made here, for this session."""
        return hmac.compare_digest(self.token(session).encode(), given.encode())
