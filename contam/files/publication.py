"""What this process publishes, for whoever has to say after Ctrl-C what is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contam.facts import Public

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class Publication:
    """A folder that takes the place of another, or of none.

    shown     the folder or address, as the user writes it; None while nothing is published
    is_whole  whether all of it was written to an address
    """

    shown: Path | None = None
    is_whole: bool = False
    _last: Path | None = None
    _made: tuple[int, int] | None = None

    def begin(
        self, shown: Path | None, last: Path | None = None, draft: Path | None = None
    ) -> None:
        """From now on its files may appear; None begins a call that has published nothing.

        last, draft  on disk: the file that is there last, and where it is now
        """
        self.shown, self.is_whole, self._last = shown, False, last
        self._made = _identity(draft)

    def is_there(self) -> bool:
        """Whether all of it is in its place."""
        return self.is_whole or (self._made is not None and _identity(self._last) == self._made)


def kind_of(last: str) -> Public:
    """What messages call a folder whose last file has this name."""
    return Public("plan" if last == "plan.json" else "result")


def _identity(path: Path | None) -> tuple[int, int] | None:
    try:
        found = path.stat() if path is not None else None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found is not None else None


LAST: Final = Publication()
"""The last one of this process."""
