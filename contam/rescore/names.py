"""Names of the files that a re-scoring writes, known without what computes them."""

from __future__ import annotations

from typing import Final

SUMMARY: Final = "summary.md"
TABLES: Final = (
    *("scores", "rankings", "sweep", "pairs"),
    *("aggregate", "adjusted", "diversity", "holdout"),
)
