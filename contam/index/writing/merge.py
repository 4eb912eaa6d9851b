"""Merge segments into one that answers as they did, without retired documents."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.index.array_files import record_file, sync, write_array, writing
from contam.index.model import RowSpan, SegmentRecord
from contam.index.segment import documents_of_letters
from contam.index.writing.write import (
    DOCUMENTS,
    document_hashes,
    joined,
    new_folder,
    segment_id,
    sort_all,
)
from contam.kernels.postings import (
    BUCKETS,
    POSTING_WORDS,
    cap_grams,
    find_postings,
    move_postings,
)
from contam.tables.distinct import distinct
from contam.tables.documents import join_documents

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.index.minhash.arrays import MinHashSketcher
    from contam.index.model import Recipe, ShardRecord
    from contam.index.segment import Segment


def merged_id(
    recipe: Recipe,
    segments: Sequence[Segment],
    shards: Sequence[ShardRecord],
    kept: Sequence[NDArray[np.bool_]],
) -> str:
    """What the segment is called that `merge_segments` makes of these."""
    mask = np.concatenate(kept)
    dropped = "" if mask.all() else hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()
    return segment_id(recipe, _spans(segments), shards, dropped)


def merge_segments(
    index: Path,
    recipe: Recipe,
    segments: Sequence[Segment],
    shards: Sequence[ShardRecord],
    kept: Sequence[NDArray[np.bool_]],
    *,
    sketcher: MinHashSketcher | None,
    workers: int,
) -> SegmentRecord:
    """Write one segment of the documents of several, and make sure that it is on disk.

    kept  bool[docs] for each segment: other documents keep their number, but no posting
    Raises IndexDamageError and OutputError. The manifest does not speak of the segment yet.
    """
    for segment in segments:
        for array in segment.arrays.values():
            array.check_all()
    folder = new_folder(index, merged_id(recipe, segments, shards, kept))
    counts = [_array(segment, "doc_entries") for segment in segments]
    firsts = np.cumsum([0, *(int(count[-1]) for count in counts)])
    doc_entries = np.concatenate(
        [
            *(count[:-1].astype(np.int64) + at for count, at in zip(counts, firsts, strict=False)),
            firsts[-1:],
        ]
    ).astype(np.uint32)
    arrays: dict[str, NDArray[Any]] = {
        name: np.concatenate([_array(segment, name) for segment in segments])
        for name in ("doc_tokens", "doc_crc")
    }
    arrays["letters"] = _merged_letters(segments, kept)
    if sketcher is not None:
        sketches = [
            {name: _array(segment, name) for name in segment.arrays if name.startswith("minhash_")}
            for segment in segments
        ]
        n_documents = [segment.n_documents for segment in segments]
        arrays.update(sketcher.merge(sketches, n_documents, np.concatenate(kept)))
    spans = _spans(segments)
    starts, postings = _merged_postings(segments, firsts, kept)
    sort_all(postings, starts, workers)
    n_kept, keys, _ = cap_grams(
        postings, starts, doc_entries, document_hashes(spans, shards), recipe.cap
    )
    postings = postings[:n_kept]
    keys = distinct(
        np.concatenate([keys, *(_array(segment, "capped_key") for segment in segments)])
    )
    arrays |= {
        "starts": starts,
        "postings": postings,
        "doc_entries": doc_entries,
        "capped_key": keys,
        "capped_count": sum(
            (_true_counts(segment, keys) for segment in segments), np.zeros(len(keys), np.int64)
        ),
    }
    files = [write_array(folder, name, array) for name, array in sorted(arrays.items())]
    with writing(folder):
        join_documents(folder / DOCUMENTS, [segment.document_table() for segment in segments])
    files.append(record_file(folder / DOCUMENTS))
    sync(folder)
    sync(folder.parent)
    return SegmentRecord(
        id=folder.name,
        spans=spans,
        n_documents=len(arrays["doc_tokens"]),
        n_tokens=sum(segment.record.n_tokens for segment in segments),
        n_entries=int(firsts[-1]),
        n_bytes=sum(segment.record.n_bytes for segment in segments),
        files=tuple(sorted(files, key=lambda file: file.name)),
    )


def _array(segment: Segment, name: str) -> NDArray[Any]:
    return segment.arrays[name].array


def _spans(segments: Sequence[Segment]) -> tuple[RowSpan, ...]:
    return joined(span for segment in segments for span in segment.record.spans)


def _merged_postings(
    segments: Sequence[Segment], firsts: NDArray[np.int64], kept: Sequence[NDArray[np.bool_]]
) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """All postings of kept documents by bucket, (starts, postings): not sorted within a bucket."""
    sources = [
        (_array(segment, "starts"), _array(segment, "postings"), _array(segment, "doc_entries"))
        for segment in segments
    ]
    free = np.zeros(BUCKETS, np.int64)
    nothing = np.empty((0, POSTING_WORDS), np.uint16)
    for source, mask in zip(sources, kept, strict=True):
        move_postings(source, mask, 0, free, nothing)
    starts = np.concatenate([[0], np.cumsum(free)])
    free = starts[:-1].copy()
    postings = np.empty((int(starts[-1]), POSTING_WORDS), np.uint16)
    for source, mask, first in zip(sources, kept, firsts.tolist(), strict=False):
        move_postings(source, mask, first, free, postings)
    return starts, postings


def _merged_letters(
    segments: Sequence[Segment], kept: Sequence[NDArray[np.bool_]]
) -> NDArray[np.uint64]:
    """The letters of kept documents, which are numbered anew."""
    found, first = [], 0
    for segment, mask in zip(segments, kept, strict=True):
        letters = _array(segment, "letters")
        found.append(letters[mask[documents_of_letters(letters)]] + np.uint64(first))
        first += segment.n_documents
    return distinct(np.concatenate(found))


def _true_counts(segment: Segment, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Postings of each gram (40-bit keys, ascending) in a segment before it was capped."""
    first, stop = find_postings(keys, _array(segment, "starts"), _array(segment, "postings"))
    counts = stop - first
    known, true = _array(segment, "capped_key"), _array(segment, "capped_count")
    counts[np.searchsorted(keys, known)] = true
    return counts
