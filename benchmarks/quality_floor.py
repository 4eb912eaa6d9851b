"""The floors: what a change must not fall below, kept in quality_floor.json."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def read_floor(path: Path) -> dict[str, Any]:
    """Policy -> {recall, false_flags and flagged: {class: share}, absent: share}."""
    floor: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return floor


def regressions(policies: dict[str, Any], floor: dict[str, Any]) -> list[str]:
    """One line for each class of a measured policy that is worse than its floor.

    A class the floor names and the pack lacks is worse, too: a gate must not pass because a label
    was renamed.
    """
    found = []
    for policy, limits in floor.items():
        if policy not in policies:
            continue
        measured = policies[policy]
        recall = _recall(measured)
        for name, least in limits.get("recall", {}).items():
            share = recall.get(name)
            if share is None or share < least:
                found.append(f"{policy}: recall of {name} is {_shown(share)}, floor {least:.3f}")
        flags = _false_flags(measured)
        for name, most in limits.get("false_flags", {}).items():
            share = flags.get(name)
            if share is None or share > most:
                found.append(
                    f"{policy}: {name} called contaminated {_shown(share)}, at most {most:.3f}"
                )
        suspects = _shares(measured["false_flags"], "flagged", "n")
        for name, most in limits.get("flagged", {}).items():
            share = suspects.get(name)
            if share is None or share > most:
                found.append(f"{policy}: {name} flagged {_shown(share)}, at most {most:.3f}")
        absent = measured["absent"]
        share = absent["flagged"] / absent["n"] if absent["n"] else None
        most = limits.get("absent")
        if most is not None and (share is None or share > most):
            found.append(f"{policy}: absent items flagged {_shown(share)}, at most {most:.4f}")
    return found


def _recall(measured: dict[str, Any]) -> dict[str, float]:
    """Share found of the items long enough, core and hard together."""
    return _shares(measured["recall"], "found", "n")


def _false_flags(measured: dict[str, Any]) -> dict[str, float]:
    return _shares(measured["false_flags"], "contaminated", "n")


def _shares(rows: list[dict[str, Any]], part: str, whole: str) -> dict[str, float]:
    sums: dict[str, list[int]] = {}
    for row in rows:
        entry = sums.setdefault(row["class"], [0, 0])
        entry[0] += row[part]
        entry[1] += row[whole]
    return {name: part / whole for name, (part, whole) in sums.items() if whole}


def _shown(share: float | None) -> str:
    return "not measured" if share is None else f"{share:.4f}"
