"""A column of a plain table that says which way its scores count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.errors import LogError
from contam.facts import Place, Public
from contam.remedies import Remedy

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
                "{}: {!r} does not say whether {} holds",
                Place(table.at(row)),
                str(value)[:40],
                Public(role),
                remedy=Remedy.WRITE_TRUE_OR_FALSE,
            )
        if said not in (None, _WORDS[word]):
            raise LogError(
                "{}: {} is another one here than in the rows before",
                Place(table.at(row)),
                Public(role),
                remedy=Remedy.SCORES_COUNT_ONE_WAY,
            )
        said = _WORDS[word]
    if said is None:
        return None
    return said if role == "higher_is_better" else not said
