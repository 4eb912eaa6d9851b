"""Find indexes by name in the folder where they live."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from contam.errors import UsageError
from contam.files.addresses import is_address, refuse_address
from contam.files.stores import place

_COPY_AFTERWARDS: Final = (
    "do that on this machine, and copy the folder to the store: it is read there"
)
_CHECKOUT: Final = Path(__file__).parents[2] / "indexes"


def index_home(home: str | Path | None = None) -> Path:
    """The folder of all indexes.

    `home` if it is given, else CONTAM_HOME, else `indexes/` of a checkout, else
    the user's data folder. It need not exist yet. Raises UsageError when there is no such folder
    to name.
    """
    if home:
        return Path(home)
    if named := os.environ.get("CONTAM_HOME"):
        return Path(named)
    if (_CHECKOUT / "README.md").is_file() and os.access(_CHECKOUT, os.W_OK):
        return _CHECKOUT
    if base := os.environ.get("XDG_DATA_HOME"):
        return Path(base) / "contam" / "indexes"
    try:
        return Path.home() / ".local" / "share" / "contam" / "indexes"
    except RuntimeError as error:
        raise UsageError(
            "there is no home for indexes", hint="name one with --home or CONTAM_HOME"
        ) from error


def local_folder(index: str | Path) -> Path:
    """The folder of an index that is written or verified. Raises UsageError for an address."""
    refuse_address(index, "an index that is written or verified", _COPY_AFTERWARDS)
    return Path(index)


def resolve_index(
    name_or_path: str | Path, home: str | Path | None = None, *, to_write: bool = False
) -> Path:
    """The folder of an index, or its address where it is only read. It need not exist yet.

    A bare name is a folder in the home of indexes; whatever has a separator, or is a folder in the
    current one and not in the home, is a path. Raises UsageError for an empty name, and for an
    address `to_write`.
    """
    text = os.fspath(name_or_path)
    if not text:
        raise UsageError("an index needs a name or a path", hint="give --index NAME or --index DIR")
    if is_address(name_or_path):
        return local_folder(name_or_path) if to_write else place(name_or_path)
    path = Path(text)
    if os.sep in text or text in {".", ".."}:
        return path
    named = index_home(home) / path
    return path if path.is_dir() and not named.is_dir() else named
