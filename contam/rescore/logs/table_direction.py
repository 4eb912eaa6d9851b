"""A column of a plain table that says which way its scores count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contam.rescore.logs.plain import Table

DIRECTIONS: Final = ("higher_is_better", "lower_is_better")
"""Roles of columns; the cells of a metric must all say the same."""

_WORDS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def direction_of(table: Table, found: Mapping[str, str], rows: Iterable[int]) -> bool | None:
    """Whether a higher score of these rows is better, None where no column says it.

    Raises LogError for a cell that is neither true nor false, and for rows that disagree.
    """
    role = next((name for name in DIRECTIONS if name in found), None)
    if role is None:
        return None
    said: bool | None = None
    for row in rows:
        value = table.columns[found[role]][row]
        word = str(value).strip().lower().removesuffix(".0")
        if word not in _WORDS:
            raise LogError(
                f"{table.at(row)}: {str(value)[:40]!r} does not say whether {role} holds",
                hint="write true or false",
            )
        if said not in (None, _WORDS[word]):
            raise LogError(
                f"{table.at(row)}: {role} is another one here than in the rows before",
                hint="scores of one metric count one way",
            )
        said = _WORDS[word]
    if said is None:
        return None
    return said if role == "higher_is_better" else not said
