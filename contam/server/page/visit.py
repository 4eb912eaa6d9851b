"""Authenticate page visits, and reject forged forms before reading a body."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from contam.server.middleware.auth import Caller, Keyring
    from contam.server.page.sessions import Sessions

    Scope = MutableMapping[str, Any]

CHECK: Final = "/"
SIGN_IN: Final = "/sign-in"
SIGN_OUT: Final = "/sign-out"
JOBS: Final = "/jobs"
REVIEW: Final = "/review"

COOKIE: Final = "contam-session"

SESSION: Final = "contam.session"
"""Where a request's scope holds the Session of who looks at the page."""

_PATHS: Final = frozenset((CHECK, SIGN_IN, SIGN_OUT, JOBS, REVIEW))
_MOST_SIGN_IN_BYTES: Final = 4096


def is_page(path: str) -> bool:
    """Whether a path is one of the page's, not of the API."""
    return path in _PATHS or path.startswith((f"{JOBS}/", f"{REVIEW}/"))


def visitor(scope: Scope, path: str, keyring: Keyring, sessions: Sessions) -> Caller | None:
    """Who looks at the page; None for somebody who has to sign in first.

    Raises RequestError 403 for what another site sent, 401 or 413 for a body of a stranger that
    nobody will read, and what `Keyring.caller` raises.
    """
    writes = scope["method"] not in {"GET", "HEAD"}
    if writes:
        _refuse_other_sites(scope)
    if keyring.is_open:
        # It may have keys since a moment ago, and then wants one.
        try:
            return keyring.caller(scope)
        except RequestError:
            if keyring.is_open:
                raise
    session = sessions.find(presented(scope))
    if session is not None and keyring.still_good(session.caller):
        scope[SESSION] = session
        return session.caller
    if writes and path != SIGN_IN:
        raise RequestError(
            401, "you are not signed in, or no longer", code="signed-out",
            hint="go back to keep what you typed, and sign in on another tab",
        )  # fmt: skip
    if writes:
        _refuse_large(scope)
    return None


def cookie_of(secret: str, scope: Scope, seconds: float) -> str:
    """A Set-Cookie header; an empty secret takes the cookie away.

    Only encrypted connections carry it if the browser says that it used one: what stands between
    may have taken the encryption off.
    """
    origin = _header(scope, b"origin")
    secure = scope.get("scheme") == "https" or origin.startswith("https://")
    parts = [f"{COOKIE}={secret}", "Path=/", "HttpOnly", "SameSite=Strict"]
    parts.append(f"Max-Age={int(seconds) if secret else 0}")
    return "; ".join([*parts, "Secure"] if secure else parts)


def presented(scope: Scope) -> bytes:
    """What the browser shows of its session; empty if it has none."""
    try:
        found = SimpleCookie(_header(scope, b"cookie")).get(COOKIE)
    except CookieError:
        return b""
    return b"" if found is None else found.value.encode("utf-8", "replace")


def _refuse_other_sites(scope: Scope) -> None:
    """Browsers say which page sends a form; one of another site, or of none, is not ours."""
    site, origin = _header(scope, b"sec-fetch-site"), _header(scope, b"origin")
    try:
        ours = not origin or urlsplit(origin).netloc == _header(scope, b"host")
    except ValueError:
        ours = False
    if site not in {"", "same-origin", "none"} or not ours:
        raise RequestError(403, "a page of another site sent this", code="other-site")


def _refuse_large(scope: Scope) -> None:
    length = _header(scope, b"content-length")
    if not length.isdecimal() or int(length) > _MOST_SIGN_IN_BYTES:
        raise RequestError(413, "that is no key")
    if _header(scope, b"content-encoding"):
        raise RequestError(415, "a key is sent as it is")


def _header(scope: Scope, wanted: bytes) -> str:
    found = [value for name, value in scope["headers"] if name == wanted]
    return str(found[0].decode("latin-1")) if len(found) == 1 else ""
