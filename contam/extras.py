"""Check that optional packages are installed, and hide those that only cost time."""

from __future__ import annotations

import contextlib
import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from contam.errors import MissingExtraError, Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

#: What installs an extra: contam is in no package index, so a name alone would fetch another's.
INSTALL: Final = "in a checkout of contam: pip install '.[{}]'"

_MODULES: Final = {
    "hub": ("huggingface_hub",),
    "inspect": ("inspect_ai",),
    "lm-eval": ("lm_eval",),
    "meaning": ("wordllama",),
    "ray": ("ray",),
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
        "uvicorn",
    ),
}


def require(extra: str, *modules: str) -> None:
    """Raise MissingExtraError unless what an extra brings is installed.

    modules  those that are needed, all of them when none is named
    """
    missing = [name for name in modules or _MODULES[extra] if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"packages are missing here: {', '.join(missing)}",
            hint=Statement(INSTALL, extra),
        )


class _Hidden(MetaPathFinder):
    """Finds no module of one name."""

    def __init__(self, module: str) -> None:
        self._module = module

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname == self._module:
            raise ModuleNotFoundError("contam does without it", name=fullname)
        return None


_own_process = False


def claim_process() -> None:
    """Say that contam runs alone in this process; to be called before anything is imported.

    Other code may need what libraries leave out when they find a module missing.
    """
    global _own_process  # noqa: PLW0603 - a property of the process
    _own_process = True


def is_own_process() -> bool:
    """Whether contam runs alone in this process."""
    return _own_process


@contextlib.contextmanager
def hidden(module: str) -> Iterator[None]:
    """Let a library not find a module in the block."""
    finder = _Hidden(module)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
