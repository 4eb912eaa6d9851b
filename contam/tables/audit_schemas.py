"""The columns of the tables that an audit publishes beside its verdicts."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

CALIBRATION: Final = pa.schema(
    [
        *(
            pa.field(name, pa.string(), nullable=False)
            for name in ("benchmark", "split", "item_id", "policy", "label")
        ),
        # Null where an item was not checkable, or where nothing is estimable.
        *(pa.field(name, pa.float64()) for name in ("score", "fdr", "q_value", "p_value")),
    ]
)
