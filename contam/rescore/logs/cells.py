"""Cells of plain tables as scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WORDS: Final = {
    **dict.fromkeys(("true", "yes", "y", "c", "correct", "pass", "passed"), 1.0),
    **dict.fromkeys(("false", "no", "n", "i", "incorrect", "wrong", "fail", "failed"), 0.0),
    **dict.fromkeys(("", "nan", "na", "n/a", "null", "none"), float("nan")),
}


def zero_to_one(values: Sequence[Any]) -> bool:
    """Whether every cell is a number from 0 to 1, or empty, and one of them is no empty one."""
    try:
        numbers = [number_of(value) for value in set(as_plain_list(values))]
    except TypeError:  # a list or a record in a cell
        return False
    known = [n for n in numbers if n is None or not math.isnan(n)]
    return bool(known) and all(n is not None and 0 <= n <= 1 for n in known)


def as_plain_list(values: Sequence[Any] | NDArray[Any]) -> Sequence[Any]:
    """A column as a plain list, where it is an array."""
    if isinstance(values, np.ndarray):
        plain_values: list[Any] = values.tolist()
        return plain_values
    return values


def number_of(value: object) -> float | None:
    """A cell as a number, nan for an empty one, None for anything that is no score."""
    if value is None:
        return float("nan")
    if isinstance(value, bool | int | float | np.number):
        return float(value)
    if not isinstance(value, str):
        return None
    word = value.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return float(word)
    except ValueError:
        return None
