"""Make the MinHash part of a segment: the windows of its documents.

Layout of the arrays: indexes/FORMAT.md. The answers about a corpus do not depend on how it is cut
into segments: a shingle that is too frequent in one segment is too frequent in all of them.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.errors import ConfigError, OutputError
from contam.kernels.windows import (
    BUCKETS,
    ENTRY_BYTES,
    WINDOW_BITS,
    drop_frequent,
    enter_windows,
    hash_shingles,
    pack_entries,
)
from contam.tables.memory import distinct
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datasketch import MinHash
    from numpy.typing import NDArray


def shingle_values(text: str, shingle: int = 3) -> NDArray[np.uint32]:
    """The value of every shingle of a text's words, in order: what datasketch can take as hashes.

    A text of fewer words is one shingle; one without words has none.
    """
    tokens = tokenize_bytes(text.encode()).hashes
    out = np.empty(len(tokens), np.uint32)
    return out[: hash_shingles(tokens, 0, len(tokens), shingle, out)]


def sign(text: str, n_perm: int = 128) -> MinHash:
    """The MinHash signature of a text's shingles, which datasketch compares, merges and indexes."""
    from datasketch import MinHash

    signature = MinHash(n_perm, seed=1, hashfunc=int, scheme="affine32")
    signature.update_batch(shingle_values(text).tolist())
    return signature


SHINGLE: Final = 3
WINDOW: Final = 32
BANDS: Final = 8
"""Words of a shingle, shingles of a window, and the permutations that choose of a window."""

#: Permutations that are drawn: of another number the first are others.
_N_PERM: Final = 128
#: crc32 of the first: other ones would find no near copy in a stored index.
_KNOWN: Final = 2792162088

MOST_WINDOWS: Final = 1000
"""A shingle of more windows than this is no evidence: its windows are dropped."""


_UNUSED_BITS: Final = np.uint64(0xF << 32)
_WINDOW_MASK: Final = np.uint64((1 << WINDOW_BITS) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class MinHashSketch:
    """What is stored of the documents of one batch.

    entries  uint64[n], shingle << 32 | window, windows numbered from 0
    windows  uint32[docs], windows of each document
    """

    entries: NDArray[np.uint64]
    windows: NDArray[np.uint32]

    @property
    def n_bytes(self) -> int:
        """Bytes of memory until the segment is written, its entries copied once for sorting."""
        return 2 * self.entries.nbytes + self.windows.nbytes


@cache
def permutations() -> NDArray[np.uint64]:
    """Factors and shifts of those that choose of a window, uint64[2, BANDS], read-only.

    Raises ConfigError where datasketch draws others than those of stored indexes.
    """
    from datasketch import MinHash

    drawn = np.array(MinHash(_N_PERM, seed=1, scheme="affine32").permutations, np.uint64)[:, :BANDS]
    if zlib.crc32(drawn.tobytes()) != _KNOWN:
        raise ConfigError(
            "this release of datasketch draws other permutations than indexes were made with",
            hint="install datasketch 2.0.0, which draws those",
        )
    drawn.setflags(write=False)
    return drawn


def sketch(hashes: NDArray[np.uint64], starts: NDArray[np.int64]) -> MinHashSketch:
    """Sketch a batch: the tokens of document i are hashes[starts[i] : starts[i + 1]]."""
    factor, shift = permutations()
    lengths = np.diff(starts)
    scratch = np.empty((2, int(lengths.max(initial=0))), np.uint32)
    windows = window_counts(lengths)
    entries = np.empty(BANDS * int(windows.sum(dtype=np.int64)) + 1, np.uint64)
    n, _ = enter_windows(
        hashes,
        starts,
        (SHINGLE, WINDOW),
        factor,
        shift,
        scratch[0],
        scratch[1],
        entries,
    )
    return MinHashSketch(entries[:n].copy(), windows)


def sketch_arrays(sketches: Sequence[MinHashSketch]) -> dict[str, NDArray[Any]]:
    """All sketches of a segment, in the order of its documents, as the arrays to be written.

    Raises OutputError when a segment has more windows than can be numbered.
    """
    entries = np.empty(sum(len(one.entries) for one in sketches), np.uint64)
    window = at = 0
    for one in sketches:
        entries[at : at + len(one.entries)] = one.entries + np.uint64(window)
        at += len(one.entries)
        window += int(one.windows.sum(dtype=np.int64))
    windows = _concatenated([one.windows for one in sketches], np.empty(0, np.uint32))
    return _arrays(entries, windows, np.empty(0, np.uint32))


def merged_sketches(
    segments: Sequence[Mapping[str, NDArray[Any]]],
    n_documents: Sequence[int],
    kept: NDArray[np.bool_],
) -> dict[str, NDArray[Any]]:
    """The arrays of one segment that has the documents of several, for compaction.

    n_documents  documents of each segment
    kept         bool[documents of all]: of the others only their number remains
    """
    parts, window, document = [], 0, 0
    for arrays, n in zip(segments, n_documents, strict=True):
        first = arrays["minhash_windows"].astype(np.int64)
        entries = unpack(arrays["minhash_starts"], arrays["minhash_entries"])
        owner = np.searchsorted(first, entries & _WINDOW_MASK, side="right") - 1
        parts.append(entries[kept[document : document + n][owner]] + np.uint64(window))
        window += int(first[-1])
        document += n
    windows = _concatenated(
        [np.diff(arrays["minhash_windows"]) for arrays in segments], np.empty(0, np.uint32)
    )
    frequent = [arrays["minhash_capped"] for arrays in segments]
    capped = distinct(_concatenated(frequent, np.empty(0, np.uint32)))
    return _arrays(_concatenated(parts, np.empty(0, np.uint64)), windows, capped)


def window_counts(n_tokens: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Windows of documents of so many tokens, uint32[docs]."""
    n_shingles = np.where(n_tokens > 0, np.maximum(n_tokens - SHINGLE, 0) + 1, 0)
    return (-(-n_shingles // WINDOW)).astype(np.uint32)


def unpack(starts: NDArray[np.int64], rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Entries as stored on disk -> uint64[n], shingle << 32 | window, ascending."""
    wide = np.zeros((len(rows), 8), np.uint8)
    wide[:, :ENTRY_BYTES] = rows
    value = wide.view("<u8")[:, 0]
    bucket = np.repeat(np.arange(BUCKETS, dtype=np.uint64), np.diff(starts))
    shingle = (bucket << np.uint64(16)) | ((value >> np.uint64(WINDOW_BITS)) << np.uint64(4))
    entries: NDArray[np.uint64] = (shingle << np.uint64(32)) | (value & _WINDOW_MASK)
    return entries


def _arrays(
    entries: NDArray[np.uint64],
    windows: NDArray[np.uint32],
    capped: NDArray[np.uint32],
) -> dict[str, NDArray[Any]]:
    first = np.zeros(len(windows) + 1, np.int64)
    np.cumsum(windows, out=first[1:])
    if first[-1] >= 1 << WINDOW_BITS:
        raise OutputError(
            "a segment would hold {:,} windows, more than can be numbered",
            int(first[-1]),
            hint="give the build less --memory, so that it writes smaller segments",
        )
    entries &= ~_UNUSED_BITS
    entries.sort()
    over = np.empty(len(entries) // (MOST_WINDOWS + 1) + 1, np.uint32)
    kept, n_over = drop_frequent(entries, MOST_WINDOWS, capped, over)
    entries = entries[:kept]
    starts = np.zeros(BUCKETS + 1, np.int64)
    rows = np.empty((len(entries), ENTRY_BYTES), np.uint8)
    pack_entries(entries, starts, rows)
    return {
        "minhash_capped": np.union1d(capped, over[:n_over]),
        "minhash_entries": rows,
        "minhash_starts": starts,
        "minhash_windows": first.astype(np.uint32),
    }


def _concatenated(parts: Sequence[NDArray[Any]], none: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([none, *parts])
