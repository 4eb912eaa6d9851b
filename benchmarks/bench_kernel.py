"""The tokeniser over a whole batch, as the scan calls it, and nothing behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.kernels._jit import kernel
from contam.kernels.tokens import WORDS, tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contam.kernels.chars import CharTables
    from contam.kernels.document import DocBuffers


@kernel
def tokenise_batch(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], buffers: DocBuffers, tables: CharTables
) -> int:
    """Tokens of all documents; document i is data[offsets[i] : offsets[i + 1]], UTF-8."""
    total = 0
    for i in range(offsets.shape[0] - 1):
        limits = (offsets[i], offsets[i + 1])
        total += tokenize(
            data, limits, WORDS, buffers.folded, buffers.hashes, buffers.spans, tables
        )
    return total
