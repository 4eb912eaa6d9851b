"""Study what scores are made of: memory, preparation, the choice of tasks, the calendar.

Each study is one function that returns a `Study`. Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contam.study.boards import board
    from contam.study.dates import time
    from contam.study.model import Study
    from contam.study.write import write_study

__all__ = ["Study", "board", "time", "write_study"]

_HOME = {
    "Study": ("contam.study.model", "Study"),
    "board": ("contam.study.boards", "board"),
    "time": ("contam.study.dates", "time"),
    "write_study": ("contam.study.write", "write_study"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute may be anything
    if name not in _HOME:
        raise AttributeError(f"module 'contam.study' has no attribute {name!r}")
    module, own = _HOME[name]
    value = getattr(import_module(module), own)
    globals()[name] = value
    return value
