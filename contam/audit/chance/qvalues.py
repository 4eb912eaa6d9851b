"""Look up the q-value of an item to show beside its verdict."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.audit.chance.calibration import CALIBRATION, SUMMARY, TABLE
from contam.audit.verify import REPORT
from contam.tables import schemas

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class QValues:
    """What decoys say of single items.

    values   (benchmark, split, item id, policy) -> q-value, None where none was estimated
    reasons  (benchmark, policy) -> why nothing was estimated
    """

    values: dict[tuple[str, str, str, str], float | None]
    reasons: dict[tuple[str, str], str]

    def of(self, benchmark: str, split: str, item_id: str, policy: str) -> float | None:
        """The q-value of an item's verdict, None where none was estimated."""
        return self.values.get((benchmark, split, item_id, policy))

    def describe(self, benchmark: str, split: str, item_id: str, policy: str) -> str:
        """The q-value in words."""
        q = self.of(benchmark, split, item_id, policy)
        if q is not None:
            return f"q {q:.3g}"
        reason = self.reasons.get((benchmark, policy)) or (
            "not checkable" if self.values else "no decoys were searched for"
        )
        return f"q not estimated: {reason}"


def chance_of(folder: Path) -> QValues | None:
    """The q-values of a pack; None for a result that is no pack."""
    return q_values(folder) if (folder / REPORT).exists() else None


def q_values(pack: Path) -> QValues:
    """The q-values of a pack, or of a draft of one; none where no decoys were searched for."""
    folder = pack / CALIBRATION
    if not (folder / SUMMARY).exists():
        return QValues({}, {})
    summary = json.loads((folder / SUMMARY).read_bytes())
    table = schemas.read_parquet(folder / TABLE, schemas.CALIBRATION)
    names = ("benchmark", "split", "item_id", "policy", "q_value")
    return QValues(
        {
            tuple(key): q
            for *key, q in zip(*(schemas.column(table, name) for name in names), strict=True)
        },
        {
            (row["benchmark"], row["policy"]): row["reason"]
            for row in summary["policies"]
            if not row["estimable"]
        },
    )
