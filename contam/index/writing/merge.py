"""Merge segments into one that answers as they did, without retired documents."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.index.array_files import record_file, sync, writing
from contam.index.model import RowSpan, SegmentRecord
from contam.index.writing.write import (
    DOCUMENTS,
    joined,
    new_folder,
    segment_id,
    write_arrays,
    write_tables,
)
from contam.kernels.pairs import DOCUMENT_BITS
from contam.tables.distinct import distinct
from contam.tables.documents import join_documents

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.index.minhash.arrays import MinHashSketcher
    from contam.index.model import Recipe, ShardRecord
    from contam.index.pairs import PairTable
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
) -> SegmentRecord:
    """Write one segment of the documents of several, and make sure that it is on disk.

    kept  bool[docs] for each segment: other documents keep their number, but no gram
    Raises IndexDamageError and OutputError. The manifest does not speak of the segment yet.
    """
    for segment in segments:
        for array in segment.arrays.values():
            array.check_all()
    folder = new_folder(index, merged_id(recipe, segments, shards, kept))
    arrays: dict[str, NDArray[Any]] = {
        name: np.concatenate([_array(segment, name) for segment in segments])
        for name in ("doc_tokens", "doc_crc")
    }
    n_documents = len(arrays["doc_tokens"])
    if sketcher is not None:
        sketches = [
            {name: _array(segment, name) for name in segment.arrays if name.startswith("minhash_")}
            for segment in segments
        ]
        counts = [segment.n_documents for segment in segments]
        arrays.update(sketcher.merge(sketches, counts, np.concatenate(kept)))
    files = write_arrays(folder, arrays)
    entries, capped = _merged([segment.grams for segment in segments], kept)
    letters, _ = _merged([segment.letters for segment in segments], kept)
    files += write_tables(folder, recipe, entries, letters, n_documents, capped)
    with writing(folder):
        join_documents(folder / DOCUMENTS, [segment.document_table() for segment in segments])
    files.append(record_file(folder / DOCUMENTS))
    sync(folder)
    sync(folder.parent)
    return SegmentRecord(
        id=folder.name,
        spans=_spans(segments),
        n_documents=n_documents,
        n_tokens=sum(segment.record.n_tokens for segment in segments),
        n_entries=sum(segment.record.n_entries for segment in segments),
        n_bytes=sum(segment.record.n_bytes for segment in segments),
        files=tuple(sorted(files, key=lambda file: file.name)),
    )


def _array(segment: Segment, name: str) -> NDArray[Any]:
    return segment.arrays[name].array


def _spans(segments: Sequence[Segment]) -> tuple[RowSpan, ...]:
    return joined(span for segment in segments for span in segment.record.spans)


def _merged(
    tables: Sequence[PairTable], kept: Sequence[NDArray[np.bool_]]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The pairs of kept documents, which are numbered anew, and the keys capped in any table."""
    pairs, capped, first = [], [np.empty(0, np.uint64)], 0
    for table, mask in zip(tables, kept, strict=True):
        own, keys = table.unpacked()
        own = own[mask[(own & np.uint64((1 << DOCUMENT_BITS) - 1)).astype(np.int64)]]
        pairs.append(own + np.uint64(first))
        capped.append(keys)
        first += len(mask)
    return np.concatenate(pairs), distinct(np.concatenate(capped))
