"""Tell local programs from web pages and proxies.

Only the open mode asks: there, being local is all that a caller has to show.
"""

from __future__ import annotations

import ipaddress
from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from contam.server.problems.failures import RequestError

_FORWARDED: Final = frozenset(
    (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via")
)


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


def refuse_others(scope: MutableMapping[str, Any]) -> None:
    """Raise RequestError 403 unless a request is local on both ends and names a local host.

    A web page that a local browser shows may send requests here, but its Origin, or after a change
    of its name's address its Host, gives it away. A proxy gives itself away by what it adds.
    """
    for end in (scope.get("client"), scope.get("server")):
        if not end or not is_loopback(end[0]):
            raise _refused("it comes over a network, or over a socket of another kind")
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1 or not _is_local_authority(hosts[0].decode("latin-1")):
        raise _refused("it is addressed to another host")
    for name, value in scope["headers"]:
        if name in _FORWARDED:
            raise _refused("it was forwarded by a proxy")
        if name == b"origin" and value != b"http://" + hosts[0]:
            raise _refused("it was made by a page of another site")


def _is_local_authority(authority: str) -> bool:
    try:
        host = urlsplit(f"//{authority}").hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def _refused(why: str) -> RequestError:
    return RequestError(
        403, f"a service without keys answers this machine only, and this request does not "
        f"qualify: {why}", code="not-local",
    )  # fmt: skip
