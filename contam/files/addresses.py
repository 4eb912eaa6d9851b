"""Know the address of an object in a store, and refuse one that holds a secret."""

from __future__ import annotations

import re
from pathlib import PurePath, PurePosixPath
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from contam.errors import Hint, Place, Public, UsageError

NAME_LOCAL_FOLDER: Final = (
    "name a folder of this machine, and copy what is written there to the store"
)
_NAME_STORE_ADDRESS: Final = "objects are named as s3://, gs://, az://, https:// or hf://datasets/"


SCHEMES: Final = ("s3", "gs", "az", "https", "hf")
"""How the addresses begin that can be read."""

_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
#: What a path object makes of an address.
_FOLDED: Final = re.compile(rf"({'|'.join(SCHEMES)}):/(?=[^/])")
#: Values of a query that say which file is meant and can hardly hold a key.
_HARMLESS: Final = re.compile(r"(download|raw|dl)=[a-z0-9]{0,5}")


class Address(PurePosixPath):
    """The address of an object or of what lies below it, with the names that paths have.

    Only an address whose text stays as it is: see `checked`.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return _FOLDED.sub(r"\1://", super().__str__(), count=1)

    @property
    def name(self) -> str:
        """The last part; over https without what a query adds to it."""
        name = super().name
        return name.partition("?")[0] if self.parts[:1] == ("https:",) else name

    @property
    def scheme(self) -> str:
        """`s3`, `gs`, `az`, `https` or `hf`."""
        return self.parts[0].rstrip(":")

    @property
    def root(self) -> Address:  # type: ignore[override]  # of a path it is "" or "/"
        """The bucket, container, host or data set."""
        return type(self)(*self.parts[: 4 if self.scheme == "hf" else 2])


def is_address(given: object) -> bool:
    """Whether a text or path names something in a store, in any scheme."""
    return isinstance(given, Address) or _ADDRESS.match(_unfolded(given)) is not None


def checked(given: object) -> Address:
    """The address that a text means.

    Raises UsageError for a scheme that is not read, and for an address with a key, a password or a
    signature in it: such an address gets into results and logs. No message repeats it.
    """
    text = _unfolded(given)
    scheme, _, rest = text.partition("://")
    if scheme not in SCHEMES:
        raise UsageError("{}:// is not read", Public(scheme), hint=_NAME_STORE_ADDRESS)
    try:
        parts = urlsplit(text)
        # In a bucket's name neither can be; of `key:secret` with a slash in it the name is cut.
        secret = "@" in parts.netloc or (scheme != "https" and ":" in parts.netloc)
        asked = parts.query if scheme == "https" else ""
        secret = secret or bool(asked and not _HARMLESS.fullmatch(asked)) or _signed(text)
    except ValueError:
        secret = True
    if secret:
        raise UsageError(
            "the address that begins with {}:// holds credentials", Public(scheme),
            hint="leave them out, and give them as the store's own tools take them",
        )  # fmt: skip
    found = Address(text)
    if not rest.strip("/") or str(found) != text.rstrip("/"):
        raise UsageError(
            "{}: the path contains an empty or '.' segment", Place(text),
            hint=_NAME_STORE_ADDRESS,
        )  # fmt: skip
    return found


def refuse_address(
    given: object, what: str, hint: Hint = "copy it to this machine, and name the copy"
) -> None:
    """Raise UsageError where only a path of this machine will do."""
    if is_address(given):
        raise UsageError(
            "{} must be a path of this machine, not an address", Public(what),
            hint=hint,
        )  # fmt: skip


def _signed(text: str) -> bool:
    """Whether it is signed for whoever has it, as stores make addresses to hand on."""
    names = {name.lower() for name, _ in parse_qsl(text.partition("?")[2], keep_blank_values=True)}
    signs = {"signature", "sig", "x-amz-signature", "x-goog-signature", "awsaccesskeyid"}
    return not signs.isdisjoint(names)


def _unfolded(given: object) -> str:
    text = str(given)
    return _FOLDED.sub(r"\1://", text, count=1) if isinstance(given, PurePath) else text
