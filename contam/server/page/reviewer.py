"""Identify the reader whose name labels are stored under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from contam.audit.review.sample import reader_name
from contam.errors import UsageError
from contam.server.middleware.keys import REVIEW, plain_name
from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from contam.server.middleware.auth import Caller, Keyring

SCOPE: Final = REVIEW


@dataclass(frozen=True, slots=True)
class PageReader:
    """A reader's name, and whether they typed it: then every address has to carry it."""

    name: str
    typed: bool

    def at(self, path: str, **more: str) -> str:
        """An address of the page for this reader."""
        query = {**more, **({"reader": self.name} if self.typed else {})}
        return f"{path}?{urlencode(query)}" if query else path


def reader_of(keyring: Keyring, caller: Caller, typed: str) -> PageReader | None:
    """The reader a caller is: by the name of their key, or as typed where no key has a name.

    None where a name has still to be typed. Raises RequestError 422 for a name that cannot be, 409
    where two keys have one name: what one reader says would count as another's.
    """
    held = [plain_name(name) for name in keyring.names(SCOPE)]
    own = keyring.name_of(caller).strip()
    if own:
        if held.count(plain_name(own)) > 1:
            raise RequestError(
                409, "two keys that may review have this name: their readers cannot be told apart",
                code="names-alike", hint="ask the operator for a key with a name of your own",
            )  # fmt: skip
        return PageReader(own, typed=False)
    if not typed.strip():
        return None
    try:
        name = reader_name(typed)
    except UsageError as error:
        raise RequestError(422, str(error), code="form", hint=error.hint) from error
    if plain_name(name) in held:
        raise RequestError(
            409, "a key has that name", code="names-alike",
            hint="sign in with that key, or read under another name",
        )  # fmt: skip
    return PageReader(name, typed=True)
