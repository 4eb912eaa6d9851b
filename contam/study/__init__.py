"""Study what scores are made of: memory, preparation, the choice of tasks, the calendar.

Each study is one function that returns a `Study`. Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contam.study.boards import board
    from contam.study.dates import time
    from contam.study.fresh_sets import FreshSettings, fresh
    from contam.study.model import Study, write_study
    from contam.study.preparing import PreparationSettings, preparation

__all__ = [
    "FreshSettings",
    "PreparationSettings",
    "Study",
    "board",
    "fresh",
    "preparation",
    "time",
    "write_study",
]

_HOME = {
    "FreshSettings": "contam.study.fresh_sets",
    "PreparationSettings": "contam.study.preparing",
    "Study": "contam.study.model",
    "board": "contam.study.boards",
    "fresh": "contam.study.fresh_sets",
    "preparation": "contam.study.preparing",
    "time": "contam.study.dates",
    "write_study": "contam.study.model",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute may be anything
    if name not in _HOME:
        raise AttributeError(f"module 'contam.study' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
