"""Check that the arrays of a segment are consistent with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.index.array_files import damaged
from contam.index.minhash.soundness import check_sketches
from contam.index.segment import DOCUMENTS, REST_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.index.segment import Segment

_AT_ONCE: Final = 1 << 20
_REST: Final = (1 << REST_BITS) - 1


def check_segment(segment: Segment) -> None:
    """Look through all arrays of a segment. Raises IndexDamageError for the first that is wrong."""
    for file in segment.arrays.values():
        file.check_all()
    _check_documents(segment)
    _check_postings(segment)
    _check_capped(segment)
    _check_table(segment)
    check_sketches(segment)


def _check_documents(segment: Segment) -> None:
    recipe, record = segment.recipe, segment.record
    tokens = segment.arrays["doc_tokens"].array.astype(np.int64)
    if int(tokens.sum()) != record.n_tokens:
        raise _wrong(segment, "doc_tokens", "does not add up to the tokens of the segment")
    room = tokens - recipe.gram
    expected = np.where(room >= 0, room // recipe.stride + 1, 0)
    entries = np.diff(segment.arrays["doc_entries"].array.astype(np.int64))
    if not np.array_equal(entries, expected):
        raise _wrong(segment, "doc_entries", "a document has not the entries of its length")


def _check_postings(segment: Segment) -> None:
    starts = segment.arrays["starts"].array
    if (np.diff(starts) < 0).any():
        raise _wrong(segment, "starts", "does not ascend")
    postings = segment.arrays["postings"].array
    n_entries = segment.record.n_entries
    seen = np.zeros(n_entries, np.bool_)
    last = (-1, -1)
    for begin in range(0, len(postings), _AT_ONCE):
        rows = np.arange(begin, min(begin + _AT_ONCE, len(postings)))
        words = postings[rows].astype(np.int64)
        bucket = np.searchsorted(starts, rows, side="right") - 1
        key = (bucket << REST_BITS) | words[:, 0] | ((words[:, 1] << 16) & _REST)
        ordinal = words[:, 3] | (words[:, 4] << 16)
        keys, ordinals = np.append(last[0], key), np.append(last[1], ordinal)
        up = keys[1:] > keys[:-1]
        if not (up | ((keys[1:] == keys[:-1]) & (ordinals[1:] > ordinals[:-1]))).all():
            raise _wrong(segment, "postings", "is not sorted")
        if (ordinal >= n_entries).any():
            raise _wrong(segment, "postings", "holds an entry of no document")
        seen[ordinal] = True
        last = (int(key[-1]), int(ordinal[-1]))
    if np.count_nonzero(seen) != len(postings):
        raise _wrong(segment, "postings", "holds an entry twice")


def _check_capped(segment: Segment) -> None:
    keys = segment.arrays["capped_key"].array
    counts = segment.arrays["capped_count"].array
    if (keys[1:] <= keys[:-1]).any():
        raise _wrong(segment, "capped_key", "does not ascend")
    if (counts <= segment.recipe.cap).any():
        raise _wrong(segment, "capped_count", "holds a gram that is not above the cap")
    for key in keys.tolist():
        lo, hi = segment.find(key)
        # Fewer than the cap where compaction has left out what was retired.
        if hi - lo > segment.recipe.cap:
            raise _wrong(segment, "postings", "holds more of a capped gram than the cap")


def _check_table(segment: Segment) -> None:
    table = segment.document_table()
    path = segment.folder / DOCUMENTS
    shards, rows = segment.place_of(np.arange(segment.n_documents))
    expected: dict[str, NDArray[np.integer]] = {
        "shard": shards,
        "row": rows,
        "n_tokens": segment.arrays["doc_tokens"].array,
    }
    for name, values in expected.items():
        if not np.array_equal(table.column(name).to_numpy(), values):
            raise damaged(path, f"its column {name} is not what the arrays say")
    if int(table.column("n_bytes").to_numpy().sum()) != segment.record.n_bytes:
        raise damaged(path, "its column n_bytes does not add up to the bytes of the segment")


def _wrong(segment: Segment, name: str, fact: str) -> Exception:
    return damaged(segment.arrays[name].path, fact)
