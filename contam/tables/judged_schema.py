"""Define the columns of what a judge answered."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

JUDGED: Final = pa.schema(
    [
        pa.field(name, pa.string(), nullable=False)
        for name in ("benchmark", "split", "item_id", "pair", "model", "answer")
    ]
)
