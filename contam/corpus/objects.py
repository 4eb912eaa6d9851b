"""List the objects that an address means: one, all below a folder, or those that fit a pattern."""

from __future__ import annotations

import glob
import re
from typing import TYPE_CHECKING

from contam.errors import ASK_STORE_LATER, CorpusError, Place, Plain
from contam.files.addresses import Address, checked
from contam.files.stores import RefusedError, lacks_bucket, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def is_pattern(text: str) -> bool:
    """Whether a text has the wildcards of a glob."""
    return glob.has_magic(text)


def is_aside(folder: str) -> bool:
    """Whether tools keep things of their own in a folder of this name: `.git`, `_temporary`.

    A partition is none of them: `_year=2024`.
    """
    return folder.startswith(".") or (folder.startswith("_") and "=" not in folder)


def expand_address(
    given: object, aside: dict[Address, tuple[Address, str]] | None = None
) -> Iterator[tuple[Address, str, Address, bool]]:
    """Yield (address, name, argument, whether the user named this very object), as for files.

    aside  gets the objects that were left out because they lie in a folder that is aside, each with
           that folder and its name
    Raises UsageError and CorpusError.
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
            base, listed = address, [(one, 0) for one in store_of(address).below(address)]
        else:
            base, listed = _fitting(address)
        no_bucket = not listed and lacks_bucket(address)
    except FileNotFoundError:
        base, listed, no_bucket = address, [], False
    except OSError as error:
        refused = isinstance(error, RefusedError)
        hint = "check the credentials, and what they allow" if refused else ASK_STORE_LATER
        raise CorpusError(
            "{}: cannot be listed: {}", Place(given), Plain(error.strerror or error), hint=hint
        ) from error  # fmt: skip
    if not listed:
        hint = "check the pattern" if is_pattern(str(given)) else "check the path and its rights"
        fact = "{}: there is no such bucket" if no_bucket else "{}: no object is there"
        raise CorpusError(fact, Place(given), hint=hint).of_call()
    for one, n_named in sorted(listed):
        parts = one.relative_to(base).parts
        depth = next((n for n in range(n_named, len(parts) - 1) if is_aside(parts[n])), None)
        if depth is None:
            yield one, "/".join(parts), base, False
        elif aside is not None:
            above = parts[: depth + 1]
            aside[one] = base.joinpath(*above), "/".join(above)


def _fitting(pattern: Address) -> tuple[Address, list[tuple[Address, int]]]:
    """The last folder without a wildcard, and the objects that fit or lie below what fits.

    With each object, how many names below that folder the pattern speaks of.
    """
    parts = pattern.parts
    depth = next((i for i, part in enumerate(parts) if is_pattern(part)), len(parts))
    base = Address(*parts[:depth])
    if depth == len(parts) or depth < len(pattern.root.parts):
        return base, []
    fits = re.compile("".join(map(_expression, parts[depth:])))
    found = []
    for one in store_of(base).below(base):
        name = "/".join(one.relative_to(base).parts) + "/"
        if fit := fits.match(name):
            found.append((one, fit[0].count("/")))
    return base, found


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
