"""Check that the optional packages a command needs are installed."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from contam.errors import MissingExtraError, Remedy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

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


class _WithoutPandas(MetaPathFinder):
    """Finds no pandas until a library is loaded that is built on it."""

    _BUILT_ON_IT: Final = frozenset({"mlflow", "statsmodels"})

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname == "pandas" and not self._BUILT_ON_IT & sys.modules.keys():
            raise ModuleNotFoundError("contam uses no pandas", name=fullname)
        return None


def leave_pandas_out() -> None:
    """Keep pyarrow from loading pandas; only for a process in which no other code runs.

    pyarrow loads pandas, where it is installed, to see whether the first value that it converts is
    one of its types. Ours never are, and that takes longer than reading a small corpus.
    """
    sys.meta_path.insert(0, _WithoutPandas())
