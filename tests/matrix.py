"""Cases of a matrix: a few in the everyday suite, all of them in the slow one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def sampled(every: int, cases: Iterable[Any]) -> list[Any]:
    """The cases of a parametrisation; all but every so manyth of them are slow."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.slow] if at % every else [],
        )
        for at, case in enumerate(cases)
    ]
