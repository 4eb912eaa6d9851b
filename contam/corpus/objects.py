"""List the objects that an address means: one, all below a folder, or those that fit a pattern."""

from __future__ import annotations

import glob
import re
from typing import TYPE_CHECKING

from contam.errors import CorpusError, Place, Plain, Remedy
from contam.files.addresses import Address, checked
from contam.files.stores import RefusedError, lacks_bucket, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def is_pattern(text: str) -> bool:
    """Whether a text has the wildcards of a glob."""
    return glob.has_magic(text)


def expand_address(given: object) -> Iterator[tuple[Address, str, Address, bool]]:
    """Yield (address, name, argument, whether the user named this very object), as for files.

    Below a folder, what begins with a dot or an underscore is left out with all it holds, unless it
    is an object itself: that is for the caller to judge. Raises UsageError and CorpusError.
    """
    address = checked(given)
    try:
        # A revision may move while it is read: from here on the address names its commit.
        address = store_of(address).pinned(address)
        kind = "folder" if str(given).endswith("/") else store_of(address).look(address)
        if kind == "file":
            yield address, address.name, address.parent, True
            return
        if kind == "folder":
            base, found = address, _below(address)
        else:
            base, found = _fitting(address)
        no_bucket = not found and lacks_bucket(address)
    except FileNotFoundError:
        base, found, no_bucket = address, [], False
    except OSError as error:
        refused = isinstance(error, RefusedError)
        remedy = Remedy.GIVE_CREDENTIALS if refused else Remedy.ASK_STORE_LATER
        raise CorpusError(
            "{}: cannot be listed: {}", Place(given), Plain(error.strerror or error), remedy=remedy
        ) from error  # fmt: skip
    if not found:
        remedy = Remedy.CHECK_PATTERN if is_pattern(str(given)) else Remedy.CHECK_PATH_AND_RIGHTS
        fact = "{}: there is no such bucket" if no_bucket else "{}: no object is there"
        raise CorpusError(fact, Place(given), remedy=remedy).of_call()
    for one in found:
        yield one, "/".join(one.relative_to(base).parts), base, False


def _below(folder: Address) -> list[Address]:
    found = store_of(folder).below(folder)
    return sorted(one for one in found if _is_shown(one.relative_to(folder).parts[:-1]))


def _is_shown(folders: Sequence[str]) -> bool:
    return not any(name.startswith((".", "_")) for name in folders)


def _fitting(pattern: Address) -> tuple[Address, list[Address]]:
    """The last folder without a wildcard, and the objects that fit or lie below what fits."""
    parts = pattern.parts
    depth = next((i for i, part in enumerate(parts) if is_pattern(part)), len(parts))
    base = Address(*parts[:depth])
    if depth == len(parts) or depth < len(pattern.root.parts):
        return base, []
    fits = re.compile("".join(map(_expression, parts[depth:])))
    found = []
    for one in store_of(base).below(base):
        name = "/".join(one.relative_to(base).parts) + "/"
        fit = fits.match(name)
        if fit and _is_shown(name[fit.end() :].split("/")[:-2]):
            found.append(one)
    return base, sorted(found)


def _expression(part: str) -> str:
    """The regular expression of a part of a pattern, for names with a slash behind each part."""
    if part == "**":
        return "(?:[^/]+/)*"
    tokens = re.findall(r"\[!?[^]]+\]|.", part, re.DOTALL)
    return "".join(_token(token) for token in tokens) + "/"


def _token(token: str) -> str:
    if len(token) > 1:
        inner = token[1:-1].replace("\\", r"\\")
        return f"[^/{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
    return {"*": "[^/]*", "?": "[^/]"}.get(token, re.escape(token))
