"""Find indexes by name in the folder where they live."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from contam.errors import UsageError
from contam.files.addresses import NAME_LOCAL_FOLDER, refuse_address

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


def resolve_index(
    name_or_path: str | Path, home: str | Path | None = None, *, to_write: bool = False
) -> Path:
    """The folder of an index, which need not exist yet; `to_write` where it is made.

    A bare name is a folder in the home of indexes; whatever has a separator, or is a folder in the
    current one and not in the home, is a path. Raises UsageError for an empty name or an address.
    """
    text = os.fspath(name_or_path)
    if not text:
        raise UsageError("an index needs a name or a path", hint="give --index NAME or --index DIR")
    refuse_address(
        text,
        "an index",
        NAME_LOCAL_FOLDER if to_write else "copy it to this machine, and name the copy",
    )
    path = Path(text)
    if os.sep in text or text in {".", ".."}:
        return path
    named = index_home(home) / path
    return path if path.is_dir() and not named.is_dir() else named
