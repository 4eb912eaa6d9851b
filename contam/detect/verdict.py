"""One verdict: what a policy says of an item. Loads nothing, so that a client can have it, too."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

FLAGGED: Final = ("contaminated", "suspect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one policy says about one item; the fields are the columns of `verdicts.parquet`."""

    benchmark: str
    split: str
    item_id: str
    policy: str
    label: str
    score: float | None
    exposure: str
    kind: str | None
    n_documents: int
    n_occurrences: int
    best_document_id: str | None
    best_shard: str | None
    best_row: int | None
    best_url: str | None
    best_date: str | None
    reason: str

    @property
    def flagged(self) -> bool:
        """Whether the item is called contaminated or suspect."""
        return self.label in FLAGGED

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, ready for JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self)}
