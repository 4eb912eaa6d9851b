"""Messages without places: where things lie on the service's disk is nobody's business."""

from __future__ import annotations

import re
from typing import Final

#: A whole path with folders, and its last name. What only has a slash in it stays as it is, and so
#: does the address of a route.
_PATH: Final = re.compile(r"(?<![^\s'\"(=:])(?!/v1/)(?:/[^\s/:,;]*)+/([^\s/:,;]+)")


def without_folders(text: str) -> str:
    """The text with the last name of every path alone."""
    return _PATH.sub(r"\1", text)
