"""Compare the sketch that a segment has of a document with one made from its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.index.minhash.arrays import sketcher
from contam.kernels.windows import ENTRY_BYTES, WINDOW_BITS, find_shingles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.index.segment import Segment

_WINDOW_MASK: Final = (1 << WINDOW_BITS) - 1
#: Bits of a shingle that are not stored.
_DROPPED: Final = np.uint32(0xF)


def compare_sketch(segment: Segment, document: int, hashes: NDArray[np.uint64]) -> str | None:
    """What is wrong with the sketch of a document of these tokens; None when nothing is."""
    recipe = segment.recipe.minhash
    if recipe is None:
        return None
    sketch = sketcher(recipe).sketch(hashes, np.array([0, len(hashes)], np.int64))
    arrays = {name: file.array for name, file in segment.arrays.items()}
    if not np.array_equal(sketch.signatures[0], arrays["minhash_signatures"][document]):
        return "its signature is not that of its text"
    shingle = (sketch.entries >> np.uint64(32)).astype(np.uint32) & ~_DROPPED
    window = (sketch.entries & np.uint64(_WINDOW_MASK)).astype(np.int64)
    window += int(arrays["minhash_windows"][document])
    first, stop = np.empty(len(shingle), np.int64), np.empty(len(shingle), np.int64)
    rows = arrays["minhash_entries"]
    find_shingles(shingle, arrays["minhash_starts"], rows, first, stop)
    for i in np.flatnonzero(~np.isin(shingle, arrays["minhash_capped"])).tolist():
        if window[i] not in _values(rows[first[i] : stop[i]]) & _WINDOW_MASK:
            return "a window of it is not in the index"
    return None


def _values(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The 40 bits of each entry: uint8[n, 5] -> int64[n]."""
    weight = np.int64(1) << (8 * np.arange(ENTRY_BYTES, dtype=np.int64))
    values: NDArray[np.int64] = rows.astype(np.int64) @ weight
    return values
