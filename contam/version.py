"""Tell which version of contam is installed."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def contam_version() -> str:
    """The version, or "0+checkout" of a checkout that was never installed."""
    try:
        return version("contam")
    except PackageNotFoundError:
        return "0+checkout"
