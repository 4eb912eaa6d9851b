"""Store retired documents, which no answer counts, as a file of shards and rows."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.index.array_files import CheckedArray, damaged, write_array

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.index.model import FileRecord

_ROW_BITS: Final = 40
#: Files that list retired documents.
NAME: Final = re.compile(r"retired-[0-9a-f]{8}\.(npy|crc)")


class Retired:
    """Retired documents of an index, looked up by shard and row.

    pairs  int64[n, 2], shard (its place in the manifest) and row, ascending, each once
    """

    def __init__(self, pairs: NDArray[np.int64]) -> None:
        self.pairs = pairs
        self._keys = (pairs[:, 0] << _ROW_BITS) | pairs[:, 1]

    def __len__(self) -> int:
        return len(self.pairs)

    def holds(self, shard: NDArray[np.integer], row: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which documents are retired, bool[m]; shard and row are integers [m]."""
        wanted = (shard.astype(np.int64) << _ROW_BITS) | row.astype(np.int64)
        if not len(self._keys):
            return np.zeros(len(wanted), np.bool_)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.asarray(self._keys[at] == wanted)


def read_retired(folder: Path, record: FileRecord | None) -> Retired:
    """The retired documents of an index, checked whole. Raises IndexDamageError."""
    if record is None:
        return Retired(np.empty((0, 2), np.int64))
    file = CheckedArray(folder, record)
    file.check_all()
    pairs = file.array
    if pairs.dtype != np.int64 or pairs.ndim != 2 or pairs.shape[1] != 2:  # noqa: PLR2004 - shard and row
        raise damaged(file.path, "is no list of shards and rows")
    retired = Retired(pairs)
    keys = retired._keys  # noqa: SLF001 - our own
    if len(keys) and ((pairs < 0).any() or (keys[1:] <= keys[:-1]).any()):
        raise damaged(file.path, "is not in order")
    return retired


def write_retired(folder: Path, pairs: NDArray[np.int64]) -> FileRecord | None:
    """Write int64[n, 2] shards and rows, in any order, next to the manifest; None for none.

    The older file is left for readers that still need it: whoever publishes a manifest removes it.
    """
    if not len(pairs):
        return None
    distinct = np.unique(pairs.astype("<i8"), axis=0)
    name = hashlib.sha256(distinct.tobytes()).hexdigest()[:8]
    return write_array(folder, f"retired-{name}", distinct)
