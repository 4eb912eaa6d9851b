"""Pack bytes so that they take less memory, and unpack them as quickly as they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]


def pack(data: bytes) -> Bytes:
    """The data, packed, uint8[n]; text becomes less than half as large.

    An array, so that a file of our objects has it beside them and readers map it into memory.
    """
    return np.frombuffer(
        pa.Codec("zstd", compression_level=1).compress(data, asbytes=True), np.uint8
    )


def unpack(packed: Bytes, size: int) -> bytes:
    """What was packed, of that size. Raises OSError when it is damaged."""
    data: bytes = pa.Codec("zstd").decompress(packed, size, asbytes=True)
    return data
