"""Check that the MinHash arrays of a segment are consistent with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.index.array_files import damaged
from contam.index.minhash.arrays import MOST_WINDOWS, sketcher, window_counts
from contam.kernels.minhash import NOTHING
from contam.kernels.windows import ENTRY_BYTES, WINDOW_BITS, find_shingles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.index.model import MinHashRecipe
    from contam.index.segment import Segment

_AT_ONCE: Final = 1 << 20
_WINDOW_MASK: Final = (1 << WINDOW_BITS) - 1
#: Bits of a shingle that are not stored.
_DROPPED: Final = np.uint32(0xF)


def check_sketches(segment: Segment) -> None:
    """Look through the MinHash arrays, if the recipe has them; their checksums were compared.

    Raises IndexDamageError for the first that is wrong.
    """
    recipe = segment.recipe.minhash
    if recipe is None:
        return
    tokens = segment.arrays["doc_tokens"].array.astype(np.int64)
    windows = segment.arrays["minhash_windows"].array.astype(np.int64)
    if windows[0] != 0 or not np.array_equal(np.diff(windows), window_counts(tokens, recipe)):
        raise _wrong(segment, "windows", "a document has not the windows of its length")
    signatures = segment.arrays["minhash_signatures"].array
    if (signatures[tokens == 0] != NOTHING).any():
        raise _wrong(segment, "signatures", "a document without tokens is signed")
    capped = segment.arrays["minhash_capped"].array
    if (capped[1:] <= capped[:-1]).any() or (capped & _DROPPED).any():
        raise _wrong(segment, "capped", "does not ascend, or holds bits that are not kept")
    _check_entries(segment, recipe, int(windows[-1]))


def _check_entries(segment: Segment, recipe: MinHashRecipe, n_windows: int) -> None:
    starts = segment.arrays["minhash_starts"].array
    if (np.diff(starts) < 0).any():
        raise _wrong(segment, "starts", "does not ascend")
    rows = segment.arrays["minhash_entries"].array
    capped = segment.arrays["minhash_capped"].array >> np.uint32(4)
    per_window = np.zeros(n_windows, np.int64)
    last, length = -1, 0
    for begin in range(0, len(rows), _AT_ONCE):
        at = np.arange(begin, min(begin + _AT_ONCE, len(rows)))
        value = _values(rows[at])
        bucket = np.searchsorted(starts, at, side="right") - 1
        entry = (bucket << (8 * ENTRY_BYTES)) | value
        if (np.diff(entry, prepend=last) < 0).any():
            raise _wrong(segment, "entries", "is not sorted")
        window = value & _WINDOW_MASK
        if (window >= n_windows).any():
            raise _wrong(segment, "entries", "holds a window of no document")
        per_window += np.bincount(window, minlength=n_windows)
        shingles, counts = np.unique(entry >> WINDOW_BITS, return_counts=True)
        # The first shingle of a stretch may have begun in the one before.
        if last >= 0 and shingles[0] == last >> WINDOW_BITS:
            counts[0] += length
        if np.isin(shingles, capped).any() or (counts > MOST_WINDOWS).any():
            raise _wrong(segment, "entries", "holds windows of a shingle that has too many")
        last, length = int(entry[-1]), int(counts[-1])
    if (per_window > recipe.bands).any():
        raise _wrong(segment, "entries", "holds more of a window than there are bands")


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


def _wrong(segment: Segment, name: str, fact: str) -> Exception:
    return damaged(segment.arrays[f"minhash_{name}"].path, fact)
