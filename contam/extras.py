"""What a package needs beyond the core: `pip install 'contam[EXTRA]'` brings it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from contam.errors import MissingExtraError, Remedy

_MODULES: Final = {
    "scores": ("matplotlib", "statsmodels"),
    "audit": ("jinja2", "matplotlib", "statsmodels"),
    "serve": (
        "fastapi",
        "httptools",
        "jinja2",
        "matplotlib",
        "prometheus_client",
        "python_multipart",
        "statsmodels",
        "structlog",
        "uvicorn",
    ),
}


def require(extra: str) -> None:
    """Raise MissingExtraError unless everything that an extra brings is installed."""
    missing = [name for name in _MODULES[extra] if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"packages are missing here: {', '.join(missing)}",
            remedy=Remedy.INSTALL_EXTRA(extra=extra),
        )
