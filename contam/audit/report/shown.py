"""Scores as reports show them: none over fewer items than the audit asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.rescore.stats.gain import too_few

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Row = dict[str, Any]

_SIDES: Final = ("clean", "flagged")


def scores_shown(rows: Iterable[Mapping[str, Any]], least: int) -> list[Row]:
    """Rows of scores without the figures over fewer than `least` items; the note says why."""
    return [_shown(dict(row), least) for row in rows]


def clean_missing(row: Mapping[str, Any], least: int) -> str:
    """Why a row has no clean score to show, "" where it has one."""
    return too_few(row["n_clean"], "clean", least)


def _shown(row: Row, least: int) -> Row:
    for side in _SIDES:
        reason = too_few(row[f"n_{side}"], side, least)
        if not reason:
            continue
        row |= dict.fromkeys((side, f"{side}_lo", f"{side}_hi"))
        if side == "clean":
            row |= dict.fromkeys(("clean_with_unchecked", "gain", "gain_low", "gain_high"))
            if reason not in row["note"]:
                row["note"] = "; ".join(filter(None, (row["note"], reason)))
    return row
