"""Define the columns of what a judge answered."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

JUDGED: Final = pa.schema(
    [
        *(
            pa.field(name, pa.string(), nullable=False)
            for name in ("benchmark", "split", "item_id", "pair", "document_id", "shard")
        ),
        pa.field("row", pa.int64(), nullable=False),
        *(pa.field(name, pa.string(), nullable=False) for name in ("model", "prompt", "answer")),
        pa.field("inclusion", pa.float64(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        # Null where texts are left out.
        *(pa.field(name, pa.string()) for name in ("question", "document", "reply")),
    ]
)
