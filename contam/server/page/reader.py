"""Who reads: the name that labels are kept under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from contam.server.failures import RequestError

if TYPE_CHECKING:
    from contam.server.auth import Caller, Keyring

SCOPE: Final = "review"
MOST_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader's name, and whether they typed it: then every address has to carry it."""

    name: str
    typed: bool

    def at(self, path: str, **more: str) -> str:
        """An address of the page for this reader."""
        query = {**more, **({"reader": self.name} if self.typed else {})}
        return f"{path}?{urlencode(query)}" if query else path


def reader_of(keyring: Keyring, caller: Caller, typed: str) -> Reader | None:
    """The reader a caller is: by the name of their key, or as typed where no key has a name.

    None where a name has still to be typed. Raises RequestError 422 for a name that cannot be, 409
    where two keys have one name: what one reader says would count as another's.
    """
    held = [_plain(name) for name in keyring.names(SCOPE)]
    own = keyring.name_of(caller).strip()
    if own:
        if held.count(_plain(own)) > 1:
            raise RequestError(
                409, "two keys that may review have this name: their readers cannot be told apart",
                code="names-alike", hint="ask the operator for a key with a name of your own",
            )  # fmt: skip
        return Reader(own, typed=False)
    name = " ".join(typed.split())
    if not name:
        return None
    if len(name) > MOST_CHARACTERS or not name.isprintable():
        raise RequestError(422, f"a name has at most {MOST_CHARACTERS} characters", code="form")
    if _plain(name) in held:
        raise RequestError(
            409, "a key has that name", code="names-alike",
            hint="sign in with that key, or read under another name",
        )  # fmt: skip
    return Reader(name, typed=True)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
